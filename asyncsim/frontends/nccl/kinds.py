"""NCCL's data types and reduction operators, with NCCL's integers.

An operator is three steps: what is done to the own data before it is staged, how two tiles are combined, and what is
done with the sum. The combining is the library's (own tile first, then the peers' ascending); a real NCCL adds in the
order of its ring or tree, so floating results may differ from its in the last bits.
"""

# ruff: noqa: N815, N816 - the names are NCCL's

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.collectives.reduce import ReduceOp
from asyncsim.trace.declare import dtype_of
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from asyncsim.collectives.reduce import Tile


class ncclDataType_t(IntEnum):  # noqa: N801 - NCCL's name
    """What a buffer holds. The 8-bit floating types are not simulated: no window can hold them."""

    ncclInt8 = 0
    ncclUint8 = 1
    ncclInt32 = 2
    ncclUint32 = 3
    ncclInt64 = 4
    ncclUint64 = 5
    ncclFloat16 = 6
    ncclFloat32 = 7
    ncclFloat64 = 8
    ncclBfloat16 = 9

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype of its elements."""
        return dtype_of(self.name.removeprefix("nccl").lower())


class ncclRedOp_t(IntEnum):  # noqa: N801 - NCCL's name
    """What a reduction does.

    Avg as NCCL has it: a floating number is multiplied by 1/P, rounded to its own type, before it is added; the
    sum of integers is divided, towards zero.
    """

    ncclSum = 0
    ncclProd = 1
    ncclMax = 2
    ncclMin = 3
    ncclAvg = 4


class ncclScalarResidence_t(IntEnum):  # noqa: N801 - NCCL's name
    """When the factor of a pre-multiplied sum is read: when a collective runs, or when the operator is created."""

    ncclScalarDevice = 0
    ncclScalarHostImmediate = 1


@dataclass(frozen=True, slots=True, eq=False)
class PreMulSum:
    """A sum of inputs, each multiplied before by the factor of its rank. Made by `ncclRedOpCreatePreMulSum`.

    Args:
        factor: one element of the data type.
        datatype: of the factor and of the buffers.

    """

    factor: Tile
    datatype: ncclDataType_t

    @property
    def name(self) -> str:
        """What reports call it; the factors may differ between ranks."""
        return "ncclPreMulSum"


Operator = ncclRedOp_t | PreMulSum

ncclInt8 = ncclChar = ncclDataType_t.ncclInt8
ncclUint8 = ncclDataType_t.ncclUint8
ncclInt32 = ncclInt = ncclDataType_t.ncclInt32
ncclUint32 = ncclDataType_t.ncclUint32
ncclInt64 = ncclDataType_t.ncclInt64
ncclUint64 = ncclDataType_t.ncclUint64
ncclFloat16 = ncclHalf = ncclDataType_t.ncclFloat16
ncclFloat32 = ncclFloat = ncclDataType_t.ncclFloat32
ncclFloat64 = ncclDouble = ncclDataType_t.ncclFloat64
ncclBfloat16 = ncclDataType_t.ncclBfloat16
ncclSum = ncclRedOp_t.ncclSum
ncclProd = ncclRedOp_t.ncclProd
ncclMax = ncclRedOp_t.ncclMax
ncclMin = ncclRedOp_t.ncclMin
ncclAvg = ncclRedOp_t.ncclAvg
ncclScalarDevice = ncclScalarResidence_t.ncclScalarDevice
ncclScalarHostImmediate = ncclScalarResidence_t.ncclScalarHostImmediate

_COMBINED = {
    ncclSum: ReduceOp.Sum,
    ncclProd: ReduceOp.Prod,
    ncclMax: ReduceOp.Max,
    ncclMin: ReduceOp.Min,
    ncclAvg: ReduceOp.Sum,
}


def checked_type(place: str, datatype: object) -> ncclDataType_t:
    """Return the data type, or say what would be one.

    Args:
        place: the rank and the call, for the message.
        datatype: one of ``ncclDataType_t``, or its integer.

    Raises:
        MisuseError: it is none.

    """
    try:
        return ncclDataType_t(datatype)  # type: ignore[arg-type]
    except ValueError:
        names = ", ".join(kind.name for kind in ncclDataType_t)
        raise MisuseError(f"{place}: datatype {datatype!r}; use one of {names}") from None


def prepared(tile: Tile, op: Operator, ranks: int) -> Tile:
    """Return what a rank stages of its own data: a copy, multiplied where the operator does so before it adds.

    Args:
        tile: of any shape; left as it is.
        op: its factor, or 1/P of an average of floats, is what is multiplied with.
        ranks: P.

    """
    if isinstance(op, PreMulSum):
        factor = op.factor.reshape(())
    elif op is ncclAvg and tile.dtype.kind not in "iu":
        factor = np.array(1.0 / ranks, tile.dtype)
    else:
        return tile.copy()
    with np.errstate(all="ignore"):
        return np.asarray(tile * factor)


def combined(op: Operator) -> ReduceOp:
    """Return how two tiles become one."""
    return ReduceOp.Sum if isinstance(op, PreMulSum) else _COMBINED[op]


def finished(acc: Tile, op: Operator, ranks: int) -> Tile:
    """Return the result: the sum of integers divided towards zero for an average, all else as it is.

    Args:
        acc: the reduced elements.
        op: the operator.
        ranks: P.

    """
    if op is not ncclAvg or acc.dtype.kind not in "iu":
        return acc
    quotient = np.abs(acc.astype(object)) // ranks  # of Python's integers: the least int64 has no positive twin
    return np.asarray(np.where(acc < 0, -quotient, quotient).astype(acc.dtype))
