"""Composites are lowered as upstream lowers them: in tiles, and by these operations in this order."""

from __future__ import annotations

import numpy as np
import pytest
from golden_runs import assert_golden, scattered

from asyncsim import (
    Case,
    Fifo,
    Signal,
    Window,
    golden,
    kernel,
    simulate,
)
from kernels import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
)
from kernels.rows import make

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
