"""Addresses: one fake space for all ranks, so that pointers may be stored, added to and moved from rank to rank.

    bits 48 to 62    the rank whose memory it is, plus one
    bits 32 to 47    the buffer; at the same place in it, peers' buffers of one number lie at the same distance
    bits  0 to 31    the byte

A symmetric buffer has one number on all ranks, so what an Iris kernel does (subtract the own base, add the peer's) is
right without knowing of it. A rank's own tensors have numbers from `OWN` on, tables that never change from `TABLE` on.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.guest.author import is_the_authors
from asyncsim.trace.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from asyncsim.frontends.triton.memory import Memory
    from asyncsim.trace.region import Region, Word
    from asyncsim.trace.world import WindowView

Array = np.ndarray[Any, Any]

OWN = 0x4000
"""Numbers of a rank's own tensors begin here."""
TABLE = 0x7000
"""Numbers of constant tables begin here."""
_RANK, _BUFFER, _MOST_BYTES = 48, 32, 1 << 32
_JUST_BEFORE = 1 << 20


def address(rank: int, number: int, byte: int = 0) -> int:
    """Return the address of a byte.

    Args:
        rank: whose memory it is, from 0.
        number: of the buffer.
        byte: in it.

    """
    return rank + 1 << _RANK | number << _BUFFER | byte


def base_of(rank: int) -> int:
    """Return where a rank's memory begins: its heap, for those who reckon with one."""
    return address(rank, 0)


def refused(text: str) -> RefusedError:
    """Return the error for something that cannot be right, with the author's line in front."""
    return RefusedError(f"{author_line()}{text}")


def author_line() -> str:
    """Return ``file:line: `` of the author's innermost frame, or nothing."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the line is what is wanted
    while frame is not None:
        if is_the_authors(frame.f_code):
            return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}: "
        frame = frame.f_back
    return ""


@dataclass(frozen=True, slots=True)
class Place:
    """Elements of one rank's window.

    Args:
        view: of the window that has the dtype.
        places: of the elements, in the flat window.
        number: of the buffer.

    """

    view: WindowView
    places: Array
    number: int

    def region(self, key: Any) -> Region:
        """Return a region of the window."""
        return self.view[key]

    def word(self, place: int) -> Word:
        """Return one element as a cell."""
        return self.view.word[tuple(int(at) for at in np.unravel_index(place, self.view.shape))]


class Space:
    """What addresses mean to one rank in one run.

    Args:
        rank: its number.
        ranks: P.
        memory: what is declared.
        views: of it.

    """

    def __init__(self, rank: int, ranks: int, memory: Memory, views: Sequence[Any]) -> None:
        self.rank, self.ranks, self.memory, self.views = rank, ranks, memory, views
        self.tables: dict[int, Array] = {}
        self.written: set[int] = set()

    def table(self, values: Sequence[int]) -> int:
        """Return the address of a new table of 64-bit numbers that never change, such as one of pointers."""
        number = TABLE + len(self.tables)
        self.tables[number] = np.array(values, np.uint64)
        return address(self.rank, number)

    def constants(self, addresses: Array, dtype: np.dtype[Any]) -> Array | None:
        """Return what a constant table holds at these addresses; None: it is memory that can change.

        Args:
            addresses: at least one.
            dtype: what is read there.

        Raises:
            RefusedError: one of them is beyond the table.

        """
        number = int(addresses[0]) >> _BUFFER & 0xFFFF
        if number < TABLE or number not in self.tables:
            return None
        known = self.tables[number].view(dtype)
        at = (addresses.astype(np.int64) - address(self.rank, number)) // dtype.itemsize
        if (at < 0).any() or (at >= len(known)).any():
            raise refused(f"a load of element {int(at.max())} of a table of {len(known)}")
        found: Array = known[at]
        return found

    def place(self, addresses: Array, dtype: np.dtype[Any], what: str) -> Place:
        """Return where these addresses lie.

        Args:
            addresses: at least one.
            dtype: of the elements there.
            what: is done, for messages.

        Raises:
            RefusedError: they lie in no memory, in that of another rank which is not symmetric, outside of a buffer, or
                not at multiples of the size of an element.

        """
        first = int(addresses[0])
        owner, number = (first >> _RANK) - 1, first >> _BUFFER & 0xFFFF
        if first & _MOST_BYTES - 1 >= _MOST_BYTES - _JUST_BEFORE:
            number += 1  # a negative offset
        low = address(owner, number)
        if not 0 <= owner < self.ranks:
            raise refused(f"{what} at address {first:#x}, which is in no memory of these {self.ranks} ranks")
        name, size = self.memory.known(number)
        if number >= OWN and owner != self.rank:
            raise refused(
                f"{what} of rank {owner}'s own {name!r}, which is not symmetric memory: only its own rank reaches it"
            )
        if not name:
            raise refused(f"{what} at address {first:#x}: rank {owner} has allocated nothing there")
        bytes_ = addresses.astype(np.int64) - low
        if (bytes_ < 0).any() or (bytes_ + dtype.itemsize > size).any():
            outside = bytes_[(bytes_ < 0) | (bytes_ + dtype.itemsize > size)]
            raise refused(
                f"{what} out of bounds: element {int(outside[0]) // dtype.itemsize} of {name!r}, which has "
                f"{size // dtype.itemsize} of {dtype}"
            )
        if (bytes_ % dtype.itemsize).any():
            raise refused(f"{what} of {dtype} at byte {int(bytes_[0])} of {name!r}: misaligned")
        view = self.views[self.memory.index(number, dtype)]
        return Place(view if owner == self.rank else view.at(owner), bytes_ // dtype.itemsize, number)
