"""Memory that others can reach, as the author's process sees it: plain numpy arrays, found by their addresses.

What such an array shows is a copy. The machine has what is true: a load brings it here, a store takes it there. Until
the process comes to its next operation that is no load or store, it sees what it has loaded, and what it stored waits;
for what others do meanwhile at the same places races with it, wherever between two operations it stands.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.trace.errors import MisuseError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from asyncsim.trace.world import WindowView

Array = np.ndarray[Any, Any]
Run = tuple[int, int, int]
"""(start, count, step), in elements of a block."""


class Block:
    """One piece of memory that others can reach.

    Args:
        key: of its declaration.
        name: of its window.
        flat: all of it, as the author's process sees it: one dimension.
        view: the window, of the rank whose memory it is.
        private: it was given to an operation that goes on after its call; nobody else reaches it.

    Attributes:
        fresh: by element, whether `flat` has what the machine has.
        dirty: by element, the number of the line that stored it and has not yet told the machine; 0: none.
        freed: where it was freed; empty: it was not.

    """

    def __init__(self, key: Hashable, name: str, flat: Array, view: WindowView, *, private: bool = False) -> None:
        self.key = key
        self.name = name
        self.flat = flat
        self.view = view
        self.private = private
        self.start = address(flat)
        self.stop = self.start + flat.nbytes
        self.fresh = np.zeros(flat.size, bool)
        self.dirty = np.zeros(flat.size, np.int32)
        self.freed = ""

    def offset(self, array: Array) -> int:
        """Return where an array in it begins, in elements.

        Raises:
            RefusedError: it begins within one.

        """
        offset, rest = divmod(address(array) - self.start, self.flat.itemsize)
        if rest:
            raise self._refused(array)
        return offset

    def runs(self, array: Array) -> list[Run]:
        """Return which elements an array in it shows, as few runs.

        Args:
            array: of any shape and strides, such as a part of a row or column.

        Raises:
            RefusedError: it shows parts of elements.

        """
        size = self.flat.itemsize
        dims = [*zip(array.shape, array.strides, strict=True)]
        if array.itemsize != size:
            if array.itemsize % size:
                raise self._refused(array)
            dims.append((array.itemsize // size, size))
        if any(not extent for extent, _ in dims):
            return []
        start = address(array) - self.start
        start += sum(min(stride * (extent - 1), 0) for extent, stride in dims)
        if start % size or any(stride % size for extent, stride in dims if extent > 1):
            raise self._refused(array)
        kept = sorted((abs(stride) // size, extent) for extent, stride in dims if extent > 1 and stride)
        step, count = kept[0] if kept else (1, 1)
        outer: list[range] = []
        for stride, extent in kept[1:]:
            if stride == step * count and not outer:
                count *= extent
            else:
                outer.append(range(0, stride * extent, stride))
        return [(start // size + sum(more), count, step) for more in product(*reversed(outer))]

    def _refused(self, array: Array) -> RefusedError:
        return RefusedError(
            f"{self.name} holds {self.flat.dtype}; a view of it as {array.dtype} that shows parts of its elements "
            "is not followed: allocate it with the dtype that it is used with"
        )


class Places:
    """The blocks of one process, by address."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._blocks: list[Block] = []

    def __iter__(self) -> Iterator[Block]:
        return iter(self._blocks)

    def add(self, block: Block) -> None:
        """Let a block be found; of its array it keeps hold, so no other one comes to lie there."""
        at = bisect_right(self._starts, block.start)
        self._starts.insert(at, block.start)
        self._blocks.insert(at, block)

    def remove(self, block: Block) -> None:
        """Let a block be found no more."""
        at = self._blocks.index(block)
        del self._starts[at], self._blocks[at]

    def find(self, array: object) -> Block | None:
        """Return the block that an array lies in; None for all else."""
        if not self._blocks or not isinstance(array, np.ndarray) or not array.size:
            return None
        start = address(array)
        at = bisect_right(self._starts, start) - 1
        if at < 0 or start >= self._blocks[at].stop:
            return None
        return self._blocks[at]


def address(array: Array) -> int:
    """Return the address of an array's first element."""
    start: int = array.__array_interface__["data"][0]
    return start


def contiguous(what: str, name: str, array: object) -> Array:
    """Return an array that lies in one piece.

    Args:
        what: the call, for the message.
        name: of the argument.
        array: what was given for it.

    Raises:
        MisuseError: it does not, or is no array.

    """
    if not isinstance(array, np.ndarray):
        raise MisuseError(f"{what}: {name} is {type(array).__name__}; give a NumPy array")
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise MisuseError(f"{what}: {name} is not contiguous; copy it, or name its places by a stride")
    return array


def sliced(run: Run) -> slice:
    """Return the slice of a run."""
    start, count, step = run
    return slice(start, start + (count - 1) * step + 1, step)


def runs_of(offsets: Array) -> list[Run]:
    """Return elements as few runs.

    Args:
        offsets: ascending, each once.

    """
    if not offsets.size:
        return []
    steps = np.diff(offsets)
    if offsets.size > 1 and (steps == steps[0]).all():
        return [(int(offsets[0]), int(offsets.size), int(steps[0]))]
    parts = np.split(offsets, np.flatnonzero(steps != 1) + 1)
    return [(int(part[0]), int(part.size), 1) for part in parts]
