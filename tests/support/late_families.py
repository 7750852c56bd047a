"""Families of toy programs for late memory and streams: what their operations are drawn from.

*Soups* are any operations in any order: most race, hang, or both. *Protocols* are made from an order
that works: where an access conflicts with an earlier one of another actor, that actor publishes and
this one waits, in one of the ways in which an author might; some of these ways are not enough.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from late_toy import ADD, COPY, FENCE, LATE_COPY, LOAD, NOTIFY, POLL, QUIET, RANK_QUIET, SET, STORE, TAKE, TEST, WAIT

RELAXED, STORES, PUT_SIGNAL = "relaxed", "stores", "put with signal"
SOME_QUIET = "quiet of all but the last copies"


@dataclass(frozen=True, slots=True)
class Family:
    """What the programs of a family are made of.

    Args:
        kinds: kinds of operations, one as likely as another; name one twice to have it more often. For a
            protocol: the kinds of accesses.
        ways: a protocol; and how its actors publish.
        compares: comparisons of waits and tests.
        changes: how a cell is changed by others.
        own: what its own rank adds to it.
        expected: what a wait compares with.
        ranks: how many.
        total: at most so many operations.
        streams: how many ranks have a second stream, at most.
        successive: they have two further ones, mostly one after the other.
        local: elements belong to rank 0, and so do all cells.
        in_data: cells become elements that are stored to and polled, where that can be said.
        puts: so many of the stores and copies are said to be puts, also to the own rank.

    """

    kinds: tuple[str, ...]
    _: KW_ONLY
    ways: tuple[str, ...] = ()
    compares: tuple[str, ...] = (">=",)
    changes: tuple[tuple[str, int], ...] = ((NOTIFY, 1), (NOTIFY, 1), (NOTIFY, 2))
    own: tuple[int, ...] = (-1, -1, 1)
    expected: tuple[int, ...] = (1, 1, 2)
    ranks: tuple[int, ...] = (2, 2, 3)
    total: int = 10
    streams: int = 0
    successive: bool = False
    local: bool = False
    puts: float = 0.0
    in_data: bool = False


_DATA = (STORE, STORE, LOAD, LOAD)
_SYNC = (NOTIFY, NOTIFY, RELAXED, WAIT, WAIT, WAIT)
_ORDER = (FENCE, QUIET)
_PIPELINE = (STORE, PUT_SIGNAL, PUT_SIGNAL, RELAXED, FENCE)
_OWN = (LOAD, STORE, NOTIFY, NOTIFY, RELAXED, WAIT, WAIT, QUIET)
_SETS = ((SET, 0), (SET, 1), (SET, 2), (NOTIFY, 1))
_EITHER = ((NOTIFY, 1), (NOTIFY, -1), (NOTIFY, -1), (NOTIFY, 2))
_EVERY = ("==", "!=", ">", ">=", "<", "<=")
_SURE = (NOTIFY, QUIET, PUT_SIGNAL)
_ANY_WAY = (*_SURE, FENCE, RELAXED)
_GETS = (LATE_COPY, LATE_COPY, COPY, STORE, LOAD)
_HOME = (LATE_COPY, COPY, ADD, STORE, STORE, LOAD)

FAMILIES: dict[str, Family] = {
    "message passing": Family(_DATA, ways=_SURE, total=15),
    "message passing, any way": Family(_DATA, ways=_ANY_WAY, total=15),
    "message passing, three ranks": Family(_DATA, ways=_ANY_WAY, ranks=(3,), total=14),
    "message passing, adds and copies": Family((*_DATA, ADD, COPY), ways=_ANY_WAY, total=14),
    "non-blocking copies": Family((LATE_COPY, LATE_COPY, *_DATA), ways=_ANY_WAY, total=13),
    # Of what an actor stored and then copies, others can tell the order by the copy's signal alone.
    "copies with signals": Family(
        (LATE_COPY, LATE_COPY, STORE, LOAD), ways=(PUT_SIGNAL, PUT_SIGNAL, NOTIFY), ranks=(2,), total=11
    ),
    "set flags": Family(_DATA, ways=(SET, SET, PUT_SIGNAL), total=14),
    "self-cleaning": Family(_DATA, ways=("give back", "give back", "take"), total=14),
    "self-cleaning, relaxed": Family(_DATA, ways=("give back", "take", RELAXED, "quiet, give back"), total=14),
    "streams": Family(_DATA, ways=_ANY_WAY, streams=1, total=14),
    "streams of both ranks": Family(_DATA, ways=_SURE, streams=2, ranks=(2,), total=15),
    "streams, copies": Family((LATE_COPY, COPY, ADD, *_DATA), ways=_SURE, streams=1, ranks=(2,), total=14),
    "stores and puts": Family((*_DATA, COPY), ways=(STORES, STORES, NOTIFY), total=14, puts=0.4),
    "own copies": Family((*_HOME, LOAD), ways=(*_ANY_WAY, STORES), ranks=(2,), total=13, puts=0.5),
    "quiet of the rank": Family(_DATA, ways=(RANK_QUIET, RANK_QUIET, QUIET), streams=2, ranks=(2,), total=15),
    "quiet of some": Family(
        (LATE_COPY, COPY, *_DATA), ways=(SOME_QUIET, SOME_QUIET, QUIET), ranks=(2,), total=14, puts=0.7
    ),
    "quiet of some, streams": Family(
        (LATE_COPY, LATE_COPY, *_DATA), ways=(SOME_QUIET, NOTIFY), streams=1, ranks=(2,), total=13, puts=0.6
    ),
    "flags in data": Family(_DATA, ways=(FENCE, QUIET, NOTIFY), total=13, in_data=True),
    "flags in data, streams": Family(_DATA, ways=(FENCE, QUIET), streams=1, ranks=(2,), total=13, in_data=True),
    "flags in data, own copies": Family((*_DATA, COPY), ways=_ANY_WAY, total=12, puts=0.5, in_data=True),
    "soup, polls": Family((*_DATA, STORE, POLL, POLL, POLL, QUIET, NOTIFY, WAIT), ranks=(2,), streams=1),
    "soup": Family((*_DATA, *_SYNC)),
    "soup, ordered": Family((*_DATA, *_SYNC, *_ORDER)),
    "soup, put with signal": Family((*_DATA, PUT_SIGNAL, PUT_SIGNAL, PUT_SIGNAL, WAIT, WAIT, WAIT, FENCE), total=9),
    "soup, pipelined": Family((*_PIPELINE, WAIT, WAIT, LOAD, LOAD), ranks=(2,), local=True, own=(1,), total=9),
    "soup, copies": Family((COPY, LATE_COPY, LATE_COPY, ADD, *_DATA, *_SYNC, *_ORDER), ranks=(2,), total=9),
    "soup, copies with signals": Family(
        (LATE_COPY, LATE_COPY, STORE, STORE, LOAD, PUT_SIGNAL, PUT_SIGNAL, WAIT, WAIT), ranks=(2,), total=8
    ),
    "soup, local": Family((COPY, LATE_COPY, ADD, *_DATA, *_DATA, QUIET), ranks=(1,), local=True, total=6, streams=1),
    "soup, gets": Family((*_GETS, *_GETS, *_SYNC, *_ORDER), ranks=(2,), total=9),
    "soup, own places": Family((*_HOME, *_HOME, *_ORDER), ranks=(1,), local=True, total=6, streams=1, puts=0.5),
    "soup, own signals": Family(
        (*_HOME, PUT_SIGNAL, PUT_SIGNAL, NOTIFY, RELAXED, WAIT, WAIT, WAIT, *_ORDER),
        ranks=(1, 1, 2), local=True, own=(1,), total=8, puts=0.5, expected=(1, 1, 2),
    ),
    "soup, own signals set": Family(
        (LATE_COPY, STORE, LOAD, PUT_SIGNAL, PUT_SIGNAL, NOTIFY, RELAXED, WAIT, WAIT, TAKE, QUIET),
        ranks=(1, 2), local=True, changes=_SETS, compares=(">=", "=="), total=8, puts=0.5,
    ),
    "soup, quiet of the rank": Family(
        (*_GETS, *_DATA, *_SYNC, RANK_QUIET, RANK_QUIET), ranks=(2,), streams=2, total=11, puts=0.3,
    ),
    "soup, quiet of some": Family(
        (LATE_COPY, LATE_COPY, COPY, STORE, STORE, LOAD, PUT_SIGNAL, *_SYNC, SOME_QUIET, SOME_QUIET, SOME_QUIET),
        ranks=(2,), puts=0.6, total=9,
    ),
    "soup, own signals, quiet of some": Family(
        (LATE_COPY, STORE, PUT_SIGNAL, PUT_SIGNAL, NOTIFY, RELAXED, WAIT, WAIT, TAKE, TEST, SOME_QUIET, SOME_QUIET),
        ranks=(1, 2), local=True, changes=_SETS, compares=(">=", "=="), own=(1, -1), total=8, puts=0.5,
    ),
    "soup, stores and puts": Family((*_DATA, COPY, *_SYNC, STORES, STORES, FENCE), ranks=(2,), puts=0.5),
    "soup, set flags": Family((*_DATA, *_SYNC, PUT_SIGNAL), changes=_SETS, compares=(">=", "=="), expected=(1, 2)),
    "soup, every comparison": Family((*_DATA, *_SYNC), changes=_SETS, compares=_EVERY, expected=(0, 1, 2)),
    "soup, anybody subtracts": Family((*_DATA, *_SYNC), changes=((NOTIFY, 1), (NOTIFY, 2), (NOTIFY, -1))),
    "soup, both directions": Family(
        (*_DATA, *_SYNC), changes=_EITHER, own=(1, -1), compares=_EVERY, expected=(-1, 0, 0, 1)
    ),
    "soup, one shared cell": Family((*_DATA, *_SYNC), ranks=(3,), local=True, expected=(1, 2, 2)),
    "soup, own credits": Family(_OWN, ranks=(1, 2), local=True),
    "soup, own sets": Family((*_OWN, TAKE), changes=_SETS, compares=(">=", ">=", "==", "<"), ranks=(1, 2), local=True),
    "soup, consumed": Family((*_DATA, *_SYNC, TAKE, TAKE, TAKE)),
    "soup, tests": Family((*_DATA, *_SYNC, TEST, TEST, QUIET)),
    "soup, tests and sets": Family((LOAD, STORE, *_SYNC, TEST, TEST, QUIET), changes=_SETS, compares=(">=", "==")),
    "soup, streams": Family((*_DATA, *_SYNC, QUIET), streams=1, ranks=(2,), total=13),
    "streams, one after the other": Family(
        _DATA, ways=("take", "give back", NOTIFY), streams=1, successive=True, ranks=(2,), total=15
    ),
    "soup, streams one after the other": Family(
        (LOAD, STORE, NOTIFY, NOTIFY, WAIT, TAKE, TAKE),
        streams=1,
        successive=True,
        ranks=(1, 2),
        local=True,
        own=(1, 1, -1),
    ),
    "soup, streams one after the other, both directions": Family(
        (LOAD, STORE, NOTIFY, NOTIFY, WAIT, WAIT, TAKE),
        changes=_EITHER,
        own=(1, -1),
        compares=_EVERY,
        expected=(-1, 0, 0, 1),
        streams=1,
        successive=True,
        ranks=(1, 2),
        local=True,
    ),
    "soup, streams sharing a cell": Family(
        (*_DATA, *_SYNC, TAKE, QUIET), streams=1, ranks=(2,), local=True, total=13, expected=(1, 1, 2)
    ),
}  # fmt: skip
