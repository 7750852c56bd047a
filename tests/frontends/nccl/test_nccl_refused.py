"""What NCCL's rules, and MPI's, do not allow: refused on the rank that does it, with what would be right."""

from __future__ import annotations

import re

import numpy as np
import pytest
from nccl_runs import made, ran

from asyncsim import KernelError, MisuseError, kernel
from asyncsim.frontends import nccl


async def reduce_scatter(comm, send, recv, count=2, *, datatype=nccl.ncclInt32, op=nccl.ncclSum):  # noqa: PLR0913
    await nccl.ncclReduceScatter(send, recv, count, datatype, op, comm)


def int32(n):
    return np.zeros(n, np.int32)


async def grouped(comm, x):
    nccl.ncclGroupStart(comm)
    await nccl.ncclAllReduce(x, x[:], 2, nccl.ncclInt32, nccl.ncclSum, comm)
    await reduce_scatter(comm, x, int32(2))


async def destroyed(comm, x):
    op = nccl.ncclRedOpCreatePreMulSum(np.array(2, np.int32), nccl.ncclInt32, nccl.ncclScalarDevice, comm)
    nccl.ncclRedOpDestroy(op, comm)
    await reduce_scatter(comm, x, int32(2), op=op)


async def destroyed_twice(comm, x):
    op = nccl.ncclRedOpCreatePreMulSum(2, nccl.ncclInt32, nccl.ncclScalarHostImmediate, comm)
    nccl.ncclRedOpDestroy(op, comm)
    nccl.ncclRedOpDestroy(op, comm)


async def of_another_type(comm, x):
    op = nccl.ncclRedOpCreatePreMulSum(2, nccl.ncclInt64, nccl.ncclScalarHostImmediate, comm)
    await reduce_scatter(comm, x, int32(2), op=op)


async def creates(comm, scalar, residence=nccl.ncclScalarHostImmediate):
    nccl.ncclRedOpCreatePreMulSum(scalar, nccl.ncclInt32, residence, comm)


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


async def left_open(comm, x):
    nccl.ncclGroupStart(comm)
    nccl.ncclGroupStart(comm)
    await reduce_scatter(comm, x, int32(2))
    await nccl.ncclGroupEnd(comm)


REFUSED = {
    "recvbuff and sendbuff overlap, and not in place; it is in place if and only if recvbuff == sendbuff + rank * "
    "recvcount, here sendbuff +2 elements; recvbuff is at sendbuff +1 elements": lambda c, x: reduce_scatter(
        c, x, x[1:3]
    ),
    "recvbuff is at sendbuff +0 elements": lambda c, x: reduce_scatter(c, x, x[:2]),
    "recvbuff is at sendbuff +2 bytes": lambda c, x: reduce_scatter(c, x, x.view(np.uint8)[2:10].view(np.int32)),
    "sendbuff == recvbuff + rank * sendcount": lambda c, x: nccl.ncclAllGather(x, x, 2, nccl.ncclInt32, c),
    "if and only if recvbuff == sendbuff,": lambda c, x: nccl.ncclAllReduce(
        x, x[1:], 2, nccl.ncclInt32, nccl.ncclSum, c
    ),
    "ncclBroadcast: recvbuff and sendbuff overlap": lambda c, x: nccl.ncclBroadcast(x, x[1:], 2, nccl.ncclInt32, 1, c),
    "root=2; the ranks are 0 to 1": lambda c, x: nccl.ncclBroadcast(x, x, 2, nccl.ncclInt32, 2, c),
    "sendbuff has 4 elements; the call uses 6": lambda c, x: reduce_scatter(c, x, int32(3), 3),
    "recvbuff has 1 elements; the call uses 2": lambda c, x: reduce_scatter(c, x, int32(1)),
    "sendbuff has dtype int32, the datatype says int64": lambda c, x: reduce_scatter(
        c, x, int32(2), datatype=nccl.ncclInt64
    ),
    "the workspace has no window of int64; declare it: workspace(ncclInt64)": lambda c, x: reduce_scatter(
        c, x.astype(np.int64), np.zeros(2, np.int64), datatype=nccl.ncclInt64
    ),
    "sendbuff is an object of type list; give a numpy array": lambda c, x: reduce_scatter(c, [1, 2, 3, 4], int32(2)),
    "recvbuff is read-only": lambda c, x: reduce_scatter(c, x, read_only(int32(2))),
    "recvbuff is not contiguous": lambda c, x: reduce_scatter(c, x, int32(4)[::2]),
    "recvcount=-1; a count is an integer >= 0": lambda c, x: reduce_scatter(c, x, int32(2), -1),
    "recvcount=True": lambda c, x: reduce_scatter(c, x, int32(2), True),  # noqa: FBT003 - that is what is refused
    "datatype 17; use one of ncclInt8": lambda c, x: reduce_scatter(c, x, int32(2), datatype=17),
    "op 'sum'; use one of ncclSum": lambda c, x: reduce_scatter(c, x, int32(2), op="sum"),
    "of another communicator, or was destroyed": destroyed,
    "no operator of this communicator": destroyed_twice,
    "was created for ncclInt64, the call has ncclInt32": of_another_type,
    "the scalar has shape (2,) and dtype int32; give one element of int32": lambda c, x: creates(c, int32(2)),
    "with ncclScalarDevice the scalar is read later": lambda c, x: creates(c, 2, nccl.ncclScalarDevice),
    "its sendbuff overlaps the recvbuff of the ncclAllReduce before it in this group": grouped,
    "rank 1 returns inside a group, whose calls were noted and never made; end it: await ncclGroupEnd(comm)": left_open,
    "no group was begun": lambda c, x: nccl.ncclGroupEnd(c),
    "MPI_Reduce_scatter_block: sendbuf and recvbuf overlap": lambda c, x: nccl.MPI_Reduce_scatter_block(
        x, x, 2, nccl.ncclInt32, nccl.MPI_Op.MPI_SUM, c
    ),
    "use one of MPI_Op.MPI_SUM": lambda c, x: nccl.MPI_Reduce_scatter_block(
        x, int32(2), 2, nccl.ncclInt32, nccl.ncclSum, c
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_wrong_is_refused_with_what_would_be_right(message):
    async def body(comm, x):
        if comm.rank.id == 1:
            await REFUSED[message](comm, x)

    with pytest.raises(KernelError) as caught:
        ran(made(nccl.ncclInt32, lambda P: 4, body), 2)
    assert isinstance(caught.value.__cause__, MisuseError)
    assert re.match("rank 1(: | returns )", str(caught.value.__cause__))
    assert message in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (nccl.workspace, "name the data types"),
        (lambda: nccl.workspace(nccl.ncclInt32, count=0), "count=0"),
        (lambda: nccl.workspace(99), "datatype 99"),
        (lambda: nccl.Comm("rank"), "give the kernel's rank first"),
    ],
)
def test_a_workspace_that_cannot_be(declare, message):
    with pytest.raises(MisuseError, match=message.replace("(", r"\(")):
        declare()


def test_a_communicator_takes_a_whole_workspace():
    @kernel(memory=nccl.workspace(nccl.ncclFloat32, nccl.ncclFloat))
    async def without_signal(rank, *memory):
        assert len(memory) == 2
        nccl.Comm(rank, memory[0])

    with pytest.raises(KernelError, match="windows and a signal"):
        ran(without_signal, 1)
