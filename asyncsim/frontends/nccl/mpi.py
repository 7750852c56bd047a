"""MPI's reduce-scatter by blocks: the same reduction, with the other layout in place.

NCCL's result in place goes to the own slot. MPI's goes to the first `recvcount` elements of the buffer, whatever the
rank. In memory that peers read this is the layout which a ready barrier alone does not protect: peers whose row is 0
may still be reading it. Here the peers read the workspace, so the buffer is the rank's own.

Source: MPI 4.1, section 6.10 (reduce-scatter), MPI_REDUCE_SCATTER_BLOCK.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.nccl.buffers import buffer, check_count
from asyncsim.frontends.nccl.calls import issue
from asyncsim.frontends.nccl.comm import Call
from asyncsim.frontends.nccl.kinds import checked_type, ncclMax, ncclMin, ncclProd, ncclSum
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    import numpy as np

    from asyncsim.frontends.nccl.comm import Comm
    from asyncsim.frontends.nccl.kinds import ncclDataType_t

    Array = np.ndarray[Any, Any]


class _InPlace(Enum):
    MPI_IN_PLACE = "MPI_IN_PLACE"


MPI_IN_PLACE = _InPlace.MPI_IN_PLACE
"""Given as `sendbuf`: the input is in `recvbuf`."""


class MPI_Op(Enum):  # noqa: N801 - MPI's name
    """The operators of MPI that NCCL has too."""

    MPI_SUM = ncclSum
    MPI_PROD = ncclProd
    MPI_MAX = ncclMax
    MPI_MIN = ncclMin


async def MPI_Reduce_scatter_block(  # noqa: N802, PLR0913, PLR0917 - MPI's name, MPI's operands in its order
    sendbuf: Array | _InPlace, recvbuf: Array, recvcount: int, datatype: ncclDataType_t, op: MPI_Op, comm: Comm
) -> None:
    """Reduce the ranks' `sendbuf`; rank r gets block r, of `recvcount` elements.

    Args:
        sendbuf: at least P * recvcount elements; or MPI_IN_PLACE: they are in `recvbuf`.
        recvbuf: at least recvcount elements, in place P * recvcount; the result is always the first recvcount.
        recvcount: the same on all ranks.
        datatype: of the elements.
        op: the operator.
        comm: the communicator.

    Raises:
        MisuseError: a buffer does not fit, or the two overlap.

    """
    place = f"rank {comm.rank.id}: MPI_Reduce_scatter_block"
    count = check_count(place, "recvcount", recvcount)
    kind = checked_type(place, datatype)
    if not isinstance(op, MPI_Op):
        raise MisuseError(f"{place}: op {op!r}; use one of {', '.join(f'MPI_Op.{known.name}' for known in MPI_Op)}")
    total = comm.rank.size * count
    recv = buffer(place, "recvbuf", recvbuf, count, kind.dtype, written=True)
    if sendbuf is MPI_IN_PLACE:
        send = buffer(place, "recvbuf", recvbuf, total, kind.dtype)
    else:
        send = buffer(place, "sendbuf", sendbuf, total, kind.dtype)
        if send.overlaps(recv):
            raise MisuseError(f"{place}: sendbuf and recvbuf overlap; for a reduction in place, sendbuf=MPI_IN_PLACE")
    program = partial(comm.reduce_scatter, comm.window(place, kind), send.flat, recv.flat, op.value)
    facts = {"count": count, "datatype": kind.name, "op": op.name}
    await issue(comm, Call("MPI_Reduce_scatter_block", facts, send, recv, program))
