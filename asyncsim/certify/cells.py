"""What becomes of a cell: updates, epochs, and what a comparison can say when only some of the updates have come.

Inside an epoch all updates are of one kind, and commute. Of sums only how much has come matters; of the other kinds
(bits that are set or cleared, the larger, the smaller) which: then a comparison can hold after some of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from asyncsim.certify.updates import ADDS, COMPARE, SET, UPDATES, XOR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asyncsim.certify.events import Event


@dataclass(slots=True, eq=False)
class Epoch:
    """The life of a cell from one Set to the next, or while its updates are of one kind, in the order of the run.

    Args:
        base: what it starts with.
        openers: each of them begins it: a Set, or its updates; none: it is there from the start.
        adds: its updates, a Set apart.
        kind: of these; empty while there are none.

    """

    base: int
    openers: list[Event] = field(default_factory=list)
    adds: list[Event] = field(default_factory=list)
    kind: str = ""

    @property
    def opener(self) -> Event | None:
        """The first that begins it."""
        return self.openers[0] if self.openers else None

    @property
    def sums(self) -> bool:
        """Whether its updates add."""
        return self.kind in ("", ADDS)

    @property
    def value(self) -> int:
        """What the cell holds after all of it."""
        return fold(self.kind, self.base, self.adds)

    def way(self, update: Event) -> int:
        """Return 1 if an update can only raise the cell, -1 if it can only lower it; 0: neither is known."""
        if self.sums:
            return (update.change > 0) - (update.change < 0)
        if self.kind in ("Max", "Min"):
            return 1 if self.kind == "Max" else -1
        signs = {add.change < 0 for add in self.adds}
        if self.kind == "Or" and (self.base < 0 or signs == {False}):
            return 1  # the sign bit is there, or is never set
        if self.kind == "And" and (self.base >= 0 or signs == {True}):
            return -1  # it is not there, or is never cleared
        return 0

    def helps(self, update: Event, sign: int) -> bool:
        """Say whether an update can only bring the cell in a direction.

        Args:
            update: of this epoch.
            sign: 1: upwards; -1: downwards.

        """
        return self.way(update) == sign

    def opposes(self, update: Event, sign: int) -> bool:
        """Say whether an update can take the cell against a direction; one that adds nothing does not.

        Args:
            update: of this epoch.
            sign: 1: upwards; -1: downwards.

        """
        return self.way(update) != sign and not (self.sums and not update.change)


def take(epochs: list[Epoch], event: Event, *, awaited: bool) -> None:
    """Let an event change a cell.

    Args:
        epochs: of the cell, so far.
        event: its update is made.
        awaited: somebody waits for the cell: then bits that are turned over are as good as set.

    """
    last = epochs[-1]
    if event.update == XOR and awaited:
        event.change = last.value ^ event.change
    if event.update == SET or (event.update == XOR and awaited):
        event.sets = True
        epochs.append(Epoch(event.change, [event]))
    elif last.kind in ("", event.update):
        last.kind = event.update
        last.adds.append(event)
    else:
        updates = [event]
        epochs.append(Epoch(last.value, updates, updates, event.update))


def fold(kind: str, value: int, updates: Iterable[Event]) -> int:
    """Return what a cell holds after updates of one kind.

    Args:
        kind: of them; empty where there are none.
        value: that it holds before.
        updates: in any order.

    """
    return reduce(lambda held, update: UPDATES[kind](held, update.change), updates, value) if kind else value


def comes_to(kind: str, value: int, updates: list[Event], wanted: int) -> bool:
    """Say whether some of the updates, of a kind that is no sum, can bring a cell exactly to a value.

    Args:
        kind: of them.
        value: that the cell holds before.
        updates: that can come.
        wanted: what it has to come to.

    """
    fitting = [update for update in updates if UPDATES[kind](wanted, update.change) == wanted]
    return fold(kind, value, fitting) == wanted


def can_pass(wait: Event, kind: str, value: int, updates: list[Event]) -> bool:
    """Say whether a comparison can hold after some of the updates, of a kind that is no sum, in its direction.

    Args:
        wait: what compares.
        kind: of the updates.
        value: that the cell holds before.
        updates: that can come; more of them only help.

    """
    if wait.how == "Eq":
        return comes_to(kind, value, updates, wait.amount)
    return passes(wait, value) or passes(wait, fold(kind, value, updates))


def can_fail_again(wait: Event, kind: str, value: int, updates: list[Event]) -> bool:
    """Say whether a comparison can hold and then no more, as such updates come.

    Args:
        wait: what compares.
        kind: of the updates.
        value: that the cell holds before.
        updates: that can come.

    """
    if wait.how not in ("Eq", "Ne") or not comes_to(kind, value, updates, wait.amount):
        return False
    return (value if wait.how == "Ne" else fold(kind, value, updates)) != wait.amount


def passes(wait: Event, value: int) -> bool:
    """Say whether a wait or test is true of a value.

    Args:
        wait: a wait or a test.
        value: of its cell.

    """
    return COMPARE[wait.how](value, wait.amount)


def values(wait: Event, low: int, high: int) -> list[int]:
    """Return `low`, `high`, and the values between them where the comparison can change.

    Args:
        wait: a wait or a test.
        low: the least.
        high: the most.

    """
    return sorted({low, high, *(wait.amount + n for n in (-1, 0, 1) if low < wait.amount + n < high)})
