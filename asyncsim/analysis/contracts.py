"""What the run itself shows to be broken: loads of unwritten elements, credits left over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.analysis.group import Suspect
from asyncsim.trace.event import COMPLETE
from asyncsim.trace.layout import SignalLayout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.analysis.streams import Place, Streams


def unwritten_reads(streams: Streams) -> Iterator[Suspect]:
    """Yield each operation that read elements which nobody had written."""
    for number, stream in enumerate(streams.events):
        for index, event in enumerate(stream):
            if event.unwritten:
                region = event.op.accesses[0].region

                def why(places: tuple[Place, ...]) -> str:
                    event = streams.event(places[0])
                    return f"{event.op.actor.rank} reads elements that nobody had written: {event.op}"

                memory = streams.trace.header.world.memory_of(region.window)
                yield Suspect("unwritten-read", memory, ((number, index),), (str(region),), why)


def leftover_credits(streams: Streams) -> Iterator[Suspect]:
    """Yield each cell of a self-cleaning signal that is not back at its start when all have finished."""
    if streams.ending != COMPLETE:
        return
    layouts = streams.trace.header.world.layouts
    for history in streams.histories.values():
        layout = layouts[history.cell.signal]
        if not isinstance(layout, SignalLayout):  # a word promises nothing
            continue
        changes = [place for place, _, _ in history.updates] + history.sets
        final = history.cell.wrapped(history.final) if history.cell.wrap else history.final
        left = final - layout.start
        if layout.self_cleaning and left and changes:
            last = max(changes, key=lambda place: streams.event(place).step or 0)

            def why(_: tuple[Place, ...], left: int = left, cell: str = str(history.cell)) -> str:
                return (
                    f"{cell} ends {abs(left)} {'above' if left > 0 else 'below'} its start; its signal is self-cleaning"
                )

            yield Suspect("leftover-credit", history.cell.signal, (last,), (str(history.cell),), why)
