"""Random kernels whose calls are all alike, but for thresholds that grow and buffers that take turns."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from asyncsim import Kernel, Rank, Signal, Window, kernel

if TYPE_CHECKING:
    import random

STORE, LOAD, NOTIFY, WAIT, BARRIER = "store", "load", "notify", "wait", "barrier"
COPY, RELAXED, SIGNAL, FENCE, QUIET = "copy", "relaxed", "signal", "fence", "quiet"
LATE = {STORE: (STORE, STORE, COPY), NOTIFY: (NOTIFY, NOTIFY, NOTIFY, RELAXED, SIGNAL)}
"""What an operation may be instead where memory is late: a non-blocking put, a relaxed notify, a put with signal."""
Body = list[tuple[str, int]]
MOST = 127
"""What a cell of int8 holds at most."""


def looped(rng: random.Random, *, room: int | None = None, late: bool = False) -> tuple[Kernel, int]:
    """Return a kernel and the number of its ranks.

    Args:
        rng: the dice.
        room: its cells start so little below the end of int8.
        late: for late memory: with operations that order landings, and with some that do not.

    """
    ranks = rng.choice((2, 2, 3))
    bodies: list[Body] = [[] for _ in range(ranks)]
    for me, body in enumerate(bodies):
        for _ in range(rng.randint(1, 2)):
            body.append((rng.choice((STORE, LOAD)), rng.choice([me, *range(ranks)])))
    for _ in range(rng.randint(1, 2 * ranks)):
        giver, taker = rng.sample(range(ranks), 2)
        _insert(rng, bodies[giver], (NOTIFY, taker))
    given = Counter(taker for body in bodies for what, taker in body if what == NOTIFY)
    for taker in given:
        _insert(rng, bodies[taker], (WAIT, given[taker] if rng.random() < 0.9 else rng.randint(1, given[taker])))
    if rng.random() < 0.3:
        for body in bodies:
            _insert(rng, body, (BARRIER, 0))
    if late:
        bodies = [_made_late(rng, body) for body in bodies]
    buffers, cleaning = rng.choice((1, 1, 2, 3)), rng.random() < 0.4
    sign = -1 if room is None and rng.random() < 0.3 else 1
    streams = [sorted(rng.choices(range(len(body) + 1), k=2)) if rng.random() < 0.3 else [] for body in bodies]
    return _kernel(bodies, buffers, streams, cleaning=cleaning, room=room, sign=sign), ranks


def _made_late(rng: random.Random, body: Body) -> Body:
    """Return operations of which some order no landings, and now and then one that does."""
    made = [(rng.choice(LATE.get(what, (what,))), number) for what, number in body]
    for what in (FENCE, QUIET):
        if rng.random() < 0.2:
            _insert(rng, made, (what, 0))
    return made


def _insert(rng: random.Random, body: Body, op: tuple[str, int]) -> None:
    body.insert(rng.randint(0, len(body)), op)


def _kernel(  # noqa: PLR0913 - what can vary
    bodies: list[Body], buffers: int, streams: list[list[int]], *, cleaning: bool, room: int | None, sign: int
) -> Kernel:
    """Return a kernel of these bodies; a part of some is a stream, new in every call; credits may count down."""
    start = 0 if room is None else MOST - room
    credit_cell = Signal("credit", (1,), "int32" if room is None else "int8", start=start)
    window, own_window = Window("w", (buffers,), initialised=True), Window("own", (1,), initialised=True)
    memory = [window, credit_cell, Signal("meeting", ("P",)), own_window]

    async def part(rank: Rank, views: tuple[Any, ...], body: Body) -> None:
        w, credit, meeting, own = views
        for what, number in body:
            if what == WAIT:
                await _take(rank, credit, start, sign * number, cleaning=cleaning)
            elif what == BARRIER:
                await _meet(rank, meeting)
            else:
                place, cell = w.at(number)[rank.call % buffers], credit.at(number)[0]
                await _do(rank, what, (place, own[0]), (cell, sign))

    @kernel(memory=memory)
    async def loop(rank: Rank, *views: Any) -> None:
        body = bodies[rank.id]
        if not streams[rank.id]:
            await part(rank, views, body)
            return
        first, last = streams[rank.id]
        stream = await rank.start(part, views, body[:first])
        await part(rank, views, body[first:last])
        await rank.join(stream)
        await part(rank, views, body[last:])

    return loop


async def _do(rank: Rank, what: str, places: tuple[Any, Any], notify: tuple[Any, int]) -> None:
    place, own = places
    if what == STORE:
        await rank.store(place, 1.0)
    elif what == LOAD:
        await rank.load(place)
    elif what == COPY:
        await rank.put(place, own, nbi=True)
    elif what == SIGNAL:
        await rank.put_signal(place, 1.0, *notify)
    elif what == NOTIFY:
        await rank.notify(*notify)
    elif what == RELAXED:
        await rank.notify(*notify, order="relaxed")
    else:
        await getattr(rank, what)()


async def _meet(rank: Rank, meeting: Any) -> None:
    for other in rank.peers:
        await rank.notify(meeting.at(other)[rank.id], 1)
    for other in rank.peers:
        await rank.wait(meeting[other] >= rank.call + 1)


async def _take(rank: Rank, credit: Any, start: int, number: int, *, cleaning: bool) -> None:
    """Wait for so many credits of this call, and give them back or let them add up; less than 0: they count down."""
    wanted = start + number * (1 if cleaning else rank.call + 1)
    await rank.wait(credit[0] >= wanted if number > 0 else credit[0] <= wanted)
    if cleaning:
        await rank.notify(credit[0], -number)
