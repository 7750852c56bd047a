"""NCCL's collectives, and MPI's reduce-scatter by blocks, for a kernel that awaits them on its rank.

    from asyncsim.frontends import nccl

    @kernel(memory=nccl.workspace(nccl.ncclFloat32, count=64), inputs=..., golden=...)
    async def step(rank, x, *memory):
        comm = nccl.Comm(rank, *memory)
        y = np.empty(2, np.float32)
        await nccl.ncclReduceScatter(x, y, 2, nccl.ncclFloat32, nccl.ncclSum, comm)
        return y

Buffers are numpy arrays of the kernel, which is where the results appear. Data moves through the windows of the
workspace, in pieces if they are small. Every call is safe to repeat: no finding in a kernel comes from here.
"""

from asyncsim.frontends.nccl.calls import (
    ncclAllGather,
    ncclAllReduce,
    ncclBroadcast,
    ncclGroupEnd,
    ncclGroupStart,
    ncclReduceScatter,
)
from asyncsim.frontends.nccl.comm import Comm, ncclCommCount, ncclCommUserRank, workspace
from asyncsim.frontends.nccl.kinds import (
    PreMulSum,
    ncclAvg,
    ncclBfloat16,
    ncclChar,
    ncclDataType_t,
    ncclDouble,
    ncclFloat,
    ncclFloat16,
    ncclFloat32,
    ncclFloat64,
    ncclHalf,
    ncclInt,
    ncclInt8,
    ncclInt32,
    ncclInt64,
    ncclMax,
    ncclMin,
    ncclProd,
    ncclRedOp_t,
    ncclScalarDevice,
    ncclScalarHostImmediate,
    ncclSum,
    ncclUint8,
    ncclUint32,
    ncclUint64,
)
from asyncsim.frontends.nccl.mpi import MPI_IN_PLACE, MPI_Op, MPI_Reduce_scatter_block
from asyncsim.frontends.nccl.operators import ncclRedOpCreatePreMulSum, ncclRedOpDestroy

__all__ = [
    "MPI_IN_PLACE",
    "Comm",
    "MPI_Op",
    "MPI_Reduce_scatter_block",
    "PreMulSum",
    "ncclAllGather",
    "ncclAllReduce",
    "ncclAvg",
    "ncclBfloat16",
    "ncclBroadcast",
    "ncclChar",
    "ncclCommCount",
    "ncclCommUserRank",
    "ncclDataType_t",
    "ncclDouble",
    "ncclFloat",
    "ncclFloat16",
    "ncclFloat32",
    "ncclFloat64",
    "ncclGroupEnd",
    "ncclGroupStart",
    "ncclHalf",
    "ncclInt",
    "ncclInt8",
    "ncclInt32",
    "ncclInt64",
    "ncclMax",
    "ncclMin",
    "ncclProd",
    "ncclRedOpCreatePreMulSum",
    "ncclRedOpDestroy",
    "ncclRedOp_t",
    "ncclReduceScatter",
    "ncclScalarDevice",
    "ncclScalarHostImmediate",
    "ncclSum",
    "ncclUint8",
    "ncclUint32",
    "ncclUint64",
    "workspace",
]
