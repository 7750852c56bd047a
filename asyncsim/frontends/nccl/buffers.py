"""The buffers of a call: arrays whose place in memory decides what is in place, what overlaps, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from asyncsim.collectives.reduce import Tile


@dataclass(frozen=True, slots=True)
class Buffer:
    """The elements of an array that a call uses.

    Args:
        name: what the call names it: "sendbuff".
        flat: the elements, a view of shape (count,).
        low, high: where their bytes lie.

    """

    name: str
    flat: Tile
    low: int
    high: int

    def overlaps(self, other: Buffer) -> bool:
        """Say whether the two share a byte."""
        return max(self.low, other.low) < min(self.high, other.high)


def buffer(place: str, name: str, array: Any, count: int, dtype: np.dtype[Any], *, written: bool = False) -> Buffer:  # noqa: ANN401, PLR0913
    """Return the first `count` elements of an array.

    Args:
        place: the rank and the call, for messages.
        name: of the parameter.
        array: contiguous, of any shape, with at least so many elements.
        count: how many elements the call uses.
        dtype: what the elements must be.
        written: the call writes them.

    Raises:
        MisuseError: it is no such array.

    """
    if not isinstance(array, np.ndarray):
        raise MisuseError(f"{place}: {name} is an object of type {type(array).__name__}; give a numpy array")
    if array.dtype != dtype:
        raise MisuseError(f"{place}: {name} has dtype {array.dtype}, the datatype says {dtype}")
    if not array.flags.c_contiguous:
        raise MisuseError(f"{place}: {name} is not contiguous; give numpy.ascontiguousarray of it")
    if array.size < count:
        raise MisuseError(f"{place}: {name} has {array.size} elements; the call uses {count}")
    if written and not array.flags.writeable:
        raise MisuseError(f"{place}: {name} is read-only, and the call writes to it")
    flat = array.reshape(-1)[:count]
    low = array.__array_interface__["data"][0]
    return Buffer(name, flat, low, low + flat.nbytes)


def check_count(place: str, name: str, count: object) -> int:
    """Return a count, if it is one.

    Args:
        place: the rank and the call, for the message.
        name: of the argument, for the message.
        count: in elements: an integer of Python's or numpy's, no boolean.

    Raises:
        MisuseError: it is none, or less than 0.

    """
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
        raise MisuseError(f"{place}: {name}={count!r}; a count is an integer >= 0")
    return int(count)


def check_in_place(place: str, small: Buffer, large: Buffer, slot: int, rule: str) -> None:
    """Refuse buffers that overlap in any way but one.

    Args:
        place: the rank and the call.
        small: the buffer that may lie inside the other.
        large: the other.
        slot: the element of `large` at which `small` must begin.
        rule: the same in the words of the dialect.

    Raises:
        MisuseError: they overlap in another way.

    """
    size = large.flat.itemsize
    if not small.overlaps(large) or small.low == large.low + slot * size:
        return
    away = small.low - large.low
    found = f"{away // size:+d} elements" if away % size == 0 else f"{away:+d} bytes"
    raise MisuseError(
        f"{place}: {small.name} and {large.name} overlap, and not in place; it is in place if and only if {rule}, "
        f"here {large.name} {slot:+d} elements; {small.name} is at {large.name} {found}"
    )
