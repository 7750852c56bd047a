"""Streams: edges between actors of one rank, by starting, joining and meeting, and by their local stores.

What lands at a place of one rank after a local store there was issued, lands after that store (L6), whichever
of its actors issued the two. And a quiet of the whole rank waits for what was issued before it. What is issued
first in every schedule is taken from program order, starting, joining and meeting alone: that two actors are
ordered by signals would have to be proved before it could be used.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from asyncsim.certify.events import PEERS
from asyncsim.certify.reading import RejectedError, UnreadableError

if TYPE_CHECKING:
    from asyncsim.certify.events import Event, Program
    from asyncsim.certify.proof import Proof


def check_ranks(header: dict[str, Any], streams: list[dict[str, Any]]) -> None:
    """Refuse what is about nothing, or leaves out a rank: an actor that does nothing has a line, too.

    Args:
        header: the first line; its "ranks" and "calls" are looked at.
        streams: the lines of the actors.

    Raises:
        UnreadableError: it is of no call.
        RejectedError: it has no operation, or not the operations of each rank.

    """
    if header["calls"] < 1:
        raise UnreadableError(f"it is of {header['calls']} calls; a kernel is called at least once", 1)
    if not any(stream["ops"] for stream in streams):
        raise RejectedError("there is no operation in it, so it is about nothing")
    found = len({stream["rank"] for stream in streams})
    if found != header["ranks"]:
        raise RejectedError(f"it is of {header['ranks']} ranks, and has the operations of {found}")


def link(program: Program, streams: list[dict[str, Any]]) -> None:
    """Add the edges of starting, joining and meeting; those of actors without operations say nothing.

    Args:
        program: with the events of the streams.
        streams: the lines of the actors, in the order of the program's threads.

    Raises:
        RejectedError: two actors have one name.

    """
    numbers = {stream["actor"]: number for number, stream in enumerate(streams)}
    if len(numbers) < len(streams):
        raise RejectedError("two actors have one name")
    started: dict[int, Event] = {}
    meetings: dict[str, list[Event]] = defaultdict(list)
    for number, stream in enumerate(streams):
        for event, op in zip(program.threads[number], stream["ops"], strict=True):
            child = program.threads[numbers[op["link"]]] if op.get("link") in numbers else []
            if event.kind == "start" and child:
                started[child[0].thread] = event
                program.need(child[0], [event])
            elif event.kind == "join":
                program.need(event, child[-1:])
            elif event.kind == "sync":
                meetings[op["link"]].append(event)
    for parties in meetings.values():
        _meet(program, parties, started)


def _meet(program: Program, parties: list[Event], started: dict[int, Event]) -> None:
    for event in parties:
        if len(parties) != event.amount or len({other.thread for other in parties}) != len(parties):
            raise RejectedError(f"{event}: another number of actors comes to this barrier")
        for other in parties:
            came = program.threads[other.thread][other.index - 1] if other.index else started.get(other.thread)
            if other is not event and came is not None:
                program.need(event, [came])


def order_within_ranks(proof: Proof) -> None:
    """Add the edges between different actors of one rank that its own places, and its quiets, ask for."""
    program = proof.program
    actors = Counter(stream[0].rank for stream in program.threads[: program.actors] if stream)
    landings = [event for event in proof.run if event.kind == "land" and actors[event.rank] > 1]
    data: dict[int, list[Event]] = defaultdict(list)
    for event in landings:
        for access in event.accesses:
            if program.windows[access.window][0] == event.rank:
                data[access.window].append(event)
    found: list[tuple[Event, list[Event]]] = []
    for own in data.values():
        stores = [x for x in own if x.accesses[0].eyes == PEERS]
        program.spend(len(stores) * len(own))
        found += [(y, [x for x in stores if x.accesses[0].overlaps(y.accesses[0])]) for y in own]
    for quiet in program.rank_quiets:
        program.spend(len(landings))
        found.append((quiet, [x for x in landings if x.rank == quiet.rank]))
    clocks = _clocks(proof) if any(older for _, older in found) else {}
    for y, older in found:
        needed = [x for x in older if _is_first(x, y, clocks)]
        if any(x.step > y.step for x in needed):
            raise RejectedError(f"the run takes {y} before what another actor of its rank issued earlier")
        program.need(y, needed)


def _is_first(x: Event, y: Event, clocks: dict[Event, list[int]]) -> bool:
    """Say whether what leaves x is done before y, or what leaves that, by different actors."""
    one, other = x.issue, y.issue or y
    if one is None or one.thread == other.thread:
        return False
    return clocks[other][one.thread] > one.index


def _clocks(proof: Proof) -> dict[Event, list[int]]:
    """Return for each step of an actor how many steps of each actor come before it by these edges."""
    actors = proof.program.actors
    clocks: dict[Event, list[int]] = {}
    last: dict[int, Event] = {}
    for event in proof.run:
        if event.issue is None:
            proof.program.spend(actors)
            before = [last[event.thread], *event.needs] if event.thread in last else event.needs
            known = [clocks[other] for other in before if other in clocks]
            clock = [max(column) for column in zip([0] * actors, *known, strict=True)]
            clock[event.thread] = event.index + 1
            clocks[event] = clock
            last[event.thread] = event
    return clocks
