"""SURW, selectively uniform random walk: every order of the operations that conflict, with about the same chance.

Source: Zhao, Wolff, Mathur and Roychoudhury, "Selectively Uniform Concurrency Testing", ASPLOS 2025.
A random walk prefers orders in which everybody goes on at the same pace. Here the next one to act on
a chosen place is drawn with a weight: how many actions there it has left. Then each order of these
actions is as likely as another; all other operations are drawn plainly in between.

How this differs: what is chosen is one place at which operations of two actors conflict, another one
in each run, and how often each actor acts there is learned from the run before; the paper profiles
both in advance. The first run knows nothing, and is a plain random walk. Waits distort the
uniformity: who is drawn, and cannot go on, gives its turn to another one that can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.schedulers.seeds import checked, generator
from asyncsim.trace.op import change_by
from asyncsim.trace.region import READ

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor

    Place = tuple[bool, int]


class Surw:
    """A uniform walk over the orders of the operations at one contended place.

    Args:
        seed: of the dice; runs of one scheduler differ.

    """

    __slots__ = ("_changed", "_dice", "_intended", "_left", "_place", "_runs", "_seed", "_seen")

    def __init__(self, seed: int = 0) -> None:
        self._seed = checked("surw", "seed", seed)
        self._runs = 0
        self._dice: Callable[[], float] = generator(seed, 0).random
        self._seen: dict[Place, dict[int, int]] = {}  # how often each actor, by its order, acted at a place
        self._changed: set[Place] = set()
        self._left: dict[int, int] = {}
        self._place: Place | None = None
        self._intended: int | None = None

    def __str__(self) -> str:
        return f"surw:seed={self._seed}"

    def begin(self, actors: Sequence[Actor]) -> None:  # noqa: ARG002 - the protocol's
        """Start a run: choose a place among those that were contended in the last one."""
        self._dice = generator(self._seed, self._runs).random
        self._runs += 1
        contended = sorted(place for place in self._changed if len(self._seen[place]) > 1)
        self._place = contended[int(self._dice() * len(contended))] if contended else None
        self._left = {} if self._place is None else self._seen[self._place]
        self._seen, self._changed = {}, set()
        self._intended = None

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return any operation elsewhere, or that of the actor who is to act at the place next."""
        here = [op for op in ready if self._place in _places(op)]
        elsewhere = [op for op in ready if op not in here]
        if here and self._intended is None:
            self._intended = self._drawn({op.actor.order: 0 for op in here} | self._left)
        intended = [op for op in here if op.actor.order == self._intended]
        free = elsewhere + intended
        if not free:  # the one drawn cannot get here now
            intended = [here[int(self._dice() * len(here))]]
            free = intended
        op = free[int(self._dice() * len(free))]
        if op in intended:
            order = op.actor.order
            self._left[order] = max(self._left.get(order, 0) - 1, 0)
            self._intended = None
        self._note(op)
        return op

    def _drawn(self, weights: dict[int, int]) -> int:
        """Draw an actor by how much it has left; any with the same chance if the last run misled."""
        if not any(weights.values()):
            weights = dict.fromkeys(weights, 1)
        at = self._dice() * sum(weights.values())
        for order, weight in weights.items():
            at -= weight
            if at < 0:
                return order
        return next(reversed(weights))  # rounding

    def _note(self, op: Op) -> None:
        order = op.actor.order
        changed = {(False, access.region.slot) for access in op.accesses if access.mode != READ}
        if op.cell is not None and change_by(op) is not None:
            changed.add((True, op.cell.slot))
        self._changed |= changed
        for place in _places(op):
            counts = self._seen.setdefault(place, {})
            counts[order] = counts.get(order, 0) + 1


def _places(op: Op) -> set[Place]:
    """Return the cell (True) and the windows (False) an operation touches, by slot."""
    places = {(False, access.region.slot) for access in op.accesses}
    return places if op.cell is None else places | {(True, op.cell.slot)}
