"""Scripts for what upstream's own tests use beyond the tutorial: each right, and with one fault."""

from __future__ import annotations

import json

import pytest
from command import run
from pypto_runs import SCRIPTS

FEATURES = {
    "19_reading_cells": None,
    "18_carried_values": "RAW",
    "17_host_collectives": "RAW",
    "20_prepared": "RAW",
    "21_tiles_and_slices": "RAW",
    "22_chunks_and_groups": "RAW",
}
"""Script -> the hazard that its fault shows; None: it shows in the result alone."""


def judged(script, ranks, *arguments, folder):
    """Run a script; return the result of the command, and the report of its first program as it was dispatched."""
    report = folder / "report.json"
    devices = ",".join(map(str, range(ranks)))
    result = run("pypto", "--json", str(report), str(SCRIPTS / f"{script}.py"), "-d", devices, *arguments)
    return result, json.loads(report.read_text("utf-8"))["programs"][0]["as_dispatched"]


@pytest.fixture(params=[2, 3, 4])
def ranks(request):
    """Give each number of ranks; an ordinary run takes one a script, by turns."""
    number = list(FEATURES).index(request.node.callspec.params["script"])
    if number % 3 + 2 != request.param and not request.config.getoption("--thorough"):
        pytest.skip("with --thorough")
    return request.param


@pytest.mark.parametrize("script", FEATURES)
def test_a_script_that_is_right_says_ok_and_is_proved(script, ranks, tmp_path):
    result, report = judged(script, ranks, folder=tmp_path)
    assert result.exit_code == 0, result.output
    assert "OK" in result.output.splitlines()
    assert report["verdict"] == "PROVED"


@pytest.mark.parametrize(("script", "hazard"), FEATURES.items())
def test_its_fault_is_found(script, hazard, ranks, tmp_path):
    result, report = judged(script, ranks, "--broken", folder=tmp_path)
    assert result.exit_code == 1, result.output
    assert report["verdict"] == "REFUTED"
    first = report["findings"][0]
    assert first["harmful"]
    assert first.get("hazard") == hazard


def test_of_a_script_that_fails_in_every_schedule_it_is_said_that_order_is_not_the_fault(tmp_path):
    script = tmp_path / "wrong.py"
    text = (SCRIPTS / "22_chunks_and_groups.py").read_text("utf-8")
    script.write_text(text.replace("np.roll(x[:GROUP], 1, 0)", "x[:GROUP]"), "utf-8")
    result = run("pypto", str(script))
    assert result.exit_code == 1
    assert "the script failed, and every schedule of host gives the results that it saw" in result.output
    assert "the script failed" not in run("pypto", str(script), "--broken").output


def test_passes_that_may_run_at_once_are_not_proved(tmp_path):
    script = tmp_path / "parallel.py"
    text = (SCRIPTS / "19_reading_cells.py").read_text("utf-8")
    script.write_text(text.replace("for src in pl.range(NR)", "for src in pl.parallel(NR)"), "utf-8")
    result = run("pypto", str(script))
    assert result.exit_code == 0
    assert "SURVIVED" in result.output
    assert "the passes of pl.parallel were run one after the other" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("pl.submit(y)", "asyncsim does not serve pl.submit; calls of one rank that run at once are not judged"),
        ("pl.Role.Helper", "Role has no 'Helper'; it has Orchestrator, SubWorker, Worker"),
        ("pl.jit.inkore(y)", "pl.jit has no 'inkore'; did you mean 'incore'?"),
        ("y[0, 0:NR:2]", "a tensor takes slices without a step, got 2"),
        ("y[0, 9]", "subscripts leave dimension 1 of a tensor of shape [2, 2]: 9 to 10"),
        ("y[0, 0, 0]", "a tensor of shape [2, 2] takes at most 2 subscripts, got 3"),
        (
            "pl.add(pl.full([1, 2], pl.FP32, 0), pl.full([1, 3], pl.FP32, 0))",
            "tiles of one shape, got [1, 2] and [1, 3]",
        ),
        ("pl.reshape(pl.full([1, 2], pl.FP32, 0), [3])", "[1, 2] to [3]: they differ in the number of elements"),
        ("pl.transpose(pl.full([1, 2], pl.FP32, 0), 0, 5)", "pl.transpose: "),
        ("pl.matmul(pl.full([1, 2], pl.FP32, 0), 1)", "pl.matmul expects a tile; got ScalarType"),
        ("pl.matmul(*[pl.full([1, 2], pl.FP32, 0)] * 2)", "pl.matmul takes tiles [M, K] and [K, N] of one dtype"),
        ("pl.exp('x')", "pl.exp expects a tile or a scalar; got str"),
        ("pl.load(y, [0, 0], [1, 1], [2, 1])", "pl.load valid_shape [2, 1] must be within the shape [1, 1]"),
        ("pl.dynamic('K') * 1.5", "K * 1.5: an extent is computed from integers and extents"),
        ("pl.load(y, [0, 0], [1, pl.dynamic('K')])", "pl.load shape holds K, which only annotations know"),
        ("list(pl.range(pl.dynamic('K') + 1))", "K + 1 is not known here"),
        ("pl.range(2, init_values=y)", "pl.range takes init_values as a tuple"),
        ("[pl.yield_(1) for _, (a, b) in pl.range(2, init_values=(1, 2))]", "hands on 1; hand on as many"),
        ("pld.tensor.barrier(signal[0:1, :])", "pld.tensor.barrier takes whole windows, and got a part of one"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(wrong, words, tmp_path):
    script = tmp_path / "wrong.py"
    text = (SCRIPTS / "19_reading_cells.py").read_text("utf-8")
    script.write_text(text.replace("    early = pl.read", f"    {wrong}\n    early = pl.read"), "utf-8")
    result = run("pypto", str(script))
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    line = script.read_text("utf-8").splitlines().index(f"    {wrong}") + 1
    assert f"wrong.py:{line}: " in result.stderr
