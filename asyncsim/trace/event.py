"""Events: what happened in a step; and a trace, all the steps of a run with their header and footer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asyncsim.trace.kinds import COMPARING
from asyncsim.trace.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.op import Op
    from asyncsim.trace.world import World

Site = tuple[str, ...]
"""Where an operation stands in the source: the author's ``file:line`` first, then the line inside a composite."""

COMPLETE, DEADLOCK, STEP_LIMIT, OVERFLOW, STOPPED = "complete", "deadlock", "step-limit", "overflow", "stopped"
ENDINGS = (COMPLETE, DEADLOCK, STEP_LIMIT, OVERFLOW, STOPPED)
"""How a run can end; *stopped* by an exception or an interrupt."""


@dataclass(slots=True, eq=False)
class Event:
    """One step: an operation, where it came from, and what it met.

    (Not frozen, for the same reason as `Op`.)

    Args:
        step: the number of the step, from 0; None for an operation still pending at the end.
        op: the operation.
        call: which call of the kernel, from 0.
        phase: the label of the innermost ``rank.phase``, with those around it: ``"reduce/row"``.
        at: the source lines.
        data: the bytes that were moved: loaded, stored, added or copied. From a file a large
            value comes back as its `Digest`. None for operations on cells.
        have: the cell's value: after a notify; as a wait, test, read, atomic or compare_exchange saw it, which is
            what it returns if it returns one; and at the end for what is pending. None for operations on windows.
        unwritten: it read elements that nobody had written.
        time: when it was done, in seconds of virtual time; None under a scheduler that has no clock.

    """

    step: int | None
    op: Op
    call: int
    phase: str
    at: Site
    data: bytes | Digest | None = None
    have: int | None = None
    unwritten: bool = False
    time: float | None = None

    @property
    def need(self) -> int | None:
        """What the cell is compared with; None where nothing is compared."""
        return self.op.amount if self.op.kind in COMPARING else None


@dataclass(frozen=True, slots=True)
class Digest:
    """The SHA-256 (its first 16 hex digits) of a value too large for a trace line, and its elements."""

    hex: str
    elements: int


@dataclass(slots=True, eq=False)
class Header:
    """What a run was asked to do: enough, with the choices, to do it again.

    Args:
        kernel: ``module:name``, or ``path/to/file.py:name``.
        source: the first 16 hex digits of the SHA-256 of the kernel's source file.
        world: ranks, actors, windows and signals.
        calls: how many calls back to back.
        memory: the memory model.
        seed: of the inputs.
        scheduler: who chose, as text: ``"random:seed=3"``.
        edits: what was removed from or added to the kernel.
        version: the asyncsim that recorded it.
        recorded: "elsewhere" if it was no asyncsim, but a real kernel that was instrumented.
        max_steps: how long a run may be, if the case says so itself; a token keeps it, a file does not.

    """

    kernel: str
    source: str
    world: World
    calls: int
    memory: str
    seed: int
    scheduler: str
    edits: tuple[str, ...] = ()
    version: str = VERSION
    recorded: str = ""
    max_steps: int | None = None

    @property
    def ranks(self) -> int:
        """P."""
        return self.world.ranks


@dataclass(frozen=True, slots=True)
class Collective:
    """That a task takes part in a collective: said by itself, and compared with what its peers say.

    Args:
        actor: the name of the task.
        rank: its rank in the world.
        group: the name of the group that calls it together; "world" for all ranks.
        members: the ranks of that group, in the world.
        call: which call of the kernel, from 0.
        name: the collective: "barrier".
        facts: what must be the same on all members, as text by name: op, shape, dtype, root.
        at: the source lines.

    """

    actor: str
    rank: int
    group: str
    members: tuple[int, ...]
    call: int
    name: str
    facts: tuple[tuple[str, str], ...]
    at: Site

    def __str__(self) -> str:
        """Write it as a call: ``all_reduce(dtype=float32, op=Sum)``."""
        return f"{self.name}({', '.join(f'{key}={value}' for key, value in self.facts)})"


@dataclass(slots=True, eq=False)
class Footer:
    """How a run ended.

    Args:
        ending: one of `ENDINGS`.
        outputs: a digest of every output, by call and rank; None where a rank did not finish.
        pending: the operations that stood at the gate at the end.
        verdict: what was concluded, if anything was.
        findings: as JSON objects.
        collectives: what the tasks said they take part in, in the order of the run.

    """

    ending: str
    outputs: list[list[str | None]]
    pending: Sequence[Event] = ()
    verdict: str | None = None
    findings: list[dict[str, Any]] = field(default_factory=list)
    collectives: Sequence[Collective] = ()


@dataclass(slots=True, eq=False)
class Trace:
    """A run as data: header, one event a step, footer (None while the run goes on)."""

    header: Header
    events: Sequence[Event] = field(default_factory=list)
    footer: Footer | None = None

    @property
    def choices(self) -> list[str]:
        """The names of the actors, step by step: the schedule."""
        return [event.op.actor.name for event in self.events]

    @property
    def ending(self) -> str | None:
        """How the run ended; None if that is not known."""
        return None if self.footer is None else self.footer.ending
