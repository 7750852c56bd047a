"""A symmetric heap: arrays that all processes make together, each its own, found at a peer by where they lie here."""

# ruff: noqa: ANN401 - what a script hands over may be anything
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.guest.layout import Wanted
from asyncsim.guest.line import present_line
from asyncsim.guest.party import Party
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from asyncsim.guest.places import Array, Block


class Heap(Party):
    """A process with such arrays."""

    allocated = "what was allocated together"
    """Of what the interface says that it is symmetric, for messages."""

    def make_symmetric(self, shape: Any, dtype: Any, order: str, *, cleared: bool) -> Array:
        """Allocate at all processes; they have to meet before they use it.

        Args:
            shape: of the array.
            dtype: of its elements.
            order: in which they lie, "C" or "F".
            cleared: they may be read before anybody wrote them.

        Raises:
            MisuseError: it is no shape or no dtype of an array that holds numbers.

        """
        try:
            kind = np.dtype(dtype)
            count = np.broadcast_to(np.zeros((), kind), shape).size
        except (TypeError, ValueError) as error:
            raise MisuseError(f"there is no array of shape {shape!r} and dtype {dtype!r}: {error}") from error
        if kind.kind not in "biufc" or order not in ("C", "F", "A", "K"):
            raise MisuseError(f"there is no symmetric array of {kind} in order {order!r}; it is for numbers, C or F")
        self.collective("allocation", nbytes=count * kind.itemsize)
        wanted = Wanted(present_line().assigned() or "array", count, kind.name, initialised=cleared)
        block = self.make(("symmetric", self.next("symmetric")), wanted)
        return block.flat.reshape(shape, order=order)  # type: ignore[call-overload,no-any-return]

    def symmetric(self, what: str, name: str, array: Any) -> Block:
        """Return the block that a symmetric array lies in.

        Args:
            what: the call, for the message.
            name: of the argument.
            array: what was given for it.

        Raises:
            MisuseError: it is no symmetric array, or was freed.

        """
        if not isinstance(array, np.ndarray):
            raise MisuseError(f"{what}: {name} is {type(array).__name__}; give a symmetric array")
        block = self.places.find(array)
        if block is None or block.private:
            raise MisuseError(f"{what}: {name} is not symmetric; it must lie in {self.allocated}")
        self.check_alive(block)
        return block

    def element(self, what: str, name: str, array: Any) -> tuple[Block, int]:
        """Return the block of a symmetric array of one element, and which element that is.

        Args:
            what: as for `symmetric`.
            name: likewise.
            array: likewise.

        Raises:
            MisuseError: it is not symmetric, or has more than one element.

        """
        block = self.symmetric(what, name, array)
        if array.size != 1:
            raise MisuseError(f"{what}: {name} has {array.size} elements; give one: {name}[0:1]")
        return block, block.offset(array)

    def cell(self, block: Block, offset: int, pe: int) -> Any:
        """Return an element as a cell; one of a window of floats is its bits.

        Args:
            block: the own one.
            offset: which element.
            pe: whose it is.

        """
        dtype = block.flat.dtype
        if dtype.kind not in "iu":
            dtype = np.dtype(f"i{dtype.itemsize}")
        return self.word(block, offset * dtype.itemsize, dtype, pe)
