"""The calls: what NCCL checks, what it leaves unchecked and is checked here, and groups.

Outside a group a call is made when it is awaited, and has ended when that returns, as after a stream was
synchronised. Between `ncclGroupStart` and `ncclGroupEnd` calls are only noted; the end makes them, in the order in
which they were noted. NCCL promises no order between the calls of a group, so a call whose buffer another call of
the same group writes is refused. Data is read when a call is made, not when it is noted.

Source: NCCL's API reference: collective communication functions, group calls, in-place operations.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.nccl.buffers import buffer, check_count, check_in_place
from asyncsim.frontends.nccl.comm import Call
from asyncsim.frontends.nccl.kinds import checked_type
from asyncsim.frontends.nccl.operators import checked_op
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    import numpy as np

    from asyncsim.frontends.nccl.comm import Comm
    from asyncsim.frontends.nccl.kinds import Operator, PreMulSum, ncclDataType_t, ncclRedOp_t

    Array = np.ndarray[Any, Any]


_OPEN = "inside a group, whose calls were noted and never made; end it: await ncclGroupEnd(comm)"


async def ncclReduceScatter(  # noqa: N802, PLR0913, PLR0917 - NCCL's name, NCCL's operands in its order
    sendbuff: Array,
    recvbuff: Array,
    recvcount: int,
    datatype: ncclDataType_t,
    op: ncclRedOp_t | PreMulSum,
    comm: Comm,
) -> None:
    """Reduce the ranks' `sendbuff`; rank r gets elements r * recvcount up to (r + 1) * recvcount.

    Args:
        sendbuff: at least P * recvcount elements.
        recvbuff: at least recvcount elements; in place if and only if it is sendbuff + rank * recvcount.
        recvcount: the same on all ranks.
        datatype: of the elements; the workspace has a window for it.
        op: the operator.
        comm: the communicator.

    Raises:
        MisuseError: a buffer does not fit, or they overlap in another way.

    """
    place = _place(comm, "ncclReduceScatter")
    count = check_count(place, "recvcount", recvcount)
    kind = checked_type(place, datatype)
    chosen = checked_op(place, op, kind, comm)
    send = buffer(place, "sendbuff", sendbuff, comm.rank.size * count, kind.dtype)
    recv = buffer(place, "recvbuff", recvbuff, count, kind.dtype, written=True)
    check_in_place(place, recv, send, comm.rank.id * count, "recvbuff == sendbuff + rank * recvcount")
    program = partial(comm.reduce_scatter, comm.window(place, kind), send.flat, recv.flat, chosen)
    await issue(comm, Call("ncclReduceScatter", _facts(count, kind, chosen), send, recv, program))


async def ncclAllGather(  # noqa: N802 - NCCL's name
    sendbuff: Array, recvbuff: Array, sendcount: int, datatype: ncclDataType_t, comm: Comm
) -> None:
    """Gather the ranks' `sendbuff`; rank r's stand at r * sendcount in everybody's `recvbuff`.

    Args:
        sendbuff: at least sendcount elements; in place if and only if it is recvbuff + rank * sendcount.
        recvbuff: at least P * sendcount elements.
        sendcount: the same on all ranks.
        datatype: of the elements.
        comm: the communicator.

    Raises:
        MisuseError: a buffer does not fit, or they overlap in another way.

    """
    place = _place(comm, "ncclAllGather")
    count = check_count(place, "sendcount", sendcount)
    kind = checked_type(place, datatype)
    send = buffer(place, "sendbuff", sendbuff, count, kind.dtype)
    recv = buffer(place, "recvbuff", recvbuff, comm.rank.size * count, kind.dtype, written=True)
    check_in_place(place, send, recv, comm.rank.id * count, "sendbuff == recvbuff + rank * sendcount")
    program = partial(comm.all_gather, comm.window(place, kind), send.flat, recv.flat)
    await issue(comm, Call("ncclAllGather", _facts(count, kind), send, recv, program))


async def ncclAllReduce(  # noqa: N802, PLR0913, PLR0917 - NCCL's name, NCCL's operands in its order
    sendbuff: Array, recvbuff: Array, count: int, datatype: ncclDataType_t, op: ncclRedOp_t | PreMulSum, comm: Comm
) -> None:
    """Reduce the ranks' `sendbuff` into everybody's `recvbuff`; all ranks get the same bits.

    Args:
        sendbuff: at least count elements.
        recvbuff: at least count elements; in place if and only if it is sendbuff.
        count: the same on all ranks.
        datatype: of the elements.
        op: the operator.
        comm: the communicator.

    Raises:
        MisuseError: a buffer does not fit, or they overlap in another way.

    """
    place = _place(comm, "ncclAllReduce")
    count = check_count(place, "count", count)
    kind = checked_type(place, datatype)
    chosen = checked_op(place, op, kind, comm)
    send = buffer(place, "sendbuff", sendbuff, count, kind.dtype)
    recv = buffer(place, "recvbuff", recvbuff, count, kind.dtype, written=True)
    check_in_place(place, recv, send, 0, "recvbuff == sendbuff")
    program = partial(comm.all_reduce, comm.window(place, kind), send.flat, recv.flat, chosen)
    await issue(comm, Call("ncclAllReduce", _facts(count, kind, chosen), send, recv, program))


async def ncclBroadcast(  # noqa: N802, PLR0913, PLR0917 - NCCL's name, NCCL's operands in its order
    sendbuff: Array | None, recvbuff: Array, count: int, datatype: ncclDataType_t, root: int, comm: Comm
) -> None:
    """Copy the root's `sendbuff` into everybody's `recvbuff`.

    Args:
        sendbuff: at least count elements on the root; not looked at elsewhere.
        recvbuff: at least count elements; in place if and only if it is sendbuff.
        count: the same on all ranks.
        datatype: of the elements.
        root: whose data it is, a rank of the communicator.
        comm: the communicator.

    Raises:
        MisuseError: a buffer does not fit, they overlap in another way, or there is no such root.

    """
    place = _place(comm, "ncclBroadcast")
    count = check_count(place, "count", count)
    kind = checked_type(place, datatype)
    root = operator.index(root)
    if not 0 <= root < comm.rank.size:
        raise MisuseError(f"{place}: root={root}; the ranks are 0 to {comm.rank.size - 1}")
    recv = buffer(place, "recvbuff", recvbuff, count, kind.dtype, written=True)
    send = None
    if comm.rank.id == root:
        send = buffer(place, "sendbuff", sendbuff, count, kind.dtype)
        check_in_place(place, recv, send, 0, "recvbuff == sendbuff")
    source = recv.flat if send is None else send.flat  # on a rank that is not the root nobody reads it
    program = partial(comm.broadcast, comm.window(place, kind), source, recv.flat, root)
    await issue(comm, Call("ncclBroadcast", _facts(count, kind) | {"root": root}, send, recv, program))


def ncclGroupStart(comm: Comm) -> None:  # noqa: N802 - NCCL's name
    """Begin a group on this communicator; groups may stand inside each other, and the outermost end counts.

    NCCL's group belongs to the calling thread. Here nothing is ambient, so it belongs to the communicator. A kernel
    must end what it began before it returns.
    """
    comm.depth += 1
    comm.rank.unfinished.append(_OPEN)


async def ncclGroupEnd(comm: Comm) -> None:  # noqa: N802 - NCCL's name
    """End a group; the outermost end makes the calls that were noted, in their order.

    Raises:
        MisuseError: no group was begun.

    """
    if not comm.depth:
        raise MisuseError(f"{_place(comm, 'ncclGroupEnd')}: no group was begun; call ncclGroupStart(comm) first")
    comm.depth -= 1
    comm.rank.unfinished.remove(_OPEN)
    if comm.depth:
        return
    calls, comm.queue = comm.queue, []
    for call in calls:
        await _make(comm, call)


async def issue(comm: Comm, call: Call) -> None:
    """Make a call, or note it if a group is open.

    Args:
        comm: the communicator; within a group the call is made when the group ends.
        call: a call that was checked.

    Raises:
        MisuseError: an earlier call of the group uses the same memory.

    """
    if not comm.depth:
        await _make(comm, call)
        return
    for earlier in comm.queue:
        _check_unordered(comm, earlier, call)
    comm.queue.append(call)


async def _make(comm: Comm, call: Call) -> None:
    comm.rank.collective(call.name, **call.facts)
    with comm.rank.phase(call.name):
        await call.program()


def _check_unordered(comm: Comm, earlier: Call, call: Call) -> None:
    """Refuse a call that needs an order with an earlier one of its group."""
    for one, other in ((earlier.writes, call.reads), (earlier.writes, call.writes), (earlier.reads, call.writes)):
        if one is not None and other is not None and one.overlaps(other):
            raise MisuseError(
                f"{_place(comm, call.name)}: its {other.name} overlaps the {one.name} of the {earlier.name} before it "
                "in this group, and nothing orders the calls of a group; end the group between them"
            )


def _facts(count: int, kind: ncclDataType_t, op: Operator | None = None) -> dict[str, Any]:
    """Return what must be equal on all ranks."""
    facts: dict[str, Any] = {"count": count, "datatype": kind.name}
    return facts if op is None else facts | {"op": op.name}


def _place(comm: Comm, name: str) -> str:
    return f"rank {comm.rank.id}: {name}"
