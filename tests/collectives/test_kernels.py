"""The exhibits: a correct kernel equals its golden in every schedule tried, a known-bad one declares what it gives."""

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from schedules import Scripted, Seeded, Starving

import kernels
from asyncsim import Case, Fifo, Kernel, KernelError, RefusedError, simulate
from asyncsim.analysis.analyse import analyse
from kernels import all_reduce, reduce_scatter
from kernels.script import main

ROOT = Path(__file__).parents[2]
MODULES = [importlib.import_module(f"kernels.{module.name}") for module in pkgutil.iter_modules(kernels.__path__)]
EXHIBITS = {
    f"{module.__name__.removeprefix('kernels.')}:{name}": value
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, Kernel)
}
CORRECT = [name for name, made in EXHIBITS.items() if not made.finds]
RACY = [name for name, made in EXHIBITS.items() if any(expected.kind == "race" for expected in made.finds)]
WRONG = [name for name, made in EXHIBITS.items() if any(expected.kind == "wrong-result" for expected in made.finds)]


def schedules(ranks):
    """Twenty random schedules, the friendly one, and each rank as the slow one."""
    return [Scripted(), *(Seeded(seed) for seed in range(20)), *(Starving(rank) for rank in range(ranks))]


def is_right(result):
    tolerance = result.case.kernel
    return result.ending == "complete" and all(
        np.allclose(got, want, rtol=tolerance.rtol, atol=tolerance.atol)
        for outputs, goldens in zip(result.outputs, result.case.goldens, strict=True)
        for got, want in zip(outputs, goldens, strict=True)
    )


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_kernel_equals_its_golden_in_every_schedule(name, ranks):
    case = Case(EXHIBITS[name], ranks=ranks, calls=3)
    for scheduler in schedules(ranks):
        result = simulate(case, scheduler)
        assert is_right(result)
        assert result.unwritten == []


@pytest.mark.parametrize("name", RACY)
def test_a_racy_kernel_is_wrong_in_some_schedule_only(name):
    case = Case(EXHIBITS[name], ranks=3, calls=2)
    results = [is_right(simulate(case, scheduler)) for scheduler in schedules(3)]
    assert False in results
    if name.startswith("reduce_scatter") and "in_place" not in name and "epilogue" not in name:
        assert True in results


@pytest.mark.parametrize("ranks", [2, 3, 4, 5])
@pytest.mark.parametrize("name", [name for name in EXHIBITS if name != "reduce_scatter:wrong_op"])
def test_one_fair_run_shows_exactly_the_races_that_an_exhibit_declares(name, ranks):
    made = EXHIBITS[name]
    analysis = analyse(simulate(Case(made, ranks=ranks), Fifo(), record="fifo").trace)
    expected = [finding for finding in made.finds if finding.kind == "race"]
    assert analysis.exact
    assert len(analysis.findings) == len(expected)
    assert all(any(one.matches(finding, ranks) for finding in analysis.findings) for one in expected)


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("reduce_scatter:mpi_in_place", lambda P: P - 1),
        ("reduce_scatter:whole_window_in_place", lambda P: P * (P - 1)),
        ("all_reduce:no_post_barrier", lambda P: P * (P - 1)),
    ],
)
@pytest.mark.parametrize("ranks", [2, 3, 4, 5])
def test_what_is_wrong_within_one_call_is_found_in_one_call(name, pairs, ranks):
    analysis = analyse(simulate(Case(EXHIBITS[name], ranks=ranks, calls=1), Fifo(), record="fifo").trace)
    assert [(f.hazard, f.scope, f.pairs) for f in analysis.findings] == [("WAR", "same call", pairs(ranks))]


@pytest.mark.parametrize("name", [name for name in RACY if "in_place" not in name and "all_reduce" not in name])
def test_what_races_only_with_the_next_call_is_right_when_called_once(name):
    case = Case(EXHIBITS[name], ranks=4, calls=1)
    assert all(is_right(simulate(case, scheduler)) for scheduler in schedules(4))
    assert not analyse(simulate(case, Fifo(), record="fifo").trace).findings


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arithmetic_is_wrong_in_every_schedule(name):
    case = Case(EXHIBITS[name], ranks=4)
    results = [simulate(case, scheduler) for scheduler in schedules(4)]
    assert not any(is_right(result) for result in results)
    assert all(np.array_equal(result.outputs, results[0].outputs) for result in results)


@pytest.mark.parametrize("name", CORRECT)
def test_self_cleaning_signals_are_clean_at_the_end(name):
    case = Case(EXHIBITS[name], ranks=3)
    trace = simulate(case, Seeded(1), record="seeded").trace
    last = {str(event.op.cell): event.have for event in trace.events if event.op.kind == "notify"}
    clean = {signal.name for signal in case.world.signals if signal.self_cleaning}
    assert {value for cell, value in last.items() if cell.partition("[")[0] in clean} <= {0}


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_the_off_by_one_barrier_balances_its_credits(ranks):
    case = Case(reduce_scatter.post_barrier_off_by_one, ranks=ranks, calls=3)
    for seed in range(10):
        trace = simulate(case, Seeded(seed), record="seeded").trace
        last = {str(event.op.cell): event.have for event in trace.events if event.op.kind == "notify"}
        assert trace.footer.ending == "complete"
        assert set(last.values()) == {0}


def result_of(made, ranks=4):
    """Run one call; return outputs and goldens as arrays."""
    result = simulate(Case(made, ranks=ranks, calls=1), Scripted())
    return np.array(result.outputs[0]), np.array(result.case.goldens[0]), np.array(result.case.inputs[0])


def test_symptom_zero_seed_is_short_of_exactly_the_own_chunk():
    got, want, xs = result_of(reduce_scatter.zero_seed)
    own = np.array([x.reshape(4, -1)[rank] for rank, x in enumerate(xs)])
    np.testing.assert_allclose(got + own, want, rtol=1e-5, atol=1e-5)


def test_symptom_row_zero_gives_every_rank_the_same_chunk():
    got, want, _ = result_of(reduce_scatter.row_zero)
    np.testing.assert_allclose(got, np.tile(want[0], (4, 1)), rtol=1e-5, atol=1e-5)


def test_symptom_chunk_offset_shifts_each_chunk_by_its_number():
    got, want, _ = result_of(reduce_scatter.chunk_offset)
    for rank in range(4):
        np.testing.assert_allclose(got[rank, rank:], want[rank, : 64 - rank], rtol=1e-5, atol=1e-5)


def test_symptom_other_order_is_within_tolerance_but_not_equal():
    got, want, _ = result_of(reduce_scatter.other_order)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert not np.array_equal(got, want)


@pytest.mark.parametrize("made", [reduce_scatter.hand, reduce_scatter.builtin, all_reduce.mesh])
def test_the_golden_is_met_bit_for_bit(made):
    got, want, _ = result_of(made)
    np.testing.assert_array_equal(got, want)


def test_goldens_agree_with_the_plain_sum():
    _, want, xs = result_of(reduce_scatter.builtin)
    np.testing.assert_allclose(want.ravel(), xs.sum(axis=0), rtol=1e-5, atol=1e-5)


def test_another_reduction_is_refused_in_upstreams_words():
    with pytest.raises(KernelError) as caught:
        simulate(Case(reduce_scatter.wrong_op), Scripted())
    assert isinstance(caught.value.__cause__, RefusedError)
    assert str(caught.value.__cause__) == (
        "pld.tensor.reduce_scatter op must be ReduceOp.Sum (got int 1); "
        "Max / Min / Prod lowerings are not yet implemented"
    )


@pytest.mark.parametrize("name", EXHIBITS)
def test_every_exhibit_says_what_it_is_and_differs_in_every_call(name):
    made = EXHIBITS[name]
    assert made.ref == f"kernels.{name}"
    assert made.first_line.endswith(".")
    first, second = (made.make_inputs(3, call, 0) for call in range(2))
    assert not any(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    for expected in made.finds:
        assert expected.pairs is None or expected.pairs(3) > 0


@pytest.mark.parametrize("module", ["reduce_scatter", "all_reduce"])
def test_an_exhibit_runs_as_a_script(module):
    done = subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", f"kernels.{module}"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=240
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "OK\n", "")


@pytest.mark.parametrize("mode", ["hand", "builtin"])
def test_the_tutorials_command_line_prints_ok(mode, capsys):
    assert main(vars(reduce_scatter), ["-d", "0,1,2,3", "--mode", mode]) == 0
    assert capsys.readouterr().out == "OK\n"


def test_a_wrong_result_says_what_differs(capsys):
    assert main(vars(reduce_scatter), ["-d", "0,1", "-m", "chunk_offset"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("rank 1: 64 of 64 elements differ from the golden; the first is [0]: ")
    assert "rank 0" not in out


def test_a_refused_kernel_fails_with_the_reason(capsys):
    assert main(vars(reduce_scatter), ["--mode", "wrong_op"]) == 1
    assert "op must be ReduceOp.Sum" in capsys.readouterr().err


def test_a_kernel_that_hangs_says_so(capsys):
    async def hangs(rank, x, data, signal):
        await rank.wait(signal[0] >= 1)

    made = reduce_scatter.builtin.variant()
    stuck = Kernel(hangs, memory=made.memory, inputs=made.inputs, golden=made.golden)
    assert main({"__doc__": "Stuck.", "stuck": stuck}, ["-d", "0,1"]) == 1
    assert capsys.readouterr().err == "FAILED: the run ended in deadlock after 0 steps\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mode", "fast"], "invalid choice: 'fast' (choose from "),
        (["-d", "0,0"], "'0,0' is not a list of devices; give different numbers, such as 0,1,2,3"),
        (["-d", "a"], "'a' is not a list of devices; give different numbers, such as 0,1,2,3"),
        (["-d", "-1,0"], "is not a list of devices"),
    ],
)
def test_wrong_arguments_exit_with_2(arguments, message, capsys):
    if arguments[-1].startswith("-"):
        arguments = [f"-d{arguments[-1]}"]
    with pytest.raises(SystemExit) as caught:
        main(vars(reduce_scatter), arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
