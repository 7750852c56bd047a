"""The partitioned optimizer step equals the unpartitioned one: to the bit in the same order, and over many steps."""

import numpy as np
import pytest

from asyncsim import Case, Fifo, ReduceOp, check, simulate
from kernels import zero

CORRECT = {"adam": zero.adam, "sgd": zero.sgd, "one_bucket": zero.one_bucket}
UPDATES = {"adam": zero.adam_update, "sgd": zero.sgd_update, "one_bucket": zero.adam_update}

each_optimizer = pytest.mark.parametrize("name", CORRECT)


@each_optimizer
@pytest.mark.parametrize("ranks", [2, 3, 4])
async def test_two_steps_are_proved(name, ranks):
    report = await check.aio(CORRECT[name], ranks=ranks)
    assert (report.verdict, report.findings) == ("PROVED", [])


@each_optimizer
@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_it_equals_the_unpartitioned_step_to_the_bit(name, ranks):
    run = simulate(Case(CORRECT[name], ranks, 4), Fifo())
    for outputs, goldens in zip(run.outputs, run.case.goldens, strict=True):
        for got, want in zip(outputs, goldens, strict=True):
            assert got.tobytes() == want.tobytes()


@each_optimizer
def test_a_loop_on_one_rank_that_adds_from_rank_0_up_ends_near_it(name):
    ranks, steps = 3, 5
    case = Case(CORRECT[name], ranks, steps)
    kept = case.inputs[0][0].kept
    for number, xs in enumerate(case.inputs, start=1):
        gradient = np.sum([x.gradients for x in xs], axis=0, dtype=np.float32) / np.float32(ranks)
        kept = UPDATES[name](kept, gradient, number)
    run = simulate(case, Fifo())
    np.testing.assert_allclose(run.outputs[-1][0], kept[0], rtol=1e-4, atol=1e-5)


def test_the_order_of_the_sum_is_all_that_the_bits_depend_on():
    gradients = [x.gradients for x in Case(zero.adam, 4, 1).inputs[0]]
    own_first = zero._mean(gradients)
    ascending = ReduceOp.Avg.reduce(gradients)
    assert own_first[0].tobytes() == ascending[0].tobytes()  # of rank 0 both orders are one
    assert own_first[3].tobytes() != ascending[3].tobytes()
    np.testing.assert_allclose(own_first, ascending, rtol=1e-4, atol=1e-6)


def test_an_owner_keeps_the_state_of_its_chunk_and_of_no_other():
    ranks = 3
    case = Case(zero.adam, ranks, 2)
    run = simulate(case, Fifo())
    x = case.inputs[1][0]
    whole = zero.adam_update(x.kept, zero._mean([x.gradients for x in case.inputs[1]]), 2)
    (layout,) = (window for window in case.world.windows if window.name == "owned")
    assert layout.shape == (zero.PARTS, zero.SIZE)
    for rank in range(ranks):
        assert run.windows[layout.region(rank, ..., rank).slot].tobytes() == whole[:, rank].tobytes()


def test_the_gradients_differ_from_step_to_step_and_from_seed_to_seed():
    def first(seed, call):
        return Case(zero.adam, 2, 2, seed=seed).inputs[call][0].gradients

    assert len({first(seed, call).tobytes() for seed in (0, 1) for call in (0, 1)}) == 4


def test_inputs_can_be_drawn_from_any_generator():
    (x,) = zero.steps(1, 1, np.random.default_rng(5))
    assert (x.number, x.kept.shape) == (2, (zero.PARTS, 1, zero.SIZE))


@pytest.mark.parametrize("ranks", [2, 3, 4])
async def test_without_a_barrier_after_the_gather_the_next_step_stages_over_it(ranks):
    report = await check.aio(zero.no_end_barrier, ranks=ranks)
    (finding,) = report.findings
    assert (finding.title, finding.pairs, finding.harmful) == ("WAR race, next call", ranks * (ranks - 1), True)


async def test_forgotten_state_is_right_in_the_first_step_only():
    assert (await check.aio(zero.forgotten_state, ranks=2, calls=1)).verdict == "PROVED"
    (finding,) = (await check.aio(zero.forgotten_state, ranks=2)).findings
    assert finding.kind == "wrong-result"


async def test_a_sum_is_not_the_mean_unless_there_is_one_rank():
    assert (await check.aio(zero.sum_for_mean, ranks=1)).verdict == "PROVED"
    (finding,) = (await check.aio(zero.sum_for_mean, ranks=2)).findings
    assert finding.kind == "wrong-result"


def test_adam_is_scale_free_so_there_the_same_mistake_hardly_shows():
    gradient = np.full(4, 0.5, np.float32)
    kept = np.zeros((zero.PARTS, 4), np.float32)
    np.testing.assert_allclose(
        zero.adam_update(kept, gradient, 1)[0], zero.adam_update(kept, 4 * gradient, 1)[0], rtol=1e-4
    )
