"""NCCL's collectives: right against numpy in every layout, and proved in two calls."""

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest
from nccl_runs import ROOM, made, ran

from asyncsim import Group, ReduceOp, check, golden, kernel
from asyncsim.frontends import nccl
from kernels import in_place

RANKS = (1, 3)
TYPES = list(nccl.ncclDataType_t)
OPS = list(nccl.ncclRedOp_t)


def reduced(xs, op, rank):
    """Return the reduction by numpy, in the order and with the average of the dialect; `rank`'s own first."""
    ordered = [xs[rank], *xs[:rank], *xs[rank + 1 :]]
    if op is not nccl.ncclAvg:
        return ReduceOp[op.name.removeprefix("nccl")].reduce(ordered)
    if xs[0].dtype.kind in "iu":
        total = ReduceOp.Sum.reduce(ordered)
        return np.array([int(abs(int(v)) // len(xs)) * (-1 if v < 0 else 1) for v in total], total.dtype)
    return ReduceOp.Sum.reduce([x * np.array(1 / len(xs), x.dtype) for x in ordered])


def same(got, want):
    assert got.dtype == want.dtype
    assert got.tobytes() == want.tobytes()


# ---- results


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("op", OPS)
def test_reduce_scatter_gives_each_rank_its_slot(op, ranks):
    for datatype, size in product(TYPES, (0, 2 * ROOM + 1)):

        async def body(comm, x, datatype=datatype, size=size):
            y = np.zeros(size, datatype.dtype)
            await nccl.ncclReduceScatter(x, y, size, datatype, op, comm)
            return y

        xs, ys = ran(made(datatype, lambda P, size=size: P * size, body), ranks)
        for rank, y in enumerate(ys):
            same(y, reduced([x[rank * size : (rank + 1) * size] for x in xs], op, rank))


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("op", OPS)
def test_all_reduce_gives_the_same_bits_to_all(op, ranks):
    for datatype, size in product(TYPES, (0, 3 * ROOM + 5)):

        async def body(comm, x, datatype=datatype, size=size):
            y = np.zeros(size, datatype.dtype)
            await nccl.ncclAllReduce(x, y, size, datatype, op, comm)
            return y

        xs, ys = ran(made(datatype, lambda P, size=size: size, body), ranks)
        assert len({y.tobytes() for y in ys}) == 1
        wide = [np.asarray(x, np.float64) for x in xs]
        if datatype.dtype.kind not in "iu":
            np.testing.assert_allclose(ys[0].astype(np.float64), reduced(wide, op, 0), rtol=0.1, atol=0.2)
        else:
            same(ys[0], reduced(xs, op, 0))


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("datatype", TYPES)
def test_all_gather_and_broadcast_move_what_they_should(datatype, ranks):
    for size in (0, 2 * ROOM + 1):

        async def body(comm, x, size=size):
            every = np.zeros(comm.rank.size * size, datatype.dtype)
            await nccl.ncclAllGather(x, every, size, datatype, comm)
            root = comm.rank.size - 1
            y = np.zeros(size, datatype.dtype)
            await nccl.ncclBroadcast(x if comm.rank.id == root else None, y, size, datatype, root, comm)
            return every, y

        xs, ys = ran(made(datatype, lambda P, size=size: size, body), ranks)
        for every, y in ys:
            same(every, np.concatenate(xs))
            same(y, xs[-1])


def test_the_worked_example():
    async def body(comm, x):
        y = np.empty(2, np.int32)
        x[:] = np.arange(1, 7) * 10**comm.rank.id
        await nccl.ncclReduceScatter(x, y, 2, nccl.ncclInt32, nccl.ncclSum, comm)
        return y

    _, ys = ran(made(nccl.ncclInt32, lambda P: 6, body), 3)
    assert [y.tolist() for y in ys] == [[111, 222], [333, 444], [555, 666]]


def test_an_average_of_integers_is_rounded_towards_zero_even_of_the_least_number():
    async def body(comm, x):
        x[:] = [-7 if comm.rank.id else 0, 7 if comm.rank.id else 0, -128 if comm.rank.id else 0]
        await nccl.ncclAllReduce(x, x, 3, nccl.ncclChar, nccl.ncclAvg, comm)
        return x

    _, ys = ran(made(nccl.ncclInt8, lambda P: 3, body), 2)
    assert ys[0].tolist() == [-3, 3, -64]


def test_an_average_of_floats_multiplies_before_it_adds_so_it_does_not_overflow():
    largest = float(np.finfo(np.float16).max)

    async def body(comm, x):
        x[:] = largest
        await nccl.ncclAllReduce(x, x, 1, nccl.ncclHalf, nccl.ncclAvg, comm)
        return x

    _, ys = ran(made(nccl.ncclFloat16, lambda P: 1, body), 2)
    assert ys[0].tolist() == [largest]


# ---- in place


@pytest.mark.parametrize("ranks", RANKS)
def test_in_place_reduce_scatter_writes_its_own_slot_alone(ranks):
    size = ROOM + 1

    async def body(comm, x):
        mine = x[comm.rank.id * size : (comm.rank.id + 1) * size]
        await nccl.ncclReduceScatter(x, mine, size, nccl.ncclInt64, nccl.ncclSum, comm)
        return x

    xs, ys = ran(made(nccl.ncclInt64, lambda P: P * size, body), ranks)
    for rank, y in enumerate(ys):
        want = xs[rank].copy()
        want[rank * size : (rank + 1) * size] = np.sum(xs, axis=0)[rank * size : (rank + 1) * size]
        same(y, want)


@pytest.mark.parametrize("ranks", RANKS)
def test_mpi_in_place_writes_the_first_elements_whatever_the_rank(ranks):
    size = ROOM + 1

    async def body(comm, x):
        out = np.empty(size, np.int64)
        await nccl.MPI_Reduce_scatter_block(x, out, size, nccl.ncclInt64, nccl.MPI_Op.MPI_MAX, comm)
        await nccl.MPI_Reduce_scatter_block(nccl.MPI_IN_PLACE, x, size, nccl.ncclInt64, nccl.MPI_Op.MPI_MAX, comm)
        return out, x

    xs, ys = ran(made(nccl.ncclInt64, lambda P: P * size, body), ranks)
    for rank, (out, y) in enumerate(ys):
        want = xs[rank].copy()
        want[:size] = np.max(xs, axis=0)[rank * size : (rank + 1) * size]
        same(out, want[:size])
        same(y, want)


@pytest.mark.parametrize("ranks", RANKS)
def test_in_place_all_gather_all_reduce_and_broadcast(ranks):
    size = ROOM + 1

    async def body(comm, x):
        every = np.zeros((comm.rank.size, size), np.int32)
        every[comm.rank.id] = x
        await nccl.ncclAllGather(every[comm.rank.id], every, size, nccl.ncclInt32, comm)
        total = x.copy()
        await nccl.ncclAllReduce(total, total, size, nccl.ncclInt32, nccl.ncclProd, comm)
        await nccl.ncclBroadcast(x, x, size, nccl.ncclInt, 0, comm)
        return every, total, x

    xs, ys = ran(made(nccl.ncclInt32, lambda P: size, body), ranks)
    for every, total, x in ys:
        same(every, np.stack(xs))
        same(total, np.prod(xs, axis=0, dtype=np.int32))
        same(x, xs[0])


# ---- operators


@pytest.mark.parametrize("datatype", [nccl.ncclFloat32, nccl.ncclBfloat16, nccl.ncclInt32])
def test_a_pre_multiplied_sum_takes_each_ranks_own_factor(datatype):
    async def body(comm, x):
        op = nccl.ncclRedOpCreatePreMulSum(comm.rank.id + 2, datatype, nccl.ncclScalarHostImmediate, comm)
        await nccl.ncclAllReduce(x, x, 3, datatype, op, comm)
        nccl.ncclRedOpDestroy(op, comm)
        return x

    xs, ys = ran(made(datatype, lambda P: 3, body), 3)
    factors = [np.array(f, datatype.dtype) for f in (2, 3, 4)]
    same(ys[1], ReduceOp.Sum.reduce([x * f for x, f in zip(xs, factors, strict=True)]))


def test_a_factor_on_the_device_is_read_when_the_call_runs():
    async def body(comm, x):
        factor = np.array([1], np.int32)
        later = nccl.ncclRedOpCreatePreMulSum(factor, nccl.ncclInt32, nccl.ncclScalarDevice, comm)
        now = nccl.ncclRedOpCreatePreMulSum(factor, nccl.ncclInt32, nccl.ncclScalarHostImmediate, comm)
        factor[0] = 10
        x[:] = 1
        y, z = np.empty_like(x), np.empty_like(x)
        await nccl.ncclAllReduce(x, y, 1, nccl.ncclInt32, later, comm)
        await nccl.ncclAllReduce(x, z, 1, nccl.ncclInt32, now, comm)
        return int(y[0]), int(z[0])

    _, ys = ran(made(nccl.ncclInt32, lambda P: 1, body), 2)
    assert ys == [(20, 2)] * 2


# ---- verdicts


async def every_call(comm, x):
    """Use all of them, back to back, some in a group, on one workspace."""
    n = ROOM + 2
    ranks = comm.rank.size
    mine, total, every = np.empty(n, np.float32), np.empty(n, np.float32), np.empty(ranks * n, np.float32)
    await nccl.ncclReduceScatter(x, mine, n, nccl.ncclFloat32, nccl.ncclSum, comm)
    nccl.ncclGroupStart(comm)
    await nccl.ncclAllReduce(mine, total, n, nccl.ncclFloat32, nccl.ncclMax, comm)
    await nccl.ncclAllGather(mine, every, n, nccl.ncclFloat32, comm)
    await nccl.ncclGroupEnd(comm)
    await nccl.ncclBroadcast(total, total, n, nccl.ncclFloat32, ranks - 1, comm)
    await nccl.MPI_Reduce_scatter_block(nccl.MPI_IN_PLACE, every, n, nccl.ncclFloat32, nccl.MPI_Op.MPI_SUM, comm)
    return np.concatenate([mine, total, every[:n]])


def every_golden(xs):
    n = ROOM + 2
    ranks = len(xs)
    mine = golden.reduce_scatter([x.reshape(ranks, n) for x in xs])
    total = np.max(mine, axis=0)
    return [np.concatenate([mine[r], total, ranks * mine[r]]) for r in range(ranks)]


@pytest.mark.parametrize(("ranks", "memory"), [(2, "sc"), (3, "sc"), (4, "sc"), (2, "ldst")])
async def test_two_calls_of_everything_are_proved(ranks, memory):
    judged = made(nccl.ncclFloat32, lambda P: P * (ROOM + 2), every_call, golden=every_golden)
    report = await check.aio(judged, ranks=ranks, memory=memory)
    assert (report.verdict, report.findings) == ("PROVED", [])


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("name", ["ncclReduceScatter", "ncclAllReduce", "ncclAllGather", "ncclBroadcast", "MPI"])
async def test_two_calls_of_each_are_proved(name, ranks):
    async def body(comm, x):
        P, kind = comm.rank.size, nccl.ncclInt32
        y = np.zeros(P * x.size, np.int32)
        if name == "ncclReduceScatter":
            await nccl.ncclReduceScatter(x, y, x.size // P, kind, nccl.ncclSum, comm)
        elif name == "ncclAllReduce":
            await nccl.ncclAllReduce(x, y, x.size, kind, nccl.ncclSum, comm)
        elif name == "ncclAllGather":
            await nccl.ncclAllGather(x, y, x.size, kind, comm)
        elif name == "ncclBroadcast":
            await nccl.ncclBroadcast(x, y, x.size, kind, 0, comm)
        else:
            await nccl.MPI_Reduce_scatter_block(x, y, x.size // P, kind, nccl.MPI_Op.MPI_SUM, comm)
        return y

    report = await check.aio(made(nccl.ncclInt32, lambda P: 2 * P, body), ranks=ranks)
    assert report.verdict == "PROVED"


@pytest.mark.parametrize("ranks", [2, 3, 4])
async def test_both_layouts_in_place_are_kernels_and_need_their_second_barrier(ranks):
    for layout in (in_place.nccl, in_place.mpi):
        assert (await check.aio(layout, ranks=ranks)).verdict == "PROVED"
    hazards = {}
    for layout in (in_place.nccl_one_barrier, in_place.mpi_one_barrier):
        report = await check.aio(layout, ranks=ranks, calls=1)
        hazards[layout.name] = [(finding.hazard, finding.scope, finding.pairs) for finding in report.findings]
    assert hazards == {"nccl_one_barrier": [], "mpi_one_barrier": [("WAR", "same call", ranks - 1)]}


async def test_counts_and_operators_that_differ_are_a_mismatch():
    async def body(comm, x):
        op = nccl.ncclMax if comm.rank.id == 1 else nccl.ncclSum
        await nccl.ncclAllReduce(x, x, 2, nccl.ncclInt32, op, comm)
        return x

    report = await check.aio(made(nccl.ncclInt32, lambda P: 2, body), ranks=2)
    assert report.verdict == "REFUTED"
    assert "call-mismatch" in {finding.kind for finding in report.findings}


def test_a_communicator_of_a_group_uses_its_numbers():
    ends = Group("ends", (2, 0))

    @kernel(
        memory=nccl.workspace(nccl.ncclInt64, group=ends, name="pair"),
        inputs=lambda P, call, rng: [np.array([10**r, 2 * 10**r]) for r in range(P)],
    )
    async def pair(rank, x, *memory):
        if rank.id == 1:
            return None
        comm = nccl.Comm(rank.within(ends), *memory)
        y = np.empty(1, np.int64)
        await nccl.ncclReduceScatter(x, y, 1, nccl.ncclInt64, nccl.ncclSum, comm)
        return nccl.ncclCommUserRank(comm), nccl.ncclCommCount(comm), int(y[0])

    assert ran(pair, 3)[1] == [(1, 2, 202), None, (0, 2, 101)]


# ---- groups


def test_calls_of_a_group_are_made_at_its_outermost_end():
    async def body(comm, x):
        y, z = np.zeros(1, np.int32), np.zeros(1, np.int32)
        nccl.ncclGroupStart(comm)
        nccl.ncclGroupStart(comm)
        await nccl.ncclAllReduce(x, y, 1, nccl.ncclInt32, nccl.ncclSum, comm)
        await nccl.ncclGroupEnd(comm)
        await nccl.ncclAllReduce(x, z, 1, nccl.ncclInt32, nccl.ncclMax, comm)
        before = (int(y[0]), int(z[0]))
        x[:] = comm.rank.id + 1  # read when the call is made
        await nccl.ncclGroupEnd(comm)
        return before, int(y[0]), int(z[0])

    assert ran(made(nccl.ncclInt32, lambda P: 1, body), 2)[1] == [((0, 0), 3, 2)] * 2


def test_data_types_have_the_numbers_and_dtypes_of_nccl():
    assert [(int(kind), kind.dtype.name) for kind in TYPES] == list(
        enumerate(["int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16"])
    )
    assert nccl.ncclBfloat16.dtype == ml_dtypes.bfloat16
    assert [int(op) for op in OPS] == [0, 1, 2, 3, 4]
