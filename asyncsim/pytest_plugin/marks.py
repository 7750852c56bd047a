"""The mark ``@pytest.mark.asyncsim(...)``: what it says, and what is wrong with it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from asyncsim.checking.verdict.check import check
from asyncsim.checking.verdict.models import AUTO
from asyncsim.machine.kernel import Kernel
from asyncsim.testing.asserting import RANKS, rank_counts
from asyncsim.testing.requirement import Requirement
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.late import model_of

MARK = "asyncsim"
PASSED_ON = ("calls", "seed", "scheduler", "budget", "samples", "races", "shrinking", "edits")
"""Arguments that go to `asyncsim.check` as they are."""
USAGE = f"{MARK}(ranks=[2, 3, 4], calls=2, memory='auto', require='proved', finds=...)"


@dataclass(frozen=True, slots=True)
class Marked:
    """What a mark asks for.

    Args:
        ranks: each P.
        memories: each memory model.
        requirement: of the verdict; None: what the kernel itself declares.
        how: further arguments of `asyncsim.check`.

    """

    ranks: tuple[int, ...] = RANKS
    memories: tuple[str, ...] = (AUTO,)
    requirement: Requirement | None = None
    how: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, mark: pytest.Mark | None, where: str) -> Marked:
        """Read a mark; `where` names the test in the message.

        Args:
            mark: None: there is none, and all is as by default.
            where: the test's id.

        Raises:
            pytest.Collector.CollectError: an argument cannot be right.

        """
        if mark is None:
            return cls()
        try:
            return _read(mark)
        except MisuseError as error:
            raise pytest.Collector.CollectError(f"{where}: @pytest.mark.{MARK}: {error}") from None


def unwrapped(found: object) -> tuple[Kernel | None, list[pytest.Mark]]:
    """Return the kernel below marks, and these; None if there is no kernel.

    A mark on what is neither a function nor a class holds it as its last argument.
    """
    marks: list[pytest.Mark] = []
    while isinstance(found, pytest.MarkDecorator) and found.args:
        marks.append(getattr(pytest.mark, found.name).with_args(*found.args[:-1], **found.kwargs).mark)
        found = found.args[-1]
    if not isinstance(found, Kernel):
        return None, []
    return found, [*getattr(found.program, "pytestmark", []), *reversed(marks)]


def _read(mark: pytest.Mark) -> Marked:
    given = dict(mark.kwargs)
    if mark.args:
        raise MisuseError(f"{', '.join(map(repr, mark.args))} has no name; write {USAGE}")
    unknown = [key for key in given if key not in ("ranks", "memory", "require", "finds", *PASSED_ON)]
    if unknown:
        raise MisuseError(f"there is no argument {unknown[0]!r}; write {USAGE}, or one of {', '.join(PASSED_ON)}")
    ranks = rank_counts(given.pop("ranks", RANKS))
    memories = _memories(given.pop("memory", AUTO))
    level, finds = given.pop("require", None), given.pop("finds", None)
    requirement = None if level is None and finds is None else Requirement.of(level, finds)
    for key, value in given.items():
        _check_type(key, value)
    return Marked(tuple(dict.fromkeys(ranks)), tuple(dict.fromkeys(memories)), requirement, given)


def _memories(memory: object) -> tuple[str, ...]:
    models = (memory,) if isinstance(memory, str) else tuple(memory) if isinstance(memory, Sequence) else ()
    if not models or not all(isinstance(model, str) for model in models):
        raise MisuseError(f"memory={memory!r}; give a memory model, or a list of them: ['sc', 'ldst']")
    for model in models:
        if model != AUTO:
            model_of(model)
    return models


def _check_type(key: str, value: object) -> None:
    """Refuse a value of another type than the default's now, not when the test runs."""
    default = inspect.signature(check).parameters[key].default
    kind = Sequence if isinstance(default, tuple) else int if default is None else type(default)
    if isinstance(value, bool) or not isinstance(value, kind):
        raise MisuseError(f"{key}={value!r}; the default is {default!r}")
