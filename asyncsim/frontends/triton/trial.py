"""Trials of a spin loop: one round of it with the flag read as a chosen value, and nothing done to the machine."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.frontends.triton.block import Block

Array = np.ndarray[Any, Any]


@dataclass(slots=True)
class Access:
    """What a round does to memory.

    Args:
        kind: load (a plain one), read, cas, update, store.
        addresses: of the elements.
        dtype: of them.
        sem: of an atomic.
        scope: likewise.
        new: what the word holds afterwards, if that is something else.

    """

    kind: str
    addresses: tuple[int, ...]
    dtype: np.dtype[Any]
    sem: str = "relaxed"
    scope: str = "gpu"
    new: int | None = None
    one_thread: bool = False
    """Whether it is inline assembly's."""

    @property
    def place(self) -> tuple[str, tuple[int, ...]]:
        """What two rounds have in common that look at one flag."""
        return self.kind, self.addresses


@dataclass(slots=True)
class Trial:
    """One trial.

    Args:
        block: which loops.
        value: what each access reads: a number, or a tile.

    """

    block: Block
    value: Any = 0
    accesses: list[Access] = field(default_factory=list)
    operands: set[int] = field(default_factory=set)

    def read(self, access: Access, shape: tuple[int, ...]) -> Array:
        """Note an access, and return what it reads.

        Args:
            access: what is read.
            shape: of what is returned.

        """
        self.accesses.append(access)
        access.one_thread = self.block.one_thread
        value = np.asarray(self.value)
        if value.dtype.kind in "iu" and value.ndim == 0:
            bits = 8 * access.dtype.itemsize
            number = int(value) & (1 << bits) - 1
            value = np.array(number, f"u{access.dtype.itemsize}").view(f"i{access.dtype.itemsize}")
            value = value.astype(access.dtype) if access.dtype.kind in "iub" else value.astype(np.float64)
        return np.broadcast_to(value.astype(access.dtype).reshape(value.shape or (1,)), shape).copy()

    def compared(self, *operands: Array) -> None:
        """Note the numbers that something is compared with."""
        for operand in operands:
            if operand.size == 1 and operand.dtype.kind in "iu":
                self.operands.add(int(operand.reshape(-1)[0]))


_trial: list[Trial] = []


def present_trial() -> Trial | None:
    """Return the trial under way; None: what runs is meant."""
    return _trial[-1] if _trial else None


@contextmanager
def trying(trial: Trial) -> Iterator[Trial]:
    """Let what runs in this block be a trial: no operation is made, so nothing comes between."""
    _trial.append(trial)
    try:
        yield trial
    finally:
        _trial.pop()
