"""The class of each cell: why counting its credits is enough, or what stands against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.analysis.streams import DOWN, UP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asyncsim.analysis.group import Suspect
    from asyncsim.analysis.streams import History, Streams, Wait

MONOTONE = "monotone: it is only added to"
ONLY_TAKEN = "monotone: it is only subtracted from"
SELF_CLEANING = "self-cleaning: only the actor that waits subtracts from it"
COUNTED_DOWN = "counted down: only the actor that waits adds to it"
EPOCHS = "epochs by ordered Sets"
KINDS = "updates that are no sums, each in its order with those of other kinds and with the waits that they may undo"
ORDERED = "subtractions by others, each ordered with every wait"
EITHER_WAY = "waits for more and for less: changes by others against a wait are ordered with it, or never matter to it"
OUTSIDE = "outside the theory"


@dataclass(frozen=True, slots=True)
class CellClass:
    """Cells of one signal that the analysis could treat alike.

    Args:
        signal: the signal.
        cells: how many of its cells, over all ranks, were used so.
        name: one of the classes above.
        why: for cells outside the theory, what was found; else empty.

    """

    signal: str
    cells: int
    name: str
    why: str = ""

    def __str__(self) -> str:
        count = f"{self.cells} cell{'s' if self.cells > 1 else ''}"
        return f"{self.signal}: {count}, {self.name}{f' ({self.why})' if self.why else ''}"


def classes_of(streams: Streams, flags: Iterable[Suspect], undetermined: Iterable[Wait]) -> list[CellClass]:
    """Return the classes of all cells that the run used, signal by signal.

    Args:
        streams: of the run.
        flags: what was found against its signals; of several about one cell the first counts.
        undetermined: the tests whose answer depends on the schedule.

    """
    against: dict[int, str] = {test.slot: "the answer of a test depends on the schedule" for test in undetermined}
    for flag in flags:
        cell = streams.event(flag.places[0]).op.cell
        if cell is not None:
            against.setdefault(cell.slot, flag.kind)
    counts: dict[tuple[str, str, str], int] = {}
    for slot in sorted(streams.histories):
        history = streams.histories[slot]
        why = against.get(slot, "")
        key = (history.cell.signal, OUTSIDE if why else _class(streams, history), why)
        counts[key] = counts.get(key, 0) + 1
    return [CellClass(signal, cells, name, why) for (signal, name, why), cells in counts.items()]


def _class(streams: Streams, history: History) -> str:
    if history.sets:
        return EPOCHS
    if not history.is_sum:
        return KINDS
    if not history.against(1):
        return MONOTONE
    if not history.against(-1):
        return ONLY_TAKEN
    ways = {wait.way for wait in history.waits}
    own = all(
        streams.relation(wait.place, place) != "free" for wait in history.waits for place in history.against(wait.sign)
    )
    if ways <= {UP}:
        return SELF_CLEANING if own else ORDERED
    return COUNTED_DOWN if own and ways == {DOWN} else EITHER_WAY
