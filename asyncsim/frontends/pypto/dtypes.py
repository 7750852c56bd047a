"""The element types and the enumerations of the dialect, by upstream's names and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, EnumMeta, IntEnum
from typing import TYPE_CHECKING, Any, NoReturn

import ml_dtypes
import numpy as np

from asyncsim.frontends.pypto.refusals import UnknownNameError, nearest, refused

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class DType:
    """An element type: ``pl.FP32``.

    Args:
        name: upstream's; its messages write it small.
        numpy: the numpy dtype of the same bits.

    """

    name: str
    numpy: np.dtype[Any]

    def get_byte(self) -> int:
        """Return the bytes of one element."""
        return self.numpy.itemsize

    def __str__(self) -> str:
        return self.name.lower()

    def __repr__(self) -> str:
        return f"pl.{self.name}"


def _dtypes() -> dict[str, DType]:
    kinds: Mapping[str, Any] = {
        "FP32": np.float32, "FP16": np.float16, "BF16": ml_dtypes.bfloat16, "INT64": np.int64, "INT32": np.int32,
        "INT16": np.int16, "INT8": np.int8, "UINT8": np.uint8, "BOOL": np.bool_,
    }  # fmt: skip
    return {name: DType(name, np.dtype(kind)) for name, kind in kinds.items()}


DTYPES = _dtypes()
"""By name. ``INDEX``, the type of offsets, is counted in 64 bits."""
INDEX = DType("INDEX", np.dtype(np.int64))

_BY_NUMPY = {dtype.numpy: dtype for dtype in DTYPES.values()}


def dtype_for(found: np.dtype[Any], what: str) -> DType:
    """Return the dialect's name of a numpy dtype.

    Raises:
        MisuseError: the dialect has none.

    """
    known = _BY_NUMPY.get(found)
    if known is None:
        raise refused(f"{what} has dtype {found}; the dialect has {', '.join(DTYPES)}", TypeError)
    return known


def dtype_given(dtype: object, what: str) -> DType:
    """Return a dtype that was given as one of ``pl``'s.

    Raises:
        MisuseError: it is none.

    """
    if not isinstance(dtype, DType):
        raise refused(f"{what}: dtype={dtype!r}; give one of pl's, such as pl.FP32", TypeError)
    return dtype


class _Names(EnumMeta):
    """An enumeration that says which names it has."""

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnknownNameError(f"{cls.__name__} has no {name!r}{nearest(name, cls.__members__)}")


class NotifyOp(IntEnum, metaclass=_Names):
    """What a notify does with the cell."""

    AtomicAdd = 0
    Set = 1


class WaitCmp(IntEnum, metaclass=_Names):
    """How a wait compares the cell with what it expects."""

    Eq = 0
    Ge = 1


class AtomicType(IntEnum, metaclass=_Names):
    """How a remote store or a put writes: over what is there, or adding to it element by element."""

    None_ = 0
    Add = 1


class ReduceOp(IntEnum, metaclass=_Names):
    """What a reduction does."""

    Sum = 0
    Max = 1
    Min = 2
    Prod = 3


class FunctionType(Enum, metaclass=_Names):
    """What a function of a program is for."""

    Opaque = "opaque"
    InCore = "incore"
    AIC = "aic"
    AIV = "aiv"
    Inline = "inline"
    Orchestration = "orchestration"


class Level(Enum, metaclass=_Names):
    """Where a function or a block runs."""

    HOST = "host"
    CHIP = "chip"
    CORE_GROUP = "core_group"
    CORE = "core"


class Role(Enum, metaclass=_Names):
    """What a function does where it runs."""

    Orchestrator = "orchestrator"
    Worker = "worker"
    SubWorker = "sub_worker"


class MemorySpace(Enum, metaclass=_Names):
    """Where a tile lies in its core; it means nothing here."""

    DDR = "ddr"
    Vec = "vec"
    Mat = "mat"
    Left = "left"
    Right = "right"
    Acc = "acc"
