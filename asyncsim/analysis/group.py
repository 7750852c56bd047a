"""From suspects to findings: sides in the order of the fair run, grouped by their source sites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.analysis.streams import Streams
from asyncsim.trace.finding import KINDS, NEXT_CALL, SAME_CALL, Finding, Side

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from asyncsim.analysis.streams import Place
    from asyncsim.trace.event import Trace

EXAMPLES = 32


@dataclass(slots=True)
class Suspect:
    """One pair of operations (or one operation) that a finding is about.

    Args:
        kind: the finding's kind.
        window: the window or signal.
        places: the operations, in any order.
        regions: what each of them touches, as text; None: its only place.
        why: makes the sentence, for the sides in the order given to it. Called for the examples of a group.
        hazard: names the hazard, for the sides in the order given to it; None for none.

    """

    kind: str
    window: str
    places: tuple[Place, ...]
    regions: tuple[str | None, ...]
    why: Callable[[tuple[Place, ...]], str]
    hazard: Callable[[tuple[Place, ...]], str] | None = None


class FairOrder:
    """The order of operations in the fair run, by which sides are sorted and races are named."""

    def __init__(self, streams: Streams, fair: Trace | None) -> None:
        """Take the order from `fair`; from the run itself where there is none."""
        source = streams if fair is None else Streams(fair)
        self._steps: dict[tuple[int, int], int] = {
            (source.actors[number].order, index): event.step
            for number, stream in enumerate(source.events)
            for index, event in enumerate(stream)
            if event.step is not None
        }
        self._orders = [actor.order for actor in streams.actors]
        self._never = len(self._steps)

    def key(self, place: Place) -> tuple[int, int, int]:
        """Sort by step; what the fair run did not reach comes last."""
        return (self._steps.get((self._orders[place[0]], place[1]), self._never), *place)


def findings_of(streams: Streams, suspects: Iterable[Suspect], fair: FairOrder) -> list[Finding]:
    """Return one finding for all suspects that differ only in rank or element.

    Args:
        streams: of the run.
        suspects: in any order.
        fair: sorts the sides of a finding, and the findings of a kind.

    """
    groups: dict[tuple[object, ...], list[tuple[Suspect, tuple[int, ...]]]] = {}
    for suspect in suspects:
        by_time = tuple(sorted(range(len(suspect.places)), key=lambda n, s=suspect: fair.key(s.places[n])))  # type: ignore[misc]
        places = tuple(suspect.places[n] for n in by_time)
        events = [streams.event(place) for place in places]
        hazard = suspect.hazard(places) if suspect.hazard is not None else None
        key = (suspect.kind, hazard, _scope(streams, places), suspect.window, tuple(e.at for e in events))
        groups.setdefault(key, []).append((suspect, by_time))
    for members in groups.values():
        members.sort(key=lambda member: _time(member, fair))
    ordered = sorted(groups.values(), key=lambda members: (KINDS.index(members[0][0].kind), _time(members[0], fair)))
    return [_finding(streams, members) for members in ordered]


def _time(member: tuple[Suspect, tuple[int, ...]], fair: FairOrder) -> list[tuple[int, int, int]]:
    """Sort by when the fair run came to the sides, so that no way of finding them shows."""
    suspect, by_time = member
    return [fair.key(suspect.places[n]) for n in by_time]


def _finding(streams: Streams, members: list[tuple[Suspect, tuple[int, ...]]]) -> Finding:
    """Make the finding of one group; its first pair, in the order of the fair run, speaks for all."""
    suspect, by_time = members[0]
    places = tuple(suspect.places[n] for n in by_time)
    shown = members[:EXAMPLES]
    whys = tuple(each.why(tuple(each.places[n] for n in order)) for each, order in shown)
    return Finding(
        suspect.kind,
        whys[0],
        hazard=None if suspect.hazard is None else suspect.hazard(places),
        scope=_scope(streams, places),
        window=suspect.window,
        pairs=len(members),
        sides=_sides(streams, suspect, by_time),
        examples=tuple(_sides(streams, *member) for member in shown),
        whys=whys,
    )


def _scope(streams: Streams, places: tuple[Place, ...]) -> str | None:
    if len(places) < 2:  # noqa: PLR2004 - a pair has two sides
        return None
    return SAME_CALL if len({streams.event(place).call for place in places}) == 1 else NEXT_CALL


def _sides(streams: Streams, suspect: Suspect, by_time: tuple[int, ...]) -> tuple[Side, ...]:
    return tuple(Side.of(streams.event(suspect.places[n]), suspect.places[n][1], suspect.regions[n]) for n in by_time)
