"""Places in symmetric memory: regions of windows, cells of signals, conditions on cells."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

from asyncsim.trace.cells import SYMBOLS
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    import numpy as np

Box = tuple[tuple[int, int, int], ...]
"""One (start, stop, step) a dimension."""
Spans = tuple[tuple[int, int], ...]
"""Half-open byte ranges within one rank's window, ascending and disjoint."""

READ, WRITE, ADD = "read", "write", "add"


def spans_of(box: Box, shape: tuple[int, ...], itemsize: int) -> Spans:
    """Return the bytes that `box` covers in a C-ordered array of `shape`.

    Bytes, not elements: two views of one buffer with other shapes or dtypes then still overlap
    where they do in memory.

    Args:
        box: (start, stop, step) a dimension, in elements.
        shape: of the array, in elements.
        itemsize: of an element, in bytes.

    """
    runs: list[tuple[int, int]] = [(0, itemsize)]
    size = itemsize
    for (start, stop, step), extent in zip(reversed(box), reversed(shape), strict=True):
        if step == 1 and runs == [(0, size)]:
            runs = [(start * size, stop * size)] if stop > start else []
        else:
            runs = [(at * size + low, at * size + high) for at in range(start, stop, step) for low, high in runs]
        size *= extent
    return tuple(runs)


def spans_overlap(a: Spans, b: Spans) -> bool:
    """Say whether two span lists share a byte.

    Args:
        a: of a window's memory on one rank.
        b: of the same memory.

    """
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i][1] <= b[j][0]:
            i += 1
        elif b[j][1] <= a[i][0]:
            j += 1
        else:
            return True
    return False


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A box of elements in one rank's window. One object a place: a world hands out the same again.

    `slot` numbers the (window, owner) pair within its world; `index` is what numpy takes;
    `shape` is the shape of a tile loaded from here. Of a region that is one *piece* of another,
    `part` says which of its elements, in row-major order, and `spans` are those of the piece alone.
    Of a window that is over another one, `slot` is that one's, and `over` the own shape of the whole.
    """

    window: str
    owner: int
    box: Box
    index: tuple[int | slice, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    slot: int
    spans: Spans
    world: object = field(repr=False)
    reads: tuple[Access] = field(init=False, repr=False)
    writes: tuple[Access] = field(init=False, repr=False)
    _adds: tuple[Access] | None = field(default=None, init=False, repr=False)
    part: tuple[int, int] | None = None
    over: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Make its accesses, so that an operation makes none."""
        # Making them when first asked for takes a ``__getattr__``, with which every attribute is slow.
        object.__setattr__(self, "reads", (Access(self, READ),))
        object.__setattr__(self, "writes", (Access(self, WRITE),))

    @property
    def adds(self) -> tuple[Access]:
        """The access that adds; few regions are ever added to."""
        made = self._adds
        if made is None:
            made = (Access(self, ADD, atomic=True),)
            object.__setattr__(self, "_adds", made)
        return made

    def atomic(self, mode: str) -> tuple[Access]:
        """Return the access that reads or writes each element atomically."""
        return (Access(self, mode, atomic=True),)

    def piece(self, start: int, stop: int, mode: str, *, atomic: bool = False) -> Access:
        """Return the access to elements `start` to `stop`, in row-major order, of this region alone.

        Args:
            start: the first element.
            stop: the one behind the last, at most as many as the region has.
            mode: "read", "write" or "add".
            atomic: whether each element is touched atomically.

        """
        size = self.dtype.itemsize
        run = (self.spans[0][1] - self.spans[0][0]) // size  # the spans of a box are all of one length
        spans = []
        at = start
        while at < stop:
            number, skipped = divmod(at, run)
            low = self.spans[number][0] + skipped * size
            taken = min(run - skipped, stop - at)
            spans.append((low, low + taken * size))
            at += taken
        return Access(replace(self, spans=tuple(spans), part=(start, stop)), mode, atomic=atomic)

    def __str__(self) -> str:
        """Write the region as numpy would index it: ``data[2, 0:64]@1``."""
        return f"{self.window}[{box_text(self.box)}]@{self.owner}"


def box_text(box: Box) -> str:
    """Write a box as an index expression."""
    return ", ".join(
        str(start) if stop == start + 1 else f"{start}:{stop}" + (f":{step}" if step != 1 else "")
        for start, stop, step in box
    )


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """A region and what is done there: read, write, or add; atomic, or not. An add always is.

    `word`: it is how an operation synchronises on a word; against another such one the cell decides, and not the data.
    """

    region: Region
    mode: str
    atomic: bool = False
    word: bool = False


def adds_commute(a: Access, b: Access) -> bool:
    """Say whether two accesses add to elements of one type: then their order does not matter, but to rounding.

    Of two types over the same bytes none of the adds is atomic against the other.

    Args:
        a: an access.
        b: another one.

    """
    return a.mode == b.mode == ADD and a.region.dtype == b.region.dtype


def both_atomic(a: Access, b: Access) -> bool:
    """Say whether two accesses are atomic against each other: their order may matter, but neither is torn or lost.

    Args:
        a: an access.
        b: another one.

    """
    return a.atomic and b.atomic and a.region.dtype == b.region.dtype


class Condition:
    """What a wait waits for: a cell compared with a number. Made by comparing a cell."""

    __slots__ = ("cell", "compare", "expected")

    def __init__(self, cell: Cell, compare: str, expected: int) -> None:
        """Keep the three parts; `compare` is one of Eq, Ne, Gt, Ge, Lt, Le."""
        self.cell = cell
        self.compare = compare
        self.expected = expected

    def __bool__(self) -> NoReturn:
        """Refuse: outside a wait, a condition is neither true nor false."""
        raise MisuseError(
            f"{self} has no truth value; wait for it: await rank.wait({self}), or await rank.test({self})"
        )

    def __str__(self) -> str:
        return f"{self.cell} {SYMBOLS[self.compare]} {self.expected}"


class WordCondition(Condition):
    """The same of a word: a class of its own, so that a wait on a signal has nothing to ask."""

    __slots__ = ()


class _Counter:
    """What a cell is that is no word."""

    __slots__ = ()

    region: Region | None = None
    reads: tuple[Access, ...] = ()
    changes: tuple[Access, ...] = ()


class Cell(_Counter):
    """One counter of a signal, at one rank. Comparing it with an integer gives a `Condition`.

    Cells compare by place, not by value, so they are neither equal nor hashable; `slot` is the
    number that identifies one within its world, `low` and `high` are its range.
    """

    __slots__ = ("high", "index", "low", "owner", "signal", "slot", "world", "wrap")

    def __init__(  # noqa: PLR0913 - a place has this many coordinates; only a world makes cells
        self,
        signal: str,
        owner: int,
        index: tuple[int, ...],
        *,
        slot: int,
        low: int,
        high: int,
        wrap: bool,
        world: object,
    ) -> None:
        self.signal = signal
        self.owner = owner
        self.index = index
        self.slot = slot
        self.low = low
        self.high = high
        self.wrap = wrap
        self.world = world

    def _condition(self, compare: str, expected: object) -> Condition:
        if type(expected) is not int:
            if hasattr(expected, "as_threshold"):  # the number of a call, or what grows with it
                expected = expected.as_threshold()
            if isinstance(expected, bool) or not hasattr(expected, "__index__"):
                raise MisuseError(f"{self} is compared with {expected!r}; compare a cell with an integer")
            expected = int(expected.__index__())  # a number of a subclass would be compared its own way
        assert isinstance(expected, int)  # noqa: S101 - for the type checker; both branches above ensure it
        if not self.low <= expected <= self.high:
            raise MisuseError(f"{self} is compared with {expected}; the cell holds {self.low} to {self.high}")
        return self._compared(compare, expected)

    def _compared(self, compare: str, expected: int) -> Condition:
        return Condition(self, compare, expected)

    def __eq__(self, expected: object) -> Condition:  # type: ignore[override]
        """Wait until equal."""
        return self._condition("Eq", expected)

    def __ne__(self, expected: object) -> Condition:  # type: ignore[override]
        """Wait until different."""
        return self._condition("Ne", expected)

    def __gt__(self, expected: int) -> Condition:
        """Wait until greater."""
        return self._condition("Gt", expected)

    def __ge__(self, expected: int) -> Condition:
        """Wait until at least that."""
        if type(expected) is int and self.low <= expected <= self.high:  # what nearly every wait asks for
            return Condition(self, "Ge", expected)
        return self._condition("Ge", expected)

    def __lt__(self, expected: int) -> Condition:
        """Wait until less."""
        return self._condition("Lt", expected)

    def __le__(self, expected: int) -> Condition:
        """Wait until at most that."""
        return self._condition("Le", expected)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        """Write it as ``signal[2, 0]@1``."""
        return f"{self.signal}[{', '.join(map(str, self.index))}]@{self.owner}"

    __repr__ = __str__

    def wrapped(self, value: int) -> int:
        """Return `value` brought into the cell's range, as the hardware would."""
        return (value - self.low) % (self.high - self.low + 1) + self.low


class Word(Cell):
    """One element of an integer window, at one rank, as a cell: waited for, notified, atomically changed and read.

    It lies in the window's memory, so loads and stores of these bytes see it; they race with what synchronises on it,
    as any plain access does with an atomic one. It wraps, as hardware does. `region` is where it lies, `reads` and
    `changes` are the accesses of what reads it and of what changes it.
    """

    __slots__ = ("changes", "reads", "region")

    region: Region
    reads: tuple[Access, ...]
    changes: tuple[Access, ...]

    def __init__(self, region: Region, index: tuple[int, ...], *, slot: int, low: int, high: int) -> None:
        super().__init__(
            region.window, region.owner, index, slot=slot, low=low, high=high, wrap=True, world=region.world
        )
        self.region = region
        self.reads = (Access(region, READ, atomic=True, word=True),)
        self.changes = (Access(region, WRITE, atomic=True, word=True),)

    def _compared(self, compare: str, expected: int) -> Condition:
        return WordCondition(self, compare, expected)

    def __ge__(self, expected: int) -> Condition:
        """Wait until at least that."""
        return self._condition("Ge", expected)
