"""Toy programs as data: two or three ranks, a few elements of memory, a few cells, no control flow.

They are written and printed in one notation, so that a failing program can be pasted into a test::

    parse("st x; c += 1 || wait c >= 1; ld x")

`x y z w ...` are elements of data, `c d e ... k` are cells; ``||`` separates ranks. A load is ``ld x``,
a store ``st x``, an atomic add ``ad x``, a copy ``x <- y``, a copy that adds ``x <+ y``, a notify
``c += 1`` or ``c := 1``, a wait ``wait c >= 1``, a consuming wait ``take c >= 1``, a test ``test c >= 1``.
What a store or an add writes is not chosen: each writes a value of its own, so every stale read shows. So a poll,
``poll x >= 3``, does not compare values, but which store wrote last: 3 is the third operation of the program, rank
by rank, and 0 is nobody.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import accumulate

LOAD, STORE, ADD, COPY, COPY_ADD = "ld", "st", "ad", "<-", "<+"
NOTIFY, SET, WAIT, TAKE, TEST = "+=", ":=", "wait", "take", "test"
POLL = "poll"
ON_DATA = (LOAD, STORE, ADD, COPY, COPY_ADD, POLL)
COMPARING = (WAIT, TAKE, TEST)
SYMBOLS = ("==", "!=", ">", ">=", "<", "<=")

ELEMENTS = "xyzwvutsrqp"
CELLS = "cdefghijk"
FLOATS = (1e8, 3.0, -1e8, 7.0)
"""What atomic adds add in a program on floats: their sum depends on the order."""


@dataclass(frozen=True, slots=True)
class Op:
    """One operation.

    Args:
        kind: one of the constants above.
        place: the number of the element or cell.
        source: the element that a copy reads.
        value: what a notify adds or sets, what a wait, take or test compares with.
        how: the comparison, one of `SYMBOLS`.

    """

    kind: str
    place: int
    _: KW_ONLY
    source: int = 0
    value: int = 0
    how: str = ">="

    @property
    def on_data(self) -> bool:
        """Whether it touches memory; otherwise it touches a cell."""
        return self.kind in ON_DATA

    @property
    def accesses(self) -> tuple[tuple[int, str], ...]:
        """The elements it touches, each with r (read), w (write) or a (atomic add); a poll synchronises."""
        if self.kind in (COPY, COPY_ADD):
            # A copy of an element onto itself changes nothing: it is a read.
            mode = "a" if self.kind == COPY_ADD else "w" if self.source != self.place else "r"
            return ((self.source, "r"), (self.place, mode))
        modes = {LOAD: "r", STORE: "w", ADD: "a"}
        return ((self.place, modes[self.kind]),) if self.kind in modes else ()

    def __str__(self) -> str:
        """Write it in the notation of this page."""
        if self.on_data:
            place = ELEMENTS[self.place]
            copies = self.kind in (COPY, COPY_ADD)
            if self.kind == POLL:
                return f"{self.kind} {place} {self.how} {self.value}"
            return f"{place} {self.kind} {ELEMENTS[self.source]}" if copies else f"{self.kind} {place}"
        place = CELLS[self.place]
        if self.kind in COMPARING:
            return f"{self.kind} {place} {self.how} {self.value}"
        return f"{place} {self.kind} {self.value}"


@dataclass(frozen=True, slots=True)
class Program:
    """A program: what each rank does, and on what.

    Args:
        actors: the operations of each rank, in one call.
        elements: the rank that owns each element.
        cells: the rank that owns each cell.
        starts: the value of each cell at the start.
        bits: of a cell, 8 or 32.
        wrap: a cell that leaves its range goes on at the other end; otherwise the run ends there.
        floats: the elements are float32, else int64.
        calls: how often all of it is done, back to back.

    """

    actors: tuple[tuple[Op, ...], ...]
    _: KW_ONLY
    elements: tuple[int, ...]
    cells: tuple[int, ...]
    starts: tuple[int, ...]
    bits: int = 32
    wrap: bool = False
    floats: bool = False
    calls: int = 1

    @property
    def streams(self) -> tuple[tuple[Op, ...], ...]:
        """The operations of each rank over all calls."""
        return tuple(ops * self.calls for ops in self.actors)

    @property
    def range(self) -> tuple[int, int]:
        """The smallest and the greatest value of a cell."""
        return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1

    def writes(self, actor: int, index: int) -> float:
        """Return what the store or atomic add at this place of an actor's stream writes or adds.

        Powers of two, those of stores far above those of adds: a value tells who made it.
        """
        streams = self.streams
        number = list(accumulate((len(ops) for ops in streams), initial=0))[actor] + index
        adds = streams[actor][index].kind == ADD
        if self.floats:
            return FLOATS[number % len(FLOATS)] if adds else float(number + 1)
        return 1 << (number if adds else number + 24)

    @staticmethod
    def writer(value: int) -> int:
        """Return which store wrote a value last, as polls compare it; adds do not count."""
        return (value >> 24).bit_length()

    def __str__(self) -> str:
        """Write the call of `parse` that makes this program."""
        text = " || ".join("; ".join(map(str, ops)) for ops in self.actors)
        extras = "".join(
            f", {name}={value!r}"
            for name, value, usual in (
                ("starts", self.starts, (0,) * len(self.starts)), ("bits", self.bits, 32), ("wrap", self.wrap, False),
                ("floats", self.floats, False), ("calls", self.calls, 1),
            )
            if value != usual
        )  # fmt: skip
        return f"parse({text!r}, elements={self.elements}, cells={self.cells}{extras})"


def parse(  # noqa: PLR0913 - the fields of a program, all but the first optional
    text: str,
    *,
    elements: tuple[int, ...] | None = None,
    cells: tuple[int, ...] | None = None,
    starts: tuple[int, ...] | None = None,
    bits: int = 32,
    wrap: bool = False,
    floats: bool = False,
    calls: int = 1,
) -> Program:
    """Make a program of its text.

    Elements belong to rank 0 unless `elements` says otherwise; a cell belongs to the rank that
    waits for it, or to rank 0.
    """
    actors = tuple(tuple(_op(words) for words in part.split(";") if words.strip()) for part in text.split("||"))
    ops = [op for ops in actors for op in ops]
    if elements is None:
        used = [op.place for op in ops if op.on_data] + [op.source for op in ops if op.on_data]
        elements = (0,) * (max(used, default=-1) + 1)
    if cells is None:
        owners = dict.fromkeys(range(max((op.place for op in ops if not op.on_data), default=-1) + 1), 0)
        owners |= {op.place: actor for actor, ops in enumerate(actors) for op in ops if op.kind in COMPARING}
        cells = tuple(owners.values())
    return Program(
        actors, elements=elements, cells=cells, starts=starts or (0,) * len(cells),
        bits=bits, wrap=wrap, floats=floats, calls=calls,
    )  # fmt: skip


def _op(text: str) -> Op:
    words = text.split()
    if words[0] in COMPARING:
        kind, cell, how, value = words
        if how not in SYMBOLS:
            raise ValueError(f"{text!r}: {how!r} is no comparison")
        return Op(kind, CELLS.index(cell), how=how, value=int(value))
    if words[0] == POLL:
        kind, element, how, value = words
        return Op(kind, ELEMENTS.index(element), how=how, value=int(value))
    if words[0] in (LOAD, STORE, ADD):
        kind, element = words
        return Op(kind, ELEMENTS.index(element))
    place, kind, what = words
    if kind in (COPY, COPY_ADD):
        return Op(kind, ELEMENTS.index(place), source=ELEMENTS.index(what))
    if kind == "-=":
        return Op(NOTIFY, CELLS.index(place), value=-int(what))
    if kind not in (NOTIFY, SET):
        raise ValueError(f"{text!r} is no operation")
    return Op(kind, CELLS.index(place), value=int(what))
