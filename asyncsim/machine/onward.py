"""Effects for a look beyond a hang: from there on nobody waits, to see what those who wait would have done next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.trace.kinds import POLLING, WAITING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from asyncsim.machine.gate import Effects
    from asyncsim.trace.op import Op


_MET = WAITING | POLLING


class Onward:
    """The effects of a memory model, but for the waits and polls that nobody let pass, and all that come after them.

    Args:
        effects: of the model.
        passed: how many waits and polls each actor has behind it where the run hangs, by name.

    """

    def __init__(self, effects: Effects, passed: Mapping[str, int]) -> None:
        """Let nothing pass yet that would not."""
        self.late = effects.late
        self.seen = effects.seen
        self.peek = effects.peek
        self.arrive: Callable[[Op], None] = effects.arrive
        self.fresh: Callable[[], Sequence[Op]] = effects.fresh
        self._effects = effects
        self._passed = passed
        self._met: dict[str, tuple[int, Op | None]] = {}

    @property
    def table(self) -> Mapping[str, Callable[[Op], Any]]:
        """What operations do, which is as ever."""
        return self._effects.table

    def passes(self, op: Op) -> bool:
        """Say whether a wait, poll or quiet can go on now: it can, if it may, or stands where the run hangs."""
        if self._effects.passes(op):
            self._count(op)
            return True
        if op.kind not in _MET or self._count(op) <= self._passed.get(op.actor.name, 0):
            return False
        if op.kind in POLLING:
            op.payload = _anything  # it is asked once more as the poll goes on
        return True

    def _count(self, op: Op) -> int:
        """Return the number of this wait or poll among its actor's, from 1."""
        if op.kind not in _MET:
            return 0
        number, last = self._met.get(op.actor.name, (0, None))
        if last is not op:
            number += 1
            self._met[op.actor.name] = number, op
        return number


def _anything(_: object) -> bool:
    return True
