"""What a kernel goes by besides its arguments: a program that does other operations when it is judged is not proved."""

from __future__ import annotations

import json

import pytest
from command import run

SCRIPT = """
import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

MEETING = True
{before}

@pl.jit.incore
def step(x, y, data, signal):
    me = pld.rank(pld.get_comm_ctx(data))
    pl.store(pl.load(x, [0, 0], [1, 4]), [0, 0], data)
    {meet}
    pl.store(pld.remote_load(data, 1 - me, [0, 0], [1, 4]), [0, 0], y)

@pl.jit.host
def host(x, y):
    data = pld.alloc_window_buffer([1, 4], dtype=pl.FP32)
    signal = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        step(
            x[r], y[r], pld.window(data, [1, 4], dtype=pl.FP32), pld.window(signal, [2, 1], dtype=pl.INT32),
            device=r,
        )

x = np.arange(8, dtype=np.float32).reshape(2, 1, 4)
y = np.zeros_like(x)
config = RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=[0, 1]))
call = host.compile(x, y, config=config)
{calls}
"""
MEET = "MEETING and pld.tensor.barrier(signal)"
COUNTED = (
    "[pld.system.notify(signal, me, [0, 0], 1, op=pld.NotifyOp.AtomicAdd) for _ in range(int(pl.read(x, [0, 0])))]"
)


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """Return what writes a script and runs it: the result, and the JSON object."""
    monkeypatch.chdir(tmp_path)

    def judge(calls, *, meet=MEET, before="", options=()):
        (tmp_path / "script.py").write_text(SCRIPT.format(calls=calls, meet=meet, before=before), "utf-8")
        result = run("pypto", "--json", "report.json", *options, "script.py")
        report = tmp_path / "report.json"
        return result, json.loads(report.read_text("utf-8")) if report.exists() else None

    return judge


def verdicts(report):
    return [(each["program"], each["as_dispatched"]["verdict"], each["repeats"]) for each in report["programs"]]


def test_a_race_that_a_global_hides_after_the_dispatch_is_not_proved_away(judged):
    result, report = judged("MEETING = False\ncall(x, y)\nMEETING = True")
    assert verdicts(report) == [("host", "SURVIVED", False)]
    assert result.exit_code == report["status"] == 2
    words = " ".join(result.output.split())
    assert "what was judged is not what was dispatched" in words
    assert "note: the operations depend on state outside the program" in words


def test_a_dispatch_that_does_other_operations_is_a_program_of_its_own(judged):
    result, report = judged("for MEETING in (True, False, True):\n    call(x, y)")
    assert verdicts(report) == [("host", "PROVED", True), ("host#2", "SURVIVED", False)]
    assert [each["dispatched"] for each in report["programs"]] == [2, 1]
    assert result.exit_code == 2


def test_a_race_that_is_found_though_it_was_not_dispatched_stays_refuted(judged):
    result, report = judged("call(x, y)\nMEETING = False")
    assert verdicts(report) == [("host", "REFUTED", False)]
    assert result.exit_code == 1


def test_a_global_that_stays_is_no_state_outside(judged):
    result, report = judged("call(x, y)\ncall(x, y)")
    assert verdicts(report) == [("host", "PROVED", True)]
    assert result.exit_code == 0


@pytest.mark.parametrize("then", ["1 / MEETING", "MEETING or pl.write(signal, [0, 0], 1)"])
def test_a_state_with_which_the_kernel_fails_is_said_to_be_outside(judged, then):
    result, report = judged("call(x, y)\nMEETING = False", meet=f"{then}; pld.tensor.barrier(signal)")
    assert report is None
    assert result.exit_code == 2
    assert "host: the operations depend on state outside the program" in " ".join(result.stderr.split())


def test_other_operations_for_other_inputs_are_judged_up_to_a_number(judged):
    result, report = judged("for n in range(10):\n    x[:] = n\n    call(x, y)", meet=f"{COUNTED}\n    {MEET}")
    programs = report["programs"]
    assert [each["program"] for each in programs] == ["host", *(f"host#{n}" for n in range(2, 9))]
    assert all(each["repeats"] for each in programs)
    assert [each["with_other_operations"] for each in programs] == [2, *[0] * 7]
    assert "2 of these dispatches did other operations, and are not judged" in result.output


def test_one_element_that_is_read_does_not_keep_the_others_equal(judged):
    read = "pl.read(x, [0, 0])"
    result, report = judged("call(x, y)", meet=f"{read}\n    {MEET}", options=("--calls", "2"))
    assert report["programs"][0]["if_reused"]["verdict"] == "REFUTED"
    assert result.exit_code == 1
