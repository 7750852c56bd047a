"""The races of a whole run at once: pairs of steps that touch common bytes and that nothing orders."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from asyncsim.trace.region import ADD, READ, spans_overlap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.analysis.segments import Segments
    from asyncsim.trace.columns import Numbers
    from asyncsim.trace.region import Access

CHUNK = 1 << 21
"""So many pairs are looked at together."""


@dataclass(frozen=True, slots=True)
class Touches:
    """Every access of a run: the step it is made in, and which of `accesses` it is."""

    step: Numbers
    number: Numbers
    accesses: list[Access]


@dataclass(frozen=True, slots=True)
class Raced:
    """The pairs that race: the steps of their sides, and the number of the access of each."""

    x: Numbers
    y: Numbers
    first: Numbers
    second: Numbers


def touches_of(place: Numbers, places: Sequence[tuple[Access, ...]]) -> Touches:
    """Return the accesses of each step; `place` numbers the tuple that it makes, -1 for none.

    Args:
        place: integers, one a step.
        places: the tuples, by number; accesses to no byte are left out.

    """
    numbers: dict[Access, int] = {}
    rows = [
        [numbers.setdefault(access, len(numbers)) for access in accesses if access.region.spans] for accesses in places
    ]
    most = max(map(len, rows), default=0)
    table = np.array([row + [-1] * (most - len(row)) for row in rows], np.int32).reshape(len(rows), most)
    steps, made = [], []
    with_place = np.flatnonzero(place >= 0)
    for column in range(most):
        number = table[place[with_place], column]
        steps.append(with_place[number >= 0])
        made.append(number[number >= 0])
    if not steps:
        return Touches(with_place[:0], with_place[:0], [])
    step, number = np.concatenate(steps), np.concatenate(made)
    return Touches(step, number, list(numbers))


def raced(touches: Touches, actor: Numbers, segments: Segments) -> Raced:
    """Return every pair of steps of different actors that touch common bytes, one changing them, in any order.

    Args:
        touches: the accesses of all steps.
        actor: the number of the actor of each step: integers.
        segments: say of two steps whether one precedes the other.

    """
    found: list[Raced] = []
    for first, second in _candidates(touches):
        x, y = touches.step[first], touches.step[second]
        unordered = actor[x] != actor[y]
        unordered[unordered] = ~segments.ordered(x[unordered], y[unordered])
        numbers = touches.number[first[unordered]], touches.number[second[unordered]]
        found.append(Raced(x[unordered], y[unordered], *numbers))
    if not found:
        none = np.empty(0, np.int64)
        return Raced(none, none, none, none)
    return Raced(*(np.concatenate([getattr(part, name) for part in found]) for name in Raced.__slots__))


def _candidates(touches: Touches) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield pairs of accesses to common bytes of which one changes them, as indexes into `touches`, in chunks."""
    accesses = touches.accesses
    spot_of, meeting = _spots(accesses)
    writes = np.array([access.mode != READ for access in accesses], bool)
    types = {dtype: number for number, dtype in enumerate(dict.fromkeys(access.region.dtype for access in accesses), 1)}
    adds = np.array([types[access.region.dtype] if access.mode == ADD else 0 for access in accesses], np.int32)
    spots = spot_of[touches.number]
    order = np.argsort(spots, kind="stable")
    starts = np.searchsorted(spots[order], np.arange(int(spot_of.max(initial=-1)) + 2))
    writing = order[writes[touches.number[order]]]
    write_starts = np.searchsorted(spots[writing], np.arange(len(starts)))
    # Within a spot: each write with every access of the spot, two writes once; then across spots that overlap.
    whole = np.arange(len(starts) - 1)
    sides: list[tuple[Numbers, Numbers]] = [(whole, whole)]
    if len(meeting):
        sides += [(meeting[:, 0], meeting[:, 1]), (meeting[:, 1], meeting[:, 0])]
    for left, right in sides:
        for a, b in _products(left, right, (writing, write_starts), (order, starts)):
            both = writes[touches.number[b]]
            added = adds[touches.number[a]]
            keep = (added == 0) | (added != adds[touches.number[b]])  # two adds of one type commute
            # Of two writes the pair comes twice, once from each side.
            keep &= ~both | (touches.step[a] < touches.step[b])
            yield a[keep], b[keep]


def _products(
    left: Numbers, right: Numbers, of_left: tuple[Numbers, Numbers], of_right: tuple[Numbers, Numbers]
) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield the product of the members of each pair of spots, in chunks."""
    (members, starts), (others, other_starts) = of_left, of_right
    many = np.diff(starts)[left]
    each = np.diff(other_starts)[right]
    counts = many * each
    ends = np.cumsum(counts)
    cuts = [0, *np.searchsorted(ends, np.arange(CHUNK, int(ends[-1]) if len(ends) else 0, CHUNK)).tolist(), len(left)]
    for low, high in pairwise(sorted(set(cuts))):
        part = counts[low:high]
        pair = np.repeat(np.arange(low, high), part)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(part) - part, part)
        a = members[starts[left[pair]] + within // each[pair]]
        b = others[other_starts[right[pair]] + within % each[pair]]
        yield a, b


def _spots(accesses: list[Access]) -> tuple[Numbers, Numbers]:
    """Number the byte ranges; return the number of each access's, and which pairs of numbers overlap."""
    numbers: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
    spot_of = np.array([numbers.setdefault((a.region.slot, a.region.spans), len(numbers)) for a in accesses], np.int64)
    meeting: list[tuple[int, int]] = []
    ordered = sorted((slot, spans, number) for (slot, spans), number in numbers.items() if spans)
    for n, (slot, spans, number) in enumerate(ordered):
        end = spans[-1][1]
        for m in range(n + 1, len(ordered)):
            other_slot, other, other_number = ordered[m]
            if other_slot != slot or other[0][0] >= end:
                break
            if spans_overlap(spans, other):
                meeting.append((number, other_number))
    return spot_of, np.array(meeting, np.int64).reshape(len(meeting), 2)
