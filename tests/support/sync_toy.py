"""Toy programs whose synchronising operations are any of [predicate] [update] [result], by any rank on any cell.

As in `toy`, a program is data, written and printed in one notation, so that a failing one can be pasted into a test::

    parse("st x; c := 1 || wait c == 1 c := 0; ld x")

`x y z` are elements of data, `c d e f` cells. ``ld x`` and ``st x`` load and store (each store a value of its own);
``c += 1``, ``c := 1``, ``c |= 2``, ``c &= 1``, ``c ^= 1``, ``c max 3`` and ``c min 0`` update. ``wait c >= 1`` waits,
and with an update behind it does both in one step; ``test c >= 1`` gives the answer, ``read c`` the value;
``get c += 1`` and ``get wait c >= 1`` give what the cell held before; ``cas c 0 1`` sets 1 where it held 0, and gives
what it held. ``arrive c 3`` adds 1 and says whether it held 2 before: whether it is the last of three. ``last c 3``
does so, too, but the program keeps the answer to itself: ``? st x`` is done by those alone who were told so by their
last arrival, and what they load so is no result.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

LOAD, STORE = "ld", "st"
UPDATES = ("+=", ":=", "|=", "&=", "^=", "max", "min")
SYMBOLS = ("==", "!=", ">", ">=", "<", "<=")
ELEMENTS = "xyzw"
CELLS = "cdefgh"

NOTHING, ANSWER, VALUE = "", "answer", "value"
"""What a program gets: nothing, whether the predicate held, or what the cell held before."""


@dataclass(frozen=True, slots=True)
class Op:
    """One operation: a data access if `data` says which, else a synchronising one.

    Args:
        place: the number of the element or cell.
        data: `LOAD` or `STORE`.
        how: the comparison of the predicate, one of `SYMBOLS`; empty: there is none.
        value: what the predicate compares with.
        blocks: it stands until the predicate holds; else an update is left out where it does not.
        always: its update is made whether the predicate holds or not.
        update: one of `UPDATES`; empty: there is none.
        operand: of the update.
        gives: what the program gets.
        only: it is done by those alone who arrived last.

    """

    place: int
    _: KW_ONLY
    data: str = ""
    how: str = ""
    value: int = 0
    blocks: bool = False
    always: bool = False
    update: str = ""
    operand: int = 0
    gives: str = NOTHING
    only: bool = False

    @property
    def is_cas(self) -> bool:
        """Whether it updates only where its predicate holds, and never stands."""
        return bool(self.how and self.update) and not (self.blocks or self.always)

    def __str__(self) -> str:
        """Write it in the notation of this page."""
        if self.only:
            return f"? {replace(self, only=False)}"
        if self.data:
            return f"{self.data} {ELEMENTS[self.place]}"
        cell = CELLS[self.place]
        update = f"{cell} {self.update} {self.operand}" if self.update else ""
        if self.always:
            return f"{'arrive' if self.gives else 'last'} {cell} {self.value + 1}"
        if self.is_cas:
            return f"cas {cell} {self.value} {self.operand}"
        if not self.how:
            return f"get {update}" if update and self.gives else update or f"read {cell}"
        waits = f"{'wait' if self.blocks else 'test'} {cell} {self.how} {self.value}"
        return " ".join(filter(None, ("get" if self.blocks and self.gives else "", waits, update)))


@dataclass(frozen=True, slots=True)
class Program:
    """A program: what each rank does, and on what.

    Args:
        actors: the operations of each rank.
        elements: the rank that owns each element.
        cells: the rank that owns each cell.
        starts: the value of each cell at the start.
        bits: of a cell, 8 or 32.

    """

    actors: tuple[tuple[Op, ...], ...]
    _: KW_ONLY
    elements: tuple[int, ...]
    cells: tuple[int, ...]
    starts: tuple[int, ...]
    bits: int = 32

    @property
    def range(self) -> tuple[int, int]:
        """The smallest and the greatest value of a cell, which goes on at the other end."""
        return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1

    def writes(self, actor: int, index: int) -> int:
        """Return what the store at this place writes: no two write alike, but those that the last one alone does."""
        if self.actors[actor][index].only:
            return 1000 + sum(op.only for op in self.actors[actor][:index])
        return sum(map(len, self.actors[:actor])) + index + 1

    def __str__(self) -> str:
        """Write the call of `parse` that makes this program."""
        text = " || ".join("; ".join(map(str, ops)) for ops in self.actors)
        extras = f", starts={self.starts}" if any(self.starts) else ""
        extras += f", bits={self.bits}" if self.bits != 32 else ""
        return f"parse({text!r}, elements={self.elements}, cells={self.cells}{extras})"


def parse(
    text: str,
    *,
    elements: tuple[int, ...] | None = None,
    cells: tuple[int, ...] | None = None,
    starts: tuple[int, ...] | None = None,
    bits: int = 32,
) -> Program:
    """Make a program of its text; elements and cells belong to rank 0 unless said otherwise."""
    actors = tuple(tuple(_op(part.split()) for part in line.split(";") if part.strip()) for line in text.split("||"))
    ops = [op for stream in actors for op in stream]
    elements = elements or (0,) * (1 + max((op.place for op in ops if op.data), default=-1))
    cells = cells or (0,) * (1 + max((op.place for op in ops if not op.data), default=-1))
    return Program(actors, elements=elements, cells=cells, starts=starts or (0,) * len(cells), bits=bits)


def cas(cell: int, expected: int, value: int) -> Op:
    """Return a compare-exchange."""
    return Op(cell, how="==", value=expected, update=":=", operand=value, gives=VALUE)


def arrive(cell: int, of: int, gives: str = ANSWER) -> Op:
    """Return an arrival that tells the last of so many."""
    return Op(cell, how="==", value=of - 1, always=True, update="+=", operand=1, gives=gives)


def _op(words: list[str]) -> Op:  # noqa: PLR0911 - one for each form
    if words[0] == "?":
        return replace(_op(words[1:]), only=True)
    if words[0] in (LOAD, STORE):
        return Op(ELEMENTS.index(words[1]), data=words[0])
    if words[0] == "cas":
        return cas(CELLS.index(words[1]), int(words[2]), int(words[3]))
    if words[0] in ("arrive", "last"):
        return arrive(CELLS.index(words[1]), int(words[2]), ANSWER if words[0] == "arrive" else NOTHING)
    if words[0] == "read":
        return Op(CELLS.index(words[1]), gives=VALUE)
    gives = NOTHING
    if words[0] == "get":
        gives, words = VALUE, words[1:]
    if words[0] in ("wait", "test"):
        kind, cell, how, value, *update = words
        if how not in SYMBOLS:
            raise ValueError(f"{' '.join(words)!r}: {how!r} is not a comparison")
        blocks = kind == "wait"
        changed = {"update": update[1], "operand": int(update[2])} if update else {}
        gives = gives if blocks else ANSWER
        return Op(CELLS.index(cell), how=how, value=int(value), blocks=blocks, gives=gives, **changed)
    cell, update, operand = words
    if update not in UPDATES:
        raise ValueError(f"{' '.join(words)!r} is not an operation")
    return Op(CELLS.index(cell), update=update, operand=int(operand), gives=gives)
