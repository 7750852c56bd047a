"""What a program's memory is: found by running it, since it allocates as it goes.

A run starts with what is known. Whatever it comes to that is not declared yet is noted, and ends it; the next run
has it. So the machine that judges is also the one that finds out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from asyncsim.trace.declare import Signal, Window
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from asyncsim.trace.declare import Declaration

_BF16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
BARRIER = "host_barrier"
"""The signal of barriers between hosts."""


class UndeclaredError(MisuseError):
    """Ends a run that came to memory which is not declared yet."""


@dataclass(slots=True)
class Buffer:
    """One buffer, on all ranks.

    Args:
        name: what reports call it.
        shape: in elements.
        dtype: of the elements.
        initialised: what it holds at the start may be read.

    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    initialised: bool = False

    @property
    def nbytes(self) -> int:
        """Its size."""
        return math.prod(self.shape) * self.dtype.itemsize


class Memory:
    """The buffers of a program, and the windows that they are declared as."""

    def __init__(self) -> None:
        self.buffers: dict[int, Buffer] = {}
        self.views: list[tuple[int, np.dtype[Any]]] = []
        self.declared: dict[tuple[int, np.dtype[Any]], int] = {}
        self.open = True
        """Whether what is missing may still be added."""
        self.incomplete = False
        """Whether the present run came to something that is missing."""
        self.words: set[int] = set()
        """Buffers on which something synchronises: what a host writes there are values of words."""

    def declare(self) -> tuple[Declaration, ...]:
        """Settle what is known, and return it as declarations; a signal for barriers comes first."""
        made: list[Declaration] = [Signal(BARRIER, ("P", 1))]
        self.declared, self.incomplete = {}, False
        for number, buffer in sorted(self.buffers.items()):
            self.declared[number, buffer.dtype] = len(made)
            made.append(Window(buffer.name, buffer.shape, buffer.dtype, initialised=buffer.initialised))
        for number, dtype in self.views:
            buffer = self.buffers[number]
            if (number, dtype) not in self.declared:
                self.declared[number, dtype] = len(made)
                count = buffer.nbytes // dtype.itemsize
                made.append(Window(f"{buffer.name}_as_{dtype}", (count,), dtype, over=buffer.name))
        return tuple(made)

    def add(self, number: int, wanted: Buffer) -> None:
        """Take note of a buffer that a rank has; what ranks have of different shapes is declared flat.

        Args:
            number: of the buffer.
            wanted: its name, shape and dtype.

        Raises:
            MisuseError: it is larger than in the first run.

        """
        known = self.buffers.get(number)
        if known is None:
            wanted.name = self._free(wanted.name)
            self.buffers[number] = wanted
        elif (known.shape, known.dtype) != (wanted.shape, wanted.dtype) and known.nbytes < wanted.nbytes:
            if not self.open:
                raise MisuseError(f"{known.name}: {wanted.nbytes} bytes, where it had {known.nbytes} in the first run")
            known.shape = (-(-wanted.nbytes // known.dtype.itemsize),)
            self.declared = {}
        elif known.shape != wanted.shape and len(known.shape) > 1 and self.open:
            known.shape = (math.prod(known.shape),)
            self.declared = {}

    def note_word(self, number: int) -> None:
        """Take note that something synchronises on a buffer."""
        if self.open and number not in self.words:
            self.words.add(number)
            self.incomplete = True

    def known(self, number: int) -> tuple[str, int]:
        """Return the name and the size in bytes of a buffer; no name: there is none."""
        found = self.buffers.get(number)
        return ("", 0) if found is None else (found.name, found.nbytes)

    def index(self, number: int, dtype: np.dtype[Any]) -> int:
        """Return which declaration shows a buffer as elements of a dtype.

        Args:
            number: of the buffer.
            dtype: of the elements.

        Raises:
            UndeclaredError: none does so far; the next run has it.
            MisuseError: it is too late for that.

        """
        found = self.declared.get((number, dtype))
        if found is None:
            if not self.open:
                name = self.buffers[number].name
                raise MisuseError(f"{name} as {dtype}, which no operation used when its memory was found out")
            if (number, dtype) not in self.views:
                self.views.append((number, dtype))
            self.incomplete = True
            raise UndeclaredError(self.buffers[number].name)
        return found

    def _free(self, name: str) -> str:
        taken = {buffer.name for buffer in self.buffers.values()} | {BARRIER}
        tries = (name if n == 1 else f"{name}_{n}" for n in range(1, len(taken) + 2))
        return next(each for each in tries if each not in taken)


def plain_dtype(dtype: Any) -> np.dtype[Any]:
    """Return numpy's dtype for one of torch's, of numpy's, or for a name."""
    name = str(dtype).rpartition(".")[2]
    if name == "bfloat16":
        return _BF16
    if name.startswith("float8"):
        return np.dtype(np.uint8)
    found: np.dtype[Any] = np.dtype(dtype if isinstance(dtype, np.dtype | type) else name)
    return found
