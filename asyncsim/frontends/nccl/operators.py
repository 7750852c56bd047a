"""The operators that a communicator keeps, made and destroyed by name; and which of all operators a call may use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.nccl.kinds import (
    PreMulSum,
    checked_type,
    ncclRedOp_t,
    ncclScalarDevice,
    ncclScalarHostImmediate,
)
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from asyncsim.frontends.nccl.comm import Comm
    from asyncsim.frontends.nccl.kinds import Operator, ncclDataType_t, ncclScalarResidence_t


def ncclRedOpCreatePreMulSum(  # noqa: N802 - NCCL's name
    scalar: Any,  # noqa: ANN401 - a number, or an array of one element
    datatype: ncclDataType_t,
    residence: ncclScalarResidence_t,
    comm: Comm,
) -> PreMulSum:
    """Return the operator that multiplies this rank's input by `scalar` and then adds.

    Args:
        scalar: an array of one element of `datatype`; or a number, if the residence is ncclScalarHostImmediate.
        datatype: of the buffers that it will be used on.
        residence: ncclScalarDevice reads `scalar` when a collective runs, ncclScalarHostImmediate now.
        comm: the communicator it will be used on.

    Raises:
        MisuseError: the scalar is no such element.

    """
    place = f"rank {comm.rank.id}: ncclRedOpCreatePreMulSum"
    kind = checked_type(place, datatype)
    dtype = kind.dtype
    if isinstance(scalar, np.ndarray):
        if scalar.size != 1 or scalar.dtype != dtype:
            raise MisuseError(
                f"{place}: the scalar has shape {scalar.shape} and dtype {scalar.dtype}; give one element of {dtype}"
            )
    elif residence != ncclScalarHostImmediate:
        raise MisuseError(f"{place}: with ncclScalarDevice the scalar is read later; give an array of one element")
    factor = scalar if residence == ncclScalarDevice else np.array(scalar, dtype)
    made = PreMulSum(factor, kind)
    comm.operators.append(made)
    return made


def ncclRedOpDestroy(op: PreMulSum, comm: Comm) -> None:  # noqa: N802 - NCCL's name
    """Forget an operator that was created on this communicator.

    Args:
        op: made by `ncclRedOpCreatePreMulSum`.
        comm: the communicator it was made on.

    Raises:
        MisuseError: it was not, or it is destroyed already.

    """
    if op not in comm.operators:
        raise MisuseError(f"rank {comm.rank.id}: ncclRedOpDestroy({op!r}): no operator of this communicator")
    comm.operators.remove(op)


def checked_op(place: str, op: object, datatype: ncclDataType_t, comm: Comm) -> Operator:
    """Return the operator, if it is one that this communicator can use on this data type.

    Args:
        place: the rank and the call, for the message.
        op: one of ``ncclRedOp_t``, its integer, or an operator that was created.
        datatype: of the call.
        comm: of the call.

    Raises:
        MisuseError: it is no operator, of another communicator or data type, or was destroyed.

    """
    if isinstance(op, PreMulSum):
        if op not in comm.operators:
            raise MisuseError(f"{place}: the operator is of another communicator, or was destroyed")
        if op.datatype is not datatype:
            raise MisuseError(f"{place}: the operator was created for {op.datatype.name}, the call has {datatype.name}")
        return op
    try:
        return ncclRedOp_t(op)  # type: ignore[arg-type]
    except ValueError:
        names = ", ".join(kind.name for kind in ncclRedOp_t)
        raise MisuseError(f"{place}: op {op!r}; use one of {names}, or ncclRedOpCreatePreMulSum") from None
