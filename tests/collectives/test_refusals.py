"""What a composite refuses, word for word: upstream's words where it refuses too, our own elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from asyncsim import (
    Case,
    Fifo,
    KernelError,
    ReduceOp,
    RefusedError,
    Signal,
    Window,
    all_reduce,
    all_to_all,
    all_to_all_v,
    allgather,
    broadcast,
    kernel,
    reduce_scatter,
    simulate,
    two_phase_all_reduce,
)

GOOD = Window("data", ("P", 4))
CREDITS = Signal("signal", ("P", 1))
ROUNDS = Signal("signal", (lambda P: 2 * (P - 1), "P"))
BLOCK = np.zeros((3, 4), np.float32)


def refusal(composite, data=GOOD, signal=CREDITS):
    """Return what a composite raises on the first rank of three that calls it."""

    @kernel(memory=[data, signal])
    async def calls(rank, data, signal):
        await composite(rank, data, signal)

    with pytest.raises(KernelError) as caught:
        simulate(Case(calls, 3, 1), Fifo())
    return caught.value.__cause__


def assert_refused(error, message, kind=RefusedError):
    """Compare type and words."""
    assert type(error) is kind
    assert str(error) == message


def gather(rank, data, signal):
    return allgather(rank, BLOCK[0], data, signal)


def exchange(rank, data, signal):
    return all_to_all(rank, BLOCK, data, signal)


def from_root(rank, data, signal):
    return broadcast(rank, data, signal, root=0)


def by_ring(rank, data, signal):
    return all_reduce(rank, data, signal, mode="ring")


COMPOSITES = {
    "pld.tensor.reduce_scatter": reduce_scatter,
    "pld.tensor.allgather": gather,
    "pld.tensor.all_to_all": exchange,
    "pld.tensor.broadcast": from_root,
    "pld.tensor.allreduce": all_reduce,
}
BY_ROWS = ("pld.tensor.reduce_scatter", "pld.tensor.allgather", "pld.tensor.all_to_all")


@pytest.mark.parametrize("op", [ReduceOp.Max, ReduceOp.Min, ReduceOp.Prod, 1, ReduceOp.Avg])
def test_reduce_scatter_lowers_the_sum_alone(op):
    assert_refused(
        refusal(lambda rank, data, signal: reduce_scatter(rank, data, signal, op=op)),
        f"pld.tensor.reduce_scatter op must be ReduceOp.Sum (got int {int(op)}); "
        "Max / Min / Prod lowerings are not yet implemented",
    )


def test_the_reduce_scatter_of_two_phases_is_no_other():
    assert "got int 1" in str(
        refusal(lambda rank, data, signal: two_phase_all_reduce(rank, data, data, signal, op=ReduceOp.Max))
    )


def test_no_widening_makes_an_operator_of_any_number():
    error = refusal(lambda rank, data, signal: reduce_scatter(rank, data, signal, op=17, widen=True))
    assert "(got int 17)" in str(error)


@pytest.mark.parametrize("op", [ReduceOp.Avg, ReduceOp.BAND, 9])
def test_allreduce_lowers_four_operators(op):
    assert_refused(
        refusal(lambda rank, data, signal: all_reduce(rank, data, signal, op=op)),
        f"pld.tensor.allreduce op must be ReduceOp.Sum, Max, Min, or Prod (got int {int(op)})",
    )


def test_widened_operators_are_still_refused_where_they_mean_nothing():
    for composite in (reduce_scatter, all_reduce):
        assert_refused(
            refusal(lambda rank, data, signal, c=composite: c(rank, data, signal, op=ReduceOp.BOR, widen=True)),
            "Cannot use ReduceOp.BOR with non-integral dtype",
        )


@pytest.mark.parametrize("name", COMPOSITES)
@pytest.mark.parametrize(("target", "got"), [(BLOCK, "ndarray"), (None, "NoneType")])
def test_a_target_that_is_no_window_is_a_type_error(name, target, got):
    assert_refused(
        refusal(lambda rank, _, signal: COMPOSITES[name](rank, target, signal)),
        f"{name} expects a DistributedTensor target (window-bound); got {got}",
        TypeError,
    )


@pytest.mark.parametrize("name", COMPOSITES)
def test_signals_are_matrices_of_int32_with_a_cell_a_rank(name):
    composite = COMPOSITES[name]
    assert_refused(
        refusal(composite, signal=Signal("signal", ("P", 1), np.int64)),
        f"{name} signal must have INT32 element type, got dtype INT64",
    )
    assert_refused(refusal(composite, signal=Signal("signal", ("P",))), f"{name} signal must be 2D [NR, 1], got rank 1")
    assert_refused(
        refusal(composite, signal=Signal("signal", ("P", 1, 1))), f"{name} signal must be 2D [NR, 1], got rank 3"
    )
    assert_refused(
        refusal(composite, signal=Signal("signal", (2, 1))), f"{name} signal must be [NR, 1] = [3, 1], got [2, 1]"
    )
    assert_refused(
        refusal(composite, signal=Signal("signal", ("P", "P"))), f"{name} signal must be [NR, 1] = [3, 1], got [3, 3]"
    )
    assert_refused(
        refusal(lambda rank, data, _: composite(rank, data, data)),
        f"{name} expects a signal of shape [NR, 1]; got WindowView",
        TypeError,
    )


@pytest.mark.parametrize("name", BY_ROWS)
def test_targets_are_matrices_with_a_row_a_rank(name):
    composite = COMPOSITES[name]
    assert_refused(refusal(composite, Window("data", ("P", 2, 2))), f"{name} target must be 2D [NR, SIZE], got 3 dims")
    assert_refused(
        refusal(composite, Window("data", (4, 4))), f"{name} target must have one row a rank: NR = 3, got 4 rows"
    )


def test_an_allreduce_works_on_a_matrix():
    assert_refused(
        refusal(all_reduce, Window("data", (4,))), "pld.tensor.allreduce target must be 2D [ROWS, SIZE], got 1 dims"
    )


def test_modes():
    assert_refused(
        refusal(lambda rank, data, signal: all_reduce(rank, data, signal, mode="tree")),
        'pld.tensor.allreduce mode must be "ring" or "mesh", got "tree"',
    )


def test_the_signal_of_a_ring():
    assert_refused(
        refusal(by_ring), "pld.tensor.allreduce mode=ring signal shape[0] (3) must equal 2*(NR-1) = 4 for NR = 3"
    )
    assert_refused(
        refusal(by_ring, signal=Signal("signal", (4, 2))),
        "pld.tensor.allreduce mode=ring signal shape[1] (2) must equal NR = 3",
    )
    assert_refused(
        refusal(by_ring, signal=Signal("signal", (4,))),
        "pld.tensor.allreduce signal must be 2D [2*(NR-1), NR], got rank 1",
    )
    assert_refused(
        refusal(by_ring, signal=Signal("signal", (4, 3), np.int16)),
        "pld.tensor.allreduce signal must have INT32 element type, got dtype INT16",
    )


def test_a_ring_accumulates_in_its_window():
    assert_refused(
        refusal(
            lambda rank, data, signal: all_reduce(rank, data, signal, mode="ring", accumulate=np.float64), signal=ROUNDS
        ),
        "pld.tensor.allreduce mode=ring keeps its partial results in the target, so it accumulates in float32; "
        "use a wider target, or mode=mesh",
    )


@pytest.mark.parametrize(
    "local", [lambda data: data, lambda data: data[0]], ids=["the window", "a region of the window"]
)
def test_what_is_gathered_comes_from_another_buffer(local):
    assert_refused(
        refusal(lambda rank, data, signal: allgather(rank, local(data), data, signal)),
        "pld.tensor.allgather input and target must be different buffers, but the same expression was passed for both",
    )


@pytest.mark.parametrize(
    ("root", "message"),
    [
        (-1, "pld.tensor.broadcast root rank must be non-negative, got -1"),
        (3, "pld.tensor.broadcast root rank must be less than NR = 3, got 3"),
    ],
)
def test_the_root_is_a_rank(root, message):
    assert_refused(refusal(lambda rank, data, signal: broadcast(rank, data, signal, root=root)), message)


def test_the_input_of_an_all_to_all_has_the_shape_of_its_target():
    assert_refused(
        refusal(lambda rank, data, signal: all_to_all(rank, BLOCK[:2], data, signal)),
        "pld.tensor.all_to_all input must have the shape of the target, (3, 4), got (2, 4)",
    )
    assert_refused(
        refusal(lambda rank, data, signal: all_to_all(rank, [1], data, signal)),
        "pld.tensor.all_to_all expects an array or a window as input; got list",
        TypeError,
    )


@pytest.mark.parametrize(
    ("send", "recv", "message"),
    [
        ([1, 1], [1, 1, 1], "send_counts must have one count a rank: NR = 3, got 2"),
        ([1, 1, 1], [1] * 4, "recv_counts must have one count a rank: NR = 3, got 4"),
        ([1, 5, 1], [1, 1, 1], "send_counts[1] must be within a row, 0 to 4, got 5"),
        ([1, 1, 1], [1, 1, -1], "recv_counts[2] must be within a row, 0 to 4, got -1"),
        ([2, 2, 2], [1, 1, 1], "send_counts[0] and recv_counts[0] are both what rank 0 sends to itself, got 2 and 1"),
    ],
)
def test_counts(send, recv, message):
    error = refusal(lambda rank, data, signal: all_to_all_v(rank, BLOCK, data, signal, send, recv))
    assert_refused(error, f"pld.tensor.all_to_all_v {message}")


def test_all_gather_and_all_to_all_take_windows_as_well():
    @kernel(
        memory=[Window("own", (4,)), Window("mine", ("P", 4)), GOOD, CREDITS],
        inputs=lambda P, call, rng: [rng.standard_normal((P, 4), np.float32) for _ in range(P)],
    )
    async def windows(rank, x, *views):
        own, mine, data, signal = views
        await rank.store(own[:], x[0])
        await rank.store(mine[...], x)
        await allgather(rank, own, data, signal)
        gathered = await rank.load(data[...])
        await all_to_all(rank, mine, data, signal, safe=True)
        return gathered, await rank.load(data[...])

    run = simulate(Case(windows, 3, 1), Fifo())
    xs = np.stack(run.case.inputs[0])
    for rank, (gathered, exchanged) in enumerate(run.outputs[0]):
        np.testing.assert_array_equal(gathered, xs[:, 0])
        np.testing.assert_array_equal(exchanged, xs[:, rank])
