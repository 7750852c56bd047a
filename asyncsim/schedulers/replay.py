"""Replay: the recorded schedule, choice by choice, and never another one.

Source: shuttle's ReplayScheduler. How this differs: it is strict. Where the kernel does something
else than the record says, there is no schedule to follow any more, so it raises and says at which
step; going on with some other choice would show a run that never was.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from asyncsim.trace.errors import DivergenceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.event import Event
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


class Replay:
    """The given choices.

    Args:
        choices: the actors by name, step by step.
        events: what was recorded, step by step; then the operations must be the same too.

    Raises (when it chooses):
        DivergenceError: the actor is not ready, its operation is another one, or the schedule has
            ended and the run goes on.

    """

    __slots__ = ("_choices", "_events", "_step")

    def __init__(self, choices: Sequence[str], events: Sequence[Event] | None = None) -> None:
        self._choices = choices
        self._events = events
        self._step = 0

    def __str__(self) -> str:
        return "replay"

    def begin(self, actors: Sequence[Actor]) -> None:  # noqa: ARG002 - the protocol's
        """Start a run."""
        self._step = 0

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return what was chosen then."""
        step = self._step
        if step >= len(self._choices):
            raise DivergenceError(
                f"the schedule ends here, after {step} steps, but the run goes on: {_listed(ready)}", step=step
            )
        name = self._choices[step]
        recorded = self._events[step].op if self._events is not None and step < len(self._events) else None
        for op in ready:
            if op.actor.name == name:
                if recorded is not None and not same_op(recorded, op):
                    raise DivergenceError(f"actor {name}: recorded: {recorded}; met: {op}", step=step)
                self._step = step + 1
                return op
        doing = "" if recorded is None else f" ({recorded})"
        raise DivergenceError(f"actor {name}{doing} was next, but is not ready; ready: {_listed(ready)}", step=step)


def same_op(a: Op, b: Op) -> bool:
    """Say whether two operations, perhaps of different worlds, are the same: who, what, where, how much.

    What a store writes is not compared: a recorded operation does not carry its payload.

    Args:
        a: an operation, of one run.
        b: another, of the same run or another one; actors and memory are compared by name.

    """
    return _WHAT(a) == _WHAT(b) and a.actor.name == b.actor.name and _places(a) == _places(b)


def _places(op: Op) -> list[tuple[object, ...]]:
    places: list[tuple[object, ...]] = [
        (access.mode, access.atomic, access.region.window, access.region.owner, access.region.index, access.region.part)
        for access in op.accesses
    ]
    return places if op.cell is None else [*places, (op.cell.signal, op.cell.owner, op.cell.index)]


_WHAT = attrgetter("kind", "how", "amount", "consume", "late", "relaxed", "link", "deferred", "said")


def _listed(ready: Sequence[Op]) -> str:
    shown = [f"{op.actor.name} ({op})" for op in ready[:4]]
    return ", ".join(shown) + (f" and {len(ready) - len(shown)} more" if len(ready) > len(shown) else "")
