"""Must-happen-before of a run: clocks where they apply, frontiers elsewhere; and the way each wait is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.analysis.clocks import Clocks, required_notifies
from asyncsim.analysis.edges import edges_of, within_ranks
from asyncsim.analysis.frontiers import Frontiers
from asyncsim.analysis.guards import Guards, can_pass, first_way, sure_value
from asyncsim.analysis.precede import may_be_current, most_value, precedes
from asyncsim.analysis.steady import constant, is_disturbed
from asyncsim.analysis.streams import ALWAYS, DOWN, NEVER, UP
from asyncsim.trace.cells import UNSTABLE
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.analysis.arrivals import Meeting
    from asyncsim.analysis.edges import Edges
    from asyncsim.analysis.polls import Polls
    from asyncsim.analysis.precede import Order
    from asyncsim.analysis.streams import Place, Streams, Wait

ORDERS = ("auto", "clocks", "frontiers")


def order_of(
    streams: Streams, how: str = "auto", polls: Polls | None = None, *, meetings: Sequence[Meeting] = ()
) -> tuple[Order, Guards]:
    """Return the order of a run, with the guards it rests on; set the way in which each of its waits is read.

    Args:
        streams: the run.
        how: "auto", or one of the two ways by name.
        polls: its polls, of which those that no write forces are given up; None: they stop nobody.
        meetings: in all schedules that count the same one is the last of each of them.

    Raises:
        MisuseError: clocks were asked for, and some cell has alternatives.

    """
    if how not in ORDERS:
        raise MisuseError(f"order={how!r}; use one of {', '.join(ORDERS)}")
    waits = [wait for history in streams.histories.values() for wait in history.waits]
    for wait in waits:
        wait.way = first_way(streams, wait)
    structure = edges_of(streams)
    for meeting in meetings:
        structure.setdefault(meeting.last, []).extend(meeting.others)
    ways = _Ways(streams, waits)
    while True:
        edges = {place: list(needs) for place, needs in structure.items()}
        for place, source in polls.edges() if polls is not None else ():
            edges.setdefault(place, []).append(source)
        order, guards = _order(streams, edges, clocks=how != "frontiers")
        if not ways.change(order) and (polls is None or not polls.give_up(order, structure)):
            break
    if how == "clocks" and not isinstance(order, Clocks):
        raise MisuseError(
            "clocks do not apply: some awaited cell has Sets, several producers or foreign changes against its "
            "waits, or there are streams or landings"
        )
    return order, guards


class _Ways:
    """In what way to read waits that something disturbs: either direction is sound, and so is a way that holds good.

    What a way lets others do is seen only when it is taken: one that does not hold good then is given up for ever.
    """

    def __init__(self, streams: Streams, waits: list[Wait]) -> None:
        self._streams = streams
        self._waits = waits
        self._tried: set[tuple[Place, str]] = set()

    def change(self, order: Order) -> bool:
        """Read some waits in another way, after what this order says; say whether any."""
        streams = self._streams
        wrong = [
            wait for wait in self._waits if wait.way in (ALWAYS, NEVER) and constant(streams, order, wait) != wait.way
        ]
        for wait in wrong:
            wait.way = first_way(streams, wait)
        disturbed = [wait for wait in self._waits if wait not in wrong and is_disturbed(streams, order, wait)]
        constants = [(wait, way) for wait in disturbed if (way := constant(streams, order, wait)) is not None]
        read = [self._read(wait, way) for wait, way in constants]
        if wrong or any(read):
            return True
        turning = [wait for wait in disturbed if wait.event.op.how in UNSTABLE]
        read = [self._read(wait, UP if wait.way == DOWN else DOWN) for wait in turning]
        return any(read)

    def _read(self, wait: Wait, way: str) -> bool:
        """Read a wait in this way, unless that was tried before."""
        if (wait.place, way) in self._tried:
            return False
        self._tried.add((wait.place, way))
        wait.way = way
        return True


def _order(streams: Streams, edges: Edges, *, clocks: bool) -> tuple[Order, Guards]:
    guards = Guards(streams)
    # Clocks know one producer a cell and program order; landings, starts and joins are edges.
    if clocks and not edges and (required := required_notifies(streams, guards)) is not None:
        return Clocks(streams, required), guards
    within = within_ranks(streams)
    while True:
        order = _frontiers(streams, guards, edges)
        # Without these edges everybody only gets further, so what is in order now stays in order with them.
        sure = [(x, y) for x, y in within if precedes(order, streams.issue(x), streams.issue(y))]
        if not sure:
            return order, guards
        for x, y in sure:
            edges.setdefault(y, []).append(x)
            within.remove((x, y))
        guards = Guards(streams)


def _frontiers(streams: Streams, guards: Guards, edges: Edges) -> Frontiers:
    """More epochs in which waits may pass let everybody run further, which may open more: to a fixpoint."""
    while True:
        order = Frontiers(streams, guards, edges)
        if not _grow(streams, guards, order):
            return order


def _grow(streams: Streams, guards: Guards, order: Order) -> bool:
    grew = False
    for wait in guards.waits.values():
        epochs = streams.histories[wait.slot].epochs
        if len(epochs) == 1:
            continue
        for epoch in epochs:
            if epoch.number in guards.goals[wait.place] or not may_be_current(streams, order, wait, epoch):
                continue
            sure = sure_value(streams, wait, epoch)
            if can_pass(wait, epoch, sure, most_value(streams, order, wait, epoch, sure)):
                grew |= guards.admit(wait, epoch)
    return grew
