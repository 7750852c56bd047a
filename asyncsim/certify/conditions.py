"""The conditions under which counting credits is enough, seen from cuts alone. An absent cut proves nothing."""

from __future__ import annotations

import operator
from itertools import pairwise
from typing import TYPE_CHECKING

from asyncsim.certify.proof import passes, values
from asyncsim.certify.reading import RejectedError

if TYPE_CHECKING:
    from asyncsim.certify.events import Event
    from asyncsim.certify.proof import Epoch, Proof


def sets_are_ordered(proof: Proof) -> None:
    """S1: a Set comes before or after each other change of its cell."""
    for epochs in proof.history:
        sets = [epoch.opener for epoch in epochs if epoch.opener is not None]
        changes = sets + [add for epoch in epochs for add in epoch.adds]
        for x in sets:
            for y in changes:
                first, second = sorted((x, y), key=operator.attrgetter("step"))
                if not proof.before(first, second):
                    raise RejectedError(f"nothing orders {first} and {second}, one of which Sets the cell of both")


def subtractions_are_ordered(proof: Proof) -> None:
    """S2: a subtraction that is not sure for a wait (or test) is ordered with it, in a strict sense."""
    for wait in proof.run:
        if wait.kind in ("wait", "test"):
            for add in (add for epoch in proof.history[wait.cell] for add in epoch.adds):
                if add.change < 0 and proof.relation(wait, add) == "free" and not strictly_ordered(proof, add, wait):
                    raise RejectedError(f"{add} can take away what {wait} waits for")


def strictly_ordered(proof: Proof, taken: Event, wait: Event) -> bool:
    """Say whether the subtraction has come whenever the wait is *reached*, or the wait has passed when it can.

    That it has come whenever the wait passes is not enough: it would be pending, and could miss its moment.
    """
    cut = proof.hold_of(taken)
    if cut is not None:
        reached = cut.positions[wait.thread] >= wait.index and all(cut.has(other) for other in wait.needs)
        if not reached:
            return True
    return proof.before(wait, taken)


def waits_are_stable(proof: Proof) -> None:
    """S3: a pending wait does not turn from true to false; and it passes only in the epochs in which it may."""
    for wait in proof.run:
        if wait.kind != "wait":
            continue
        could = False
        for number, epoch, low, high in proof.current(wait):
            if overshoots(wait, low, high):
                raise RejectedError(f"{wait} can be overshot")
            if could and is_undone(wait, epoch, low):
                raise RejectedError(f"{wait} can be undone by {epoch.opener}")
            can = any(passes(wait, value) for value in values(wait, low, high))
            if can and not may_pass(proof, wait, number):
                raise RejectedError(f"{wait} can pass in epoch {number}, too")
            could = could or can


def overshoots(wait: Event, low: int, high: int) -> bool:
    """Say whether a comparison can turn from true to false as the value grows."""
    return any(passes(wait, a) and not passes(wait, b) for a, b in pairwise(values(wait, low, high)))


def is_undone(wait: Event, epoch: Epoch, low: int) -> bool:
    """Say whether the Set that opens an epoch makes a comparison false that was true before."""
    return epoch.opener is not None and not passes(wait, low)


def may_pass(proof: Proof, wait: Event, number: int) -> bool:
    """Say whether the cuts were closed with this wait open in that epoch."""
    return len(proof.history[wait.cell]) == 1 or number in proof.epochs.get(wait, ())


def tests_are_answered(proof: Proof) -> None:
    """S4: a test gives the same answer in every schedule."""
    for test in proof.run:
        if test.kind == "test":
            answers = set()
            for _, epoch, low, high in proof.current(test):
                least = low + sum(add.change for add in proof.free(test, epoch) if proof.before(add, test))
                answers |= {passes(test, value) for value in values(test, least, high)}
            if len(answers) != 1:
                raise RejectedError(f"the answer of {test} depends on the schedule")


def cells_keep_to_their_range(proof: Proof) -> None:
    """S5: no cell leaves its range, whichever of its adds have come."""
    for (_, _, lowest, highest), epochs in zip(proof.program.cells, proof.history, strict=True):
        for epoch in epochs:
            low = epoch.base + sum(min(add.change, 0) for add in epoch.adds)
            high = epoch.base + sum(max(add.change, 0) for add in epoch.adds)
            if not lowest <= low <= high <= highest and len(epochs) == 1 and not proof.program.late:
                low, high = _bounds(proof, epoch, low, high)
            if not lowest <= low <= high <= highest:
                raise RejectedError(f"a cell of {lowest} to {highest} can hold {low} to {high}")


def _bounds(proof: Proof, epoch: Epoch, low: int, high: int) -> tuple[int, int]:
    """Return tighter bounds where one actor alone subtracts: the extremes lie between its own adds."""
    who = {add.thread for add in epoch.adds if add.change < 0}
    if len(who) != 1:
        return low, high
    own = sorted((add for add in epoch.adds if add.thread in who), key=operator.attrgetter("index"))
    others = [add for add in epoch.adds if add.thread not in who]
    value, lows, highs = epoch.base, [epoch.base], [epoch.base + sum(add.change for add in epoch.adds)]
    for add in own:
        cut = proof.hold_of(add)
        highs.append(value + sum(other.change for other in others if cut is None or cut.has(other)))
        value += add.change
        lows.append(value + sum(other.change for other in others if proof.before(other, add)))
    return min(lows), max(highs)
