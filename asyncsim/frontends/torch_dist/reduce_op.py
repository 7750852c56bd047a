"""The reduction operators by torch's names, and what torch refuses of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from asyncsim.collectives.reduce import ReduceOp as Machine
from asyncsim.frontends.torch_dist.tensors import TORCH_TYPES

if TYPE_CHECKING:
    import numpy as np


class ReduceOp(Enum):
    """What a reduction does. PREMUL_SUM needs its factor: `_make_nccl_premul_sum`."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"

    def __repr__(self) -> str:
        return f"<{self}: {self.value}>"


@dataclass(frozen=True, slots=True)
class PremulSum:
    """A sum of terms that are multiplied by a number before.

    Args:
        factor: the number; each rank may have its own.

    """

    factor: float


def make_premul_sum(factor: float) -> PremulSum:
    """Return PREMUL_SUM with its factor, as ``torch.distributed._make_nccl_premul_sum`` does.

    Raises:
        TypeError: the factor is no number.

    """
    if isinstance(factor, bool) or not isinstance(factor, int | float):
        raise TypeError(f"_make_nccl_premul_sum takes a number, got {type(factor).__name__}")
    return PremulSum(float(factor))


_MACHINE = {
    ReduceOp.SUM: Machine.Sum,
    ReduceOp.AVG: Machine.Avg,
    ReduceOp.PRODUCT: Machine.Prod,
    ReduceOp.MIN: Machine.Min,
    ReduceOp.MAX: Machine.Max,
    ReduceOp.BAND: Machine.BAND,
    ReduceOp.BOR: Machine.BOR,
    ReduceOp.BXOR: Machine.BXOR,
}
_BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
_COMPLEX = (ReduceOp.SUM, ReduceOp.AVG)


def checked_op(name: str, op: object, dtype: np.dtype[Any]) -> tuple[Machine, str]:
    """Return an operator as the machine knows it, and as reports write it.

    Args:
        name: of the collective.
        op: what the script gave.
        dtype: of what is reduced; one of `TORCH_TYPES`.

    Raises:
        TypeError: it is no operator.
        ValueError, RuntimeError: torch refuses it for this dtype, too; in its words.

    """
    if isinstance(op, PremulSum):
        if dtype.kind in "bc":
            raise RuntimeError(f"{name}: PREMUL_SUM multiplies by a real number, and {dtype.name} is not multiplied so")
        return Machine.Sum, "PREMUL_SUM"
    if op is ReduceOp.PREMUL_SUM:
        raise TypeError(f"{name}: PREMUL_SUM needs its factor: op=_make_nccl_premul_sum(factor)")
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{name}: op must be a ReduceOp such as ReduceOp.SUM, got {op!r}")
    if dtype.kind == "c" and op not in _COMPLEX:
        refused = ValueError if name == "all_reduce" else RuntimeError
        raise refused(f"{name} does not support {op} on complex tensors")
    if op in _BITWISE and dtype.kind not in "biu":
        raise RuntimeError(f"Cannot use ReduceOp.{op.name} with non-integral dtype")
    if op is ReduceOp.AVG and dtype.kind in "biu":
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {TORCH_TYPES[dtype.name]}"
            f" ({name} with ReduceOp.AVG; use floats, or SUM and divide)"
        )
    return _MACHINE[op], op.name
