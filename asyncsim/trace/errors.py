"""What is raised when asyncsim, not the protocol under test, was used wrongly.

    AsyncsimError
     ├── MisuseError        an operation, a declaration or an argument that cannot be right
     │    └── RefusedError  a collective that upstream refuses too, in upstream's words
     ├── KernelError        a kernel raised; carries its rank and the trace so far
     ├── TraceError         a trace or token that cannot be read; carries the line
     └── DivergenceError    a replay that met another operation; carries the step

A hang, a race or a wrong result is none of these: it is a finding, that is, data.
"""

from __future__ import annotations

from typing import Any


class AsyncsimError(Exception):
    """The root of everything asyncsim raises on purpose."""


class MisuseError(AsyncsimError):
    """The library was used in a way that cannot be right; the message says what would be."""


class RefusedError(MisuseError):
    """A call that the dialect's own type rules refuse, in their words."""


class KernelError(AsyncsimError):
    """A kernel raised an exception (kept as ``__cause__``); the other ranks were cancelled.

    `rank` and `call` say who raised and when; `trace` is what was recorded up to then
    (an `asyncsim.Trace`; this page stands below it, so the type is not named), or None when
    the run was not being recorded.
    """

    def __init__(self, message: str, *, rank: int, call: int, trace: Any) -> None:  # noqa: ANN401
        super().__init__(message)
        self.rank = rank
        self.call = call
        self.trace = trace


class TraceError(AsyncsimError):
    """A trace or token that is truncated, reordered, corrupted or from another format.

    `line` counts from 1; it is None for a token.
    """

    def __init__(self, reason: str, *, line: int | None = None, source: str = "trace") -> None:
        where = source if line is None else f"{source}, line {line}"
        super().__init__(f"{where}: {reason}")
        self.reason = reason
        self.line = line


class DivergenceError(AsyncsimError):
    """A replay in which the kernel did something else than the schedule says.

    `step` is the first step that differs, counted from 0.
    """

    def __init__(self, reason: str, *, step: int) -> None:
        super().__init__(f"divergence at step {step}: {reason}")
        self.reason = reason
        self.step = step
