"""The conditions under which counting credits is enough, seen from cuts alone. An absent cut proves nothing."""

from __future__ import annotations

import operator
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from asyncsim.certify.cells import can_fail_again, can_pass, passes, values
from asyncsim.certify.proof import ALWAYS
from asyncsim.certify.reading import RejectedError

if TYPE_CHECKING:
    from asyncsim.certify.cells import Epoch
    from asyncsim.certify.events import Event
    from asyncsim.certify.proof import Proof, Window


def sets_are_ordered(proof: Proof) -> None:
    """S1: a Set comes before or after each other change of its cell, and so do updates of two kinds."""
    for epochs in proof.history:
        sets = [opener for epoch in epochs for opener in epoch.openers if opener.sets]
        changes = sets + [add for epoch in epochs for add in epoch.adds]
        for x in sets:
            for y in changes:
                first, second = sorted((x, y), key=operator.attrgetter("step"))
                if not proof.before(first, second):
                    raise RejectedError(f"nothing orders {first} and {second}, one of which Sets the cell of both")


def kinds_are_ordered(proof: Proof) -> None:
    """S1: updates of two kinds do not commute, so they come one after the other."""
    for epochs in proof.history:
        updates = [add for epoch in epochs for add in epoch.adds]
        if len({add.update for add in updates}) > 1:
            for first, second in combinations(sorted(updates, key=operator.attrgetter("step")), 2):
                if first.update != second.update and not proof.before(first, second):
                    raise RejectedError(f"nothing orders {first} and {second}, which do not commute")


def threats_are_ordered(proof: Proof) -> None:
    """S2: a change against a wait's direction that is not sure for it is ordered with it, in a strict sense."""
    for wait in proof.run:
        if wait.kind == "wait" and proof.ways.get(wait) != ALWAYS:
            sign = proof.sign(wait)
            against = [add for epoch in proof.history[wait.cell] for add in epoch.adds if epoch.opposes(add, sign)]
            for add in (add for add in against if proof.relation(wait, add) == "free"):
                if not strictly_ordered(proof, add, wait):
                    raise RejectedError(f"{add} can undo what {wait} waits for")


def strictly_ordered(proof: Proof, threat: Event, wait: Event) -> bool:
    """Say whether the threat has come whenever the wait is *reached*, or the wait has passed when it can.

    That it has come whenever the wait passes is not enough: it would be pending, and could miss its moment.

    Args:
        proof: the run and its cuts.
        threat: a change of the wait's cell that is against its direction.
        wait: the wait.

    """
    return proof.before_reaching(threat, wait) or proof.before(wait, threat)


def waits_are_stable(proof: Proof) -> None:
    """S3: a pending wait does not turn from true to false; and it passes only in the epochs in which it may."""
    for wait in proof.run:
        if wait.kind != "wait" or proof.ways.get(wait) == ALWAYS:
            continue
        could = False
        for window in proof.current(wait):
            number, epoch = window.number, window.epoch
            if overshoots(proof, wait, window):
                raise RejectedError(f"{wait} can be overshot")
            if could and is_undone(proof, wait, number, epoch):
                raise RejectedError(f"{wait} can be undone by {epoch.opener}")
            if epoch.sums:
                can = any(passes(wait, value) for value in values(wait, *extremes(window)))
            else:
                can = can_pass(wait, epoch.kind, window.sure, window.come)
            if can and not may_pass(proof, wait, number):
                raise RejectedError(f"{wait} can pass in epoch {number}, too")
            could = could or can


def overshoots(proof: Proof, wait: Event, window: Window) -> bool:
    """Say whether a comparison can turn from true to false as the value moves in the wait's direction.

    Args:
        proof: the run and its cuts.
        wait: its comparison is looked at.
        window: an epoch, with what can come.

    """
    if not window.epoch.sums:
        return can_fail_again(wait, window.epoch.kind, window.sure, window.come)
    on_the_way = values(wait, *extremes(window))[:: proof.sign(wait)]
    return any(passes(wait, a) and not passes(wait, b) for a, b in pairwise(on_the_way))


def extremes(window: Window) -> tuple[int, int]:
    """Return the least and the most that can be seen in an epoch of sums.

    Args:
        window: the epoch, with what can come.

    """
    low, high = sorted((window.sure, window.sure + sum(add.change for add in window.come)))
    return low, high


def is_undone(proof: Proof, wait: Event, number: int, epoch: Epoch) -> bool:
    """Say whether the Set that opens an epoch makes a comparison false that was true before.

    Args:
        proof: the run and its cuts.
        wait: of the cell.
        number: of the epoch, from 0.
        epoch: the one of that number; what it begins with before any Set undoes nothing.

    """
    return epoch.opener is not None and not passes(wait, proof.sure(wait, number))


def may_pass(proof: Proof, wait: Event, number: int) -> bool:
    """Say whether the cuts were closed with this wait open in that epoch.

    Args:
        proof: the run and its cuts.
        wait: of the cell.
        number: of an epoch of that cell, from 0.

    """
    return len(proof.history[wait.cell]) == 1 or number in proof.epochs.get(wait, ())


def answers_are_constant(proof: Proof) -> None:
    """S4: what a program gets is the same in every schedule; and a wait that is claimed always to be true is."""
    for event in proof.run:
        if event.gives == "value":
            value_is_constant(proof, event)
        always = proof.ways.get(event) == ALWAYS
        if event.gives == "answer" or always:
            answers = {
                passes(event, value)
                for _, epoch in proof.open(event)
                for value in values(event, *proof.extent(event, epoch))
            }
            if len(answers) != 1 or (always and False in answers):
                raise RejectedError(f"the answer of {event} depends on the schedule")


def value_is_constant(proof: Proof, event: Event) -> None:
    """Refuse an operation whose program gets a value that can differ; of a wait only what lets it pass counts.

    Args:
        proof: the run and its cuts.
        event: a read, an atomic, or a wait with a result.

    Raises:
        RejectedError: it can differ.

    """
    seen: set[int] = set()
    for _, epoch in proof.open(event):
        low, high = proof.extent(event, epoch)
        waits = event.kind == "wait"
        seen |= {value for value in values(event, low, high) if passes(event, value)} if waits else {low, high}
    if len(seen) != 1:
        raise RejectedError(f"what {event} gives depends on the schedule")


def cells_keep_to_their_range(proof: Proof) -> None:
    """S5: no cell leaves its range, whichever of its adds have come."""
    for (_, _, lowest, highest), epochs in zip(proof.program.cells, proof.history, strict=True):
        for epoch in epochs:
            if not epoch.sums:
                continue  # what is made of bits, or one of two, is in the range
            low = epoch.base + sum(min(add.change, 0) for add in epoch.adds)
            high = epoch.base + sum(max(add.change, 0) for add in epoch.adds)
            if not lowest <= low <= high <= highest and len(epochs) == 1 and not proof.program.late:
                low, high = _bounds(proof, epoch, low, high)
            if not lowest <= low <= high <= highest:
                raise RejectedError(f"a cell of {lowest} to {highest} can hold {low} to {high}")


def _bounds(proof: Proof, epoch: Epoch, low: int, high: int) -> tuple[int, int]:
    """Return tighter bounds where one actor alone subtracts, or alone adds: the extremes lie between its own."""
    for sign in (1, -1):
        who = {add.thread for add in epoch.adds if add.change * sign < 0}
        if len(who) == 1:
            least, most = _extremes(proof, epoch, who.pop(), sign)
            return (least, most) if sign > 0 else (-most, -least)
    return low, high


def _extremes(proof: Proof, epoch: Epoch, owner: int, sign: int) -> tuple[int, int]:
    """Return the least and the most of a cell (upside down, if the sign is -1) from which its owner alone takes."""
    own = sorted((add for add in epoch.adds if add.thread == owner), key=operator.attrgetter("index"))
    others = [add for add in epoch.adds if add.thread != owner]
    value = sign * epoch.base
    lows, highs = [value], [value + sign * sum(add.change for add in epoch.adds)]
    for add in own:
        cut = proof.hold_of(add)
        highs.append(value + sign * sum(other.change for other in others if cut is None or cut.has(other)))
        value += sign * add.change
        lows.append(value + sign * sum(other.change for other in others if proof.before(other, add)))
    return min(lows), max(highs)
