"""Every composite and algorithm against its golden: at any P, size and dtype, for every operator that applies.

The goldens reduce in the order of the algorithm, so results must be equal bit for bit. What the goldens
themselves are worth is asked of plain numpy, in double precision and in integers that do not wrap.
"""

from __future__ import annotations

from itertools import cycle, product

import ml_dtypes
import numpy as np
import pytest

from asyncsim import (
    Case,
    Fifo,
    Group,
    ReduceOp,
    Signal,
    Window,
    golden,
    kernel,
    reduce_scatter,
    simulate,
    two_phase_all_reduce,
)
from asyncsim import broadcast as from_root
from kernels import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    dissemination_barrier,
    halving_doubling,
    one_shot,
    recursive_doubling,
    ring,
    two_shot,
)
from kernels.rows import SIZE, blocks, make

RANKS = (1, 2, 3, 4, 5, 8)
SIZES = (0, 1, 7, 64)
FLOATING = (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)
INTEGER = (np.int8, np.int32, np.int64)
DTYPES = (*FLOATING, *INTEGER)
BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


@kernel(
    memory=[Window("data", ("P", SIZE)), Signal("signal", ("P", 1), self_cleaning=True)],
    inputs=blocks,
    golden=golden.reduce_scatter,
)
async def scattered(rank, x, data, signal, *, op=ReduceOp.Sum):
    """Reduce-scatter by the composite."""
    await rank.store(data[...], x)
    await reduce_scatter(rank, data, signal, op=op, widen=True)
    return await rank.load(data[rank.id])


MOVING = {
    "broadcast": broadcast.composite,
    "broadcast, safe": broadcast.safe,
    "all-gather": all_gather.push_composite,
    "all-gather, safe": all_gather.push,
    "all-gather by pull": all_gather.pull,
    "all-gather around a dissemination barrier": dissemination_barrier.all_rounds,
    "all-to-all": all_to_all.composite,
    "all-to-all, safe": all_to_all.safe,
    "all-to-all-v": all_to_all.v_composite,
    "all-to-all-v, safe": all_to_all.v_safe,
}
"""They only move data."""

REDUCING = {
    "reduce-scatter": scattered,
    "mesh": all_reduce.builtin,
    "mesh by hand": all_reduce.mesh,
    "ring": all_reduce.ring,
    "ring by hand": all_reduce.ring_by_hand,
    "ring by pull": ring.by_pull,
    "two-phase": all_reduce.two_phase,
    "two-phase by pull": all_reduce.two_phase_pull,
    "recursive doubling": recursive_doubling.two_syncs,
    "halving and doubling": halving_doubling.in_place,
    "one-shot": one_shot.double_buffer,
    "two-shot": two_shot.double_buffer,
}
"""They take an operator."""


def operators(dtype):
    """Return the operators that a dtype has a meaning for."""
    return [op for op in ReduceOp if dtype in INTEGER or op not in BITWISE]


def run_once(made, ranks):
    """Run one call, and check that it ended as it should."""
    run = simulate(Case(made, ranks, 1), Fifo())
    assert run.ending == "complete"
    assert run.unwritten == []
    return run


def assert_golden(made, ranks, about):
    """Check the outputs bit for bit, and return the run."""
    run = run_once(made, ranks)
    for got, want in zip(run.outputs[0], run.case.goldens[0], strict=True):
        assert got.dtype == made.memory[0].dtype, about
        assert got.shape == want.shape, about
        assert got.tobytes() == want.tobytes(), about
    return run


@pytest.fixture
def shapes(ranks, request):
    """Return sizes and dtypes: every second pair, the others at the next P; with ``--thorough`` all of them."""
    every = list(product(SIZES, DTYPES))
    return every if request.config.getoption("thorough") else every[RANKS.index(ranks) % 2 :: 2]


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", MOVING)
def test_what_moves_data_moves_it_right(name, ranks, shapes):
    for size, dtype in shapes:
        assert_golden(make(MOVING[name], size=size, dtype=dtype), ranks, (size, dtype))


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", REDUCING)
def test_what_reduces_gives_its_golden_to_the_bit(name, ranks, shapes):
    turns = {dtype: cycle(operators(dtype)) for dtype in DTYPES}
    for size, dtype in shapes:
        op = next(turns[dtype])
        assert_golden(make(REDUCING[name], size=size, dtype=dtype, op=op), ranks, (size, dtype, op))


@pytest.mark.parametrize("name", REDUCING)
def test_every_operator_of_every_dtype_is_what_numpy_makes_of_it(name):
    ranks = 3
    for dtype in DTYPES:
        for op in operators(dtype):
            run = assert_golden(make(REDUCING[name], size=7, dtype=dtype, op=op), ranks, (dtype, op))
            xs = np.stack(run.case.inputs[0])
            for rank, got in enumerate(run.outputs[0]):
                terms = xs[:, rank] if name == "reduce-scatter" else xs
                assert_reduced(got, terms, op)


def assert_reduced(got, terms, op):
    """Compare a result with what numpy makes of its terms, stacked, in wider numbers."""
    dtype = got.dtype
    if dtype in INTEGER:
        reduced = UFUNCS[op].reduce(terms.astype(np.int64), axis=0).astype(dtype)
        want = reduced.astype(np.int64) // len(terms) if op is ReduceOp.Avg else reduced
        np.testing.assert_array_equal(got, want)
        return
    wide = terms.astype(np.float64)
    want = UFUNCS[op].reduce(wide, axis=0) / (len(terms) if op is ReduceOp.Avg else 1)
    scale = np.prod(np.abs(wide), axis=0) if op is ReduceOp.Prod else np.sum(np.abs(wide), axis=0)
    unit = float(ml_dtypes.finfo(dtype).eps)
    tiny = float(ml_dtypes.finfo(dtype).smallest_normal)
    assert np.all(np.abs(got.astype(np.float64) - want) <= len(terms) * (unit * scale + tiny))


UFUNCS = {
    ReduceOp.Sum: np.add,
    ReduceOp.Avg: np.add,
    ReduceOp.Prod: np.multiply,
    ReduceOp.Max: np.maximum,
    ReduceOp.Min: np.minimum,
    ReduceOp.BAND: np.bitwise_and,
    ReduceOp.BOR: np.bitwise_or,
    ReduceOp.BXOR: np.bitwise_xor,
}


@pytest.mark.parametrize("name", [name for name in REDUCING if name != "reduce-scatter"])
def test_a_nan_anywhere_is_a_nan_on_all_ranks(name):
    ranks = 3
    for dtype, op, poisoned in product(FLOATING, (ReduceOp.Max, ReduceOp.Min), range(ranks)):
        made = make(REDUCING[name], size=3, dtype=dtype, op=op)
        case = Case(made, ranks, 1)
        case.inputs[0][poisoned][..., 1] = np.nan
        run = simulate(case, Fifo())
        for y in run.outputs[0]:
            assert (np.isnan(y.astype(np.float64)) == ([False, True, False])).all(), (dtype, op, poisoned)


# What upstream's window sizes come to: tiles of 16 KiB.

ELEMENTS = 16 * 1024 // 8


@pytest.mark.parametrize(
    ("size", "tiles"), [(0, 0), (1, 1), (ELEMENTS, 1), (ELEMENTS + 1, 2), (3 * ELEMENTS, 3), (3 * ELEMENTS + 5, 4)]
)
def test_a_mesh_works_in_tiles_of_sixteen_kibibytes_with_a_barrier_each(size, tiles):
    made = make(all_reduce.builtin, size=size, dtype=np.float64)
    trace = simulate(Case(made, 2, 1), Fifo(), record="fifo").trace
    own = [event for event in trace.events if event.op.actor.name == "0"]
    assert [event.op.amount for event in own if event.op.kind == "wait"] == [*range(1, tiles + 2)]
    (epilogue,) = [event for event in own if event.phase == "epilogue"]
    assert (epilogue.op.amount, epilogue.have) == (-1 - tiles, 0)
    assert_golden(made, 3, size)


@pytest.mark.parametrize(("size", "tiles"), [(0, 1), (4, 1), (2 * ELEMENTS, 1), (2 * ELEMENTS + 2, 2)])
def test_a_ring_works_in_tiles_too_and_gives_back_two_credits_for_each(size, tiles):
    made = make(all_reduce.ring, size=size, dtype=np.float64)
    trace = simulate(Case(made, 2, 1), Fifo(), record="fifo").trace
    own = [event for event in trace.events if event.op.actor.name == "1"]
    epilogue = [(str(event.op.cell), event.op.amount, event.have) for event in own if event.phase == "epilogue"]
    assert epilogue == [("signal[0, 0]@1", -2 * tiles, 0), ("signal[1, 0]@1", -2 * tiles, 0)]
    assert_golden(made, 2, size)


def test_a_mesh_takes_windows_of_several_rows():
    @kernel(
        memory=[Window("data", (3, 5), np.int32), Signal("signal", ("P", 1), self_cleaning=True)],
        inputs=lambda P, call, rng: [rng.integers(0, 99, (3, 5), np.int32) for _ in range(P)],
        golden=golden.all_reduce,
    )
    async def rows(rank, x, data, signal, *, mode="mesh"):
        await rank.store(data[...], x)
        await all_reduce.all_reduce(rank, data, signal, mode=mode)
        return await rank.load(data[...])

    assert_golden(rows, 3, "mesh")
    by_ring = rows.variant(memory=[rows.memory[0], all_reduce.by_round], golden=golden.ring, mode="ring")
    for ranks in (1, 2, 3, 4):
        assert_golden(by_ring, ranks, "ring")


# The order of operations: upstream's lowering, seen in a trace.


def sequence_of(made, ranks=3, rank=1):
    """Return what one rank does in a call, a few letters an operation."""
    trace = simulate(Case(made, ranks, 1), Fifo(), record="fifo").trace
    return [text(event.op, rank) for event in trace.events if event.op.actor.rank == rank]


def text(op, rank):
    """Write an operation: ``put 2[1]``, ``notify 2[1] +1``, ``wait [0] >= 1``."""
    if op.cell is not None:
        place = f"{op.cell.owner if op.cell.owner != rank else ''}{list(op.cell.index[:-1])}"
        return f"{op.kind} {place} {op.amount:+d}" if op.kind == "notify" else f"{op.kind} {place} >= {op.amount}"
    region = op.accesses[0].region
    row = region.box[0][0] if region.box[0][1] == region.box[0][0] + 1 else "all"
    return f"{op.kind} {region.owner if region.owner != rank else ''}[{row}]"


def meeting(generation):
    """Return a barrier as rank 1 of 3 does it."""
    return ["notify 0[1] +1", "notify 2[1] +1", f"wait [0] >= {generation}", f"wait [2] >= {generation}"]


def given_back(number):
    """Return the epilogue of rank 1 of 3."""
    return [f"notify [0] -{number}", f"notify [2] -{number}"]


REDUCE = ["load [1]", "remote_load 0[1]", "remote_load 2[1]"]
MESH_REDUCE = ["load [0]", "remote_load 0[0]", "remote_load 2[0]"]
SEQUENCES = {
    "broadcast": (broadcast.composite, [*meeting(1), "get 0[0]", *given_back(1), "load [0]"]),
    "broadcast, safe": (broadcast.safe, [*meeting(1), "get 0[0]", *meeting(2), *given_back(2), "load [0]"]),
    "all-gather": (
        all_gather.push_composite,
        ["put 0[1]", "put [1]", "put 2[1]", *meeting(1), *given_back(1), "load [all]"],
    ),
    "all-gather, safe": (
        all_gather.push,
        [*meeting(1), "put 0[1]", "put [1]", "put 2[1]", *meeting(2), *given_back(2), "load [all]"],
    ),
    "all-to-all": (
        all_to_all.composite,
        ["put 0[1]", "put [1]", "put 2[1]", *meeting(1), *given_back(1), "load [all]"],
    ),
    "reduce-scatter": (
        scattered,
        ["store [all]", *meeting(1), *REDUCE, *meeting(2), "store [1]", *given_back(2), "load [1]"],
    ),
    "mesh": (
        all_reduce.builtin,
        ["store [0]", *meeting(1), *MESH_REDUCE, *meeting(2), "store [0]", *given_back(2), "load [0]"],
    ),
    "two-phase": (
        all_reduce.two_phase,
        [
            *["store [all]", *meeting(1), *REDUCE, *meeting(2), "store [1]", *given_back(2)],
            *["put [1]"] * 3,  # the first region of a put from a window is its source
            *[*meeting(1), *given_back(1), "load [all]"],
        ],
    ),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_composite_is_lowered_to_this_sequence(name):
    made, wanted = SEQUENCES[name]
    assert sequence_of(made) == wanted


def test_a_round_of_the_ring_is_two_barriers_on_its_row_around_a_read_of_the_left_neighbour():
    trace = simulate(Case(all_reduce.ring, 3, 1), Fifo(), record="fifo").trace
    own = [event for event in trace.events if event.op.actor.rank == 1 and event.phase.startswith("round 1")]
    kinds = [event.op.kind for event in own]
    meeting = ["notify", "notify", "wait", "wait"]
    assert kinds == [*meeting, "load", "remote_load", *meeting, "store"]
    assert [event.op.amount for event in own if event.op.kind == "wait"] == [1, 1, 2, 2]
    assert {event.op.cell.index[0] for event in own if event.op.cell is not None} == {1}
    assert {a.region.owner for event in own if event.op.kind == "remote_load" for a in event.op.accesses} == {0}


# Sixteen bits: in which dtype a sum is accumulated.


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("accumulate", [None, np.float32])
def test_a_sum_of_16_bits_is_accumulated_in_16_unless_asked_otherwise(dtype, accumulate):
    # The neighbours of `large` are two apart: adding ones to it one by one changes nothing.
    large = 2 / float(ml_dtypes.finfo(dtype).eps)

    @kernel(
        memory=[Window("data", ("P", 1), dtype), Signal("signal", ("P", 1), self_cleaning=True)],
        inputs=lambda P, call, rng: [np.full((P, 1), 1 if r else large, dtype) for r in range(P)],
        golden=lambda xs: golden.reduce_scatter(xs, accumulate=accumulate),
    )
    async def made(rank, x, data, signal):
        await rank.store(data[...], x)
        await reduce_scatter(rank, data, signal, accumulate=accumulate)
        return await rank.load(data[rank.id])

    run = assert_golden(made, 5, accumulate)
    assert float(run.outputs[0][0][0]) == large + (4 if accumulate else 0)


def test_a_mesh_accumulates_in_the_dtype_it_is_asked_for():
    @kernel(
        memory=[Window("data", (1, 1), np.int8), Signal("signal", ("P", 1))],
        inputs=lambda P, call, rng: [np.full((1, 1), 100, np.int8)] * P,
        golden=lambda xs: golden.all_reduce(xs, op=ReduceOp.Avg, accumulate=np.int64),
    )
    async def average(rank, x, data, signal):
        await rank.store(data[...], x)
        await all_reduce.all_reduce(rank, data, signal, op=ReduceOp.Avg, accumulate=np.int64, widen=True)
        return await rank.load(data[...])

    assert int(assert_golden(average, 3, "int64").outputs[0][0][0, 0]) == 100


# Within a group.


def test_composites_use_the_numbers_of_their_group():
    ends = Group("ends", (3, 1))

    @kernel(
        memory=[
            Window("data", ("P", 2), group=ends),
            Window("gathered", ("P", 2), group=ends),
            Signal("signal", ("P", 1), self_cleaning=True, group=ends),
        ],
        inputs=lambda P, call, rng: [np.full((2, 2), 10.0**r, np.float32) for r in range(P)],
    )
    async def by_the_ends(rank, x, data, gathered, signal):
        if rank.id not in (1, 3):
            return None
        team = rank.within(ends)
        await team.store(data[...], x)
        await two_phase_all_reduce(team, data, gathered, signal)
        await from_root(team, gathered, signal, root=1)
        return await team.load(gathered[...])

    run = run_once(by_the_ends, 4)
    assert [None if y is None else y.tolist() for y in run.outputs[0]] == [None, [[1010] * 2] * 2] * 2
