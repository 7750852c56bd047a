"""Toy programs for late memory and streams, as data, in a notation that can be pasted into a test.

    parse("st x; c += 1 || wait c >= 1; ld x", elements=(1,))

``||`` separates ranks and ``|`` the streams of a rank, of which the first is the rank's own task and
must start and join the others. `x y z w ...` are elements of data, `c d e ... k` are cells; what belongs to
whom is said beside the text. The operations are

    ld x, st x, ad x          load, store, atomic add: to a peer's element a remote one
    x <- y, x <~ y            a get if x is an own element, else a put; with ``<~`` a non-blocking one
    put x, put x <- y         a put, also to an own element: of a value, or of y; as well ``put x <~ y``
    c += 1, c := 1            notify; ``relaxed c += 1`` one that may overtake, ``stores c += 1`` puts alone
    st x, c += 1              a put with signal, as well ``x <- y, c := 1`` and ``x <~ y, c += 1``
    poll x >= 3               until the third operation of the program (rank by rank) stored, or a later one; 0: none
    wait c >= 1               and ``take`` (it subtracts as it passes) and ``test``
    fence, quiet, quiet rank  the last one for all streams of the rank
    quiet 2                   of all before the last two puts and non-blocking gets
    start 1, join 1, sync     of stream 1 of the same rank; all streams of the rank meet

What a store or an add writes is not chosen: each writes a value of its own, so every stale read shows.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import accumulate

LOAD, STORE, ADD, COPY, LATE_COPY = "ld", "st", "ad", "<-", "<~"
NOTIFY, SET, WAIT, TAKE, TEST = "+=", ":=", "wait", "take", "test"
FENCE, QUIET, RANK_QUIET, START, JOIN, SYNC = "fence", "quiet", "quiet rank", "start", "join", "sync"
POLL = "poll"
COPIES = (COPY, LATE_COPY)
WRITING = (STORE, ADD, *COPIES)
COMPARING = (WAIT, TAKE, TEST)
SYMBOLS = ("==", "!=", ">", ">=", "<", "<=")

ELEMENTS = "xyzwvutsrqp"
CELLS = "cdefghijk"


@dataclass(frozen=True, slots=True)
class Change:
    """What a notify does to a cell: `how` is += or :=."""

    cell: int
    how: str
    value: int

    def __str__(self) -> str:
        """Write it in the notation of this page."""
        return f"{CELLS[self.cell]} {self.how} {self.value}"


@dataclass(frozen=True, slots=True)
class Op:
    """One operation.

    Args:
        kind: one of the constants above; a notify is NOTIFY whether it adds or sets.
        place: the number of the element; of the cell for a wait, take or test; of the stream for start and join.
        source: the element that a copy reads.
        how: the comparison, one of `SYMBOLS`.
        value: what the cell is compared with; how many copies a quiet leaves.
        change: what a notify, or the signal of a put, does.
        relaxed: a notify that may overtake.
        stores: a notify that may overtake puts, and no stores.
        put: what is written is put, also to an own element.

    """

    kind: str
    place: int = 0
    _: KW_ONLY
    source: int = 0
    how: str = ">="
    value: int = 0
    change: Change | None = None
    relaxed: bool = False
    stores: bool = False
    put: bool = False

    @property
    def puts(self) -> bool:
        """Whether it is a put: it says so, or it has a signal."""
        return self.put or (self.change is not None and self.kind in WRITING)

    @property
    def on_data(self) -> bool:
        """Whether it touches memory."""
        return self.kind in (LOAD, POLL, *WRITING)

    def __str__(self) -> str:
        """Write it in the notation of this page."""
        signal = f", {self.change}" if self.change else ""
        if self.kind in COPIES:
            return f"{'put ' * self.put}{ELEMENTS[self.place]} {self.kind} {ELEMENTS[self.source]}{signal}"
        if self.kind == POLL:
            return f"{self.kind} {ELEMENTS[self.place]} {self.how} {self.value}"
        if self.on_data:
            return f"{'put' if self.put else self.kind} {ELEMENTS[self.place]}{signal}"
        if self.kind == NOTIFY:
            return f"{'relaxed ' * self.relaxed}{'stores ' * self.stores}{self.change}"
        if self.kind in COMPARING:
            return f"{self.kind} {CELLS[self.place]} {self.how} {self.value}"
        number = self.place if self.kind in (START, JOIN) else self.value or ""
        return f"{self.kind} {number}".rstrip()


@dataclass(frozen=True)
class Program:
    """A program: what each stream of each rank does, and on what.

    Args:
        ranks: for each rank its streams, for each stream its operations.
        elements: the rank that owns each element.
        cells: the rank that owns each cell.
        starts: the value of each cell at the start.

    """

    ranks: tuple[tuple[tuple[Op, ...], ...], ...]
    _: KW_ONLY
    elements: tuple[int, ...]
    cells: tuple[int, ...]
    starts: tuple[int, ...]

    @cached_property
    def actors(self) -> tuple[tuple[int, int], ...]:
        """The (rank, stream) of each actor. Actors are numbered in this order."""
        return tuple((rank, stream) for rank, streams in enumerate(self.ranks) for stream in range(len(streams)))

    @cached_property
    def streams(self) -> tuple[tuple[Op, ...], ...]:
        """The operations of each actor."""
        return tuple(ops for streams in self.ranks for ops in streams)

    @cached_property
    def _first(self) -> tuple[int, ...]:
        return tuple(accumulate(map(len, self.streams), initial=0))

    def writes(self, actor: int, index: int) -> int:
        """Return what the store or atomic add at this place of an actor's stream writes or adds.

        Powers of two, those of stores far above those of adds: a value tells who made it.
        """
        number = self._first[actor] + index
        return 1 << (number if self.streams[actor][index].kind == ADD else number + 24)

    def number(self, actor: int, index: int) -> int:
        """Return the number of an operation in the whole program, from 1."""
        return self._first[actor] + index + 1

    @staticmethod
    def writer(value: int) -> int:
        """Return the number of the store that wrote a value last, as polls compare it; adds do not count."""
        return (value >> 24).bit_length()

    def __str__(self) -> str:
        """Write the call of `parse` that makes this program."""
        text = " || ".join(" | ".join("; ".join(map(str, ops)) for ops in streams) for streams in self.ranks)
        starts = f", starts={self.starts}" if any(self.starts) else ""
        return f"parse({text!r}, elements={self.elements}, cells={self.cells}{starts})"


def parse(
    text: str,
    *,
    elements: tuple[int, ...] | None = None,
    cells: tuple[int, ...] | None = None,
    starts: tuple[int, ...] | None = None,
) -> Program:
    """Make a program of its text.

    Elements belong to rank 0 unless `elements` says otherwise; a cell belongs to the rank that
    waits for it, or to rank 0.
    """
    ranks = tuple(
        tuple(tuple(_op(words.strip()) for words in stream.split(";") if words.strip()) for stream in rank.split("|"))
        for rank in text.split("||")
    )
    ops = [(rank, op) for rank, streams in enumerate(ranks) for stream in streams for op in stream]
    if elements is None:
        used = [place for _, op in ops if op.on_data for place in (op.place, op.source)]
        elements = (0,) * (max(used, default=-1) + 1)
    if cells is None:
        used = [op.change.cell for _, op in ops if op.change] + [op.place for _, op in ops if op.kind in COMPARING]
        owners = dict.fromkeys(range(max(used, default=-1) + 1), 0)
        owners |= {op.place: rank for rank, op in ops if op.kind in COMPARING}
        cells = tuple(owners.values())
    return Program(ranks, elements=elements, cells=cells, starts=starts or (0,) * len(cells))


def _op(text: str) -> Op:
    body, _, signal = text.partition(", ")
    words = body.split()
    change = _change(signal.split()) if signal else None
    op = None
    match words:
        case [("ld" | "st" | "ad") as kind, element]:
            op = Op(kind, ELEMENTS.index(element), change=change)
        case ["put", element]:
            op = Op(STORE, ELEMENTS.index(element), change=change, put=True)
        case [*put, element, ("<-" | "<~") as kind, source] if element != source and put in ([], ["put"]):
            op = Op(kind, ELEMENTS.index(element), source=ELEMENTS.index(source), change=change, put=bool(put))
        case [("wait" | "take" | "test" | "poll") as kind, place, how, value] if how in SYMBOLS:
            op = Op(kind, (ELEMENTS if kind == POLL else CELLS).index(place), how=how, value=int(value))
        case [("start" | "join") as kind, number]:
            op = Op(kind, int(number))
        case [("fence" | "quiet" | "sync") as kind]:
            op = Op(kind)
        case ["quiet", what]:
            op = Op(RANK_QUIET) if what == "rank" else Op(QUIET, value=int(what))
        case [*order, _, ("+=" | "-=" | ":="), _] if order in ([], ["relaxed"], ["stores"]):
            op = Op(NOTIFY, change=_change(words[-3:]), relaxed=order == ["relaxed"], stores=order == ["stores"])
    if op is None:
        raise ValueError(f"{text!r} is no operation")
    return op


def _change(words: list[str]) -> Change:
    cell, how, value = words
    return Change(CELLS.index(cell), SET if how == SET else NOTIFY, -int(value) if how == "-=" else int(value))
