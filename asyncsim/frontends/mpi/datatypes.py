"""Datatypes, operators, and the buffers that calls are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from asyncsim.guest.element import Operator
from asyncsim.guest.places import contiguous
from asyncsim.trace.cells import AND, ATOMIC_ADD, MAX, MIN, OR, SET, XOR
from asyncsim.trace.errors import MisuseError


@dataclass(frozen=True)
class Datatype:
    """A predefined datatype.

    Args:
        name: as in MPI.
        dtype: of numpy.

    """

    name: str
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    extent = size

    def Get_size(self) -> int:  # noqa: N802 - MPI's name
        """Return the bytes of an element."""
        return self.dtype.itemsize

    def Get_extent(self) -> tuple[int, int]:  # noqa: N802 - MPI's name
        """Return where an element begins, and its bytes."""
        return 0, self.dtype.itemsize


_NAMES = {
    "BYTE": "u1", "CHAR": "i1", "SIGNED_CHAR": "i1", "UNSIGNED_CHAR": "u1", "SHORT": "i2", "UNSIGNED_SHORT": "u2",
    "INT": "i4", "INTEGER": "i4", "UNSIGNED": "u4", "LONG": "i8", "UNSIGNED_LONG": "u8", "LONG_LONG": "i8",
    "INT8_T": "i1", "INT16_T": "i2", "INT32_T": "i4", "INT64_T": "i8", "UINT8_T": "u1", "UINT16_T": "u2",
    "UINT32_T": "u4", "UINT64_T": "u8", "FLOAT": "f4", "DOUBLE": "f8", "REAL": "f4", "DOUBLE_PRECISION": "f8",
    "BOOL": "?", "C_BOOL": "?", "AINT": "i8", "INT32": "i4", "C_DOUBLE_COMPLEX": "c16", "COMPLEX": "c8",
}  # fmt: skip
DATATYPES = {name: Datatype(name, np.dtype(kind)) for name, kind in _NAMES.items()}
"""By name."""


Op = Operator
OPS = {
    op.name: op
    for op in (
        Op("SUM", np.add, ATOMIC_ADD), Op("PROD", np.multiply), Op("MAX", np.maximum, MAX), Op("MIN", np.minimum, MIN),
        Op("BAND", np.bitwise_and, AND), Op("BOR", np.bitwise_or, OR), Op("BXOR", np.bitwise_xor, XOR),
        Op("LAND", np.logical_and), Op("LOR", np.logical_or), Op("LXOR", np.logical_xor),
        Op("REPLACE", None, SET), Op("NO_OP"),
    )
}  # fmt: skip
"""By name."""


def buffer(what: str, given: Any) -> np.ndarray[Any, Any]:
    """Return the elements that a buffer of a call means, as a flat array in its own memory.

    Args:
        what: the call, for the message.
        given: an array; or [array, datatype], [array, count], [array, count, datatype].

    Raises:
        MisuseError: it is none of these, or not contiguous, or shorter than it says.

    """
    parts = list(given) if isinstance(given, list | tuple) else [given]
    array = parts[0]
    flat = contiguous(what, "the buffer", array).reshape(-1, order="A")
    count: Any = None
    for part in parts[1:]:
        if isinstance(part, Datatype):
            if part.dtype.itemsize != flat.itemsize:
                raise MisuseError(f"{what}: the array holds {flat.dtype}, and the call says {part.name}")
        elif part is not None and hasattr(part, "__index__"):
            count = int(part)
        elif part is not None and not isinstance(part, str):
            raise MisuseError(f"{what}: {part!r} in a buffer is not followed; give [array, count, datatype]")
    if count is not None and count > flat.size:
        raise MisuseError(f"{what}: {count} elements, and the array has {flat.size}: out of range")
    return flat if count is None else flat[:count]
