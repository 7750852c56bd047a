"""What a second dispatch must give: what the same inputs give on fresh windows, where that is certain."""

import re
import shlex
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from command import run
from pypto_runs import SCRIPTS, run_script

from asyncsim.frontends.pypto import fresh
from asyncsim.frontends.pypto.script import script_run
from asyncsim.frontends.pypto.session import Session
from asyncsim.machine.case import Case
from asyncsim.trace.errors import MisuseError

PROGRAM = """
import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

@pl.jit.incore
def kernel(x, y, data, signal):
    mine = pl.load(x, [0, 0], [1, 4])
    nr = pld.nranks(pld.get_comm_ctx(data))
    {body}

@pl.jit.host
def host(x, y):
    data = pld.alloc_window_buffer(16)
    signal = pld.alloc_window_buffer(8)
    for r in pl.range(pld.world_size()):
        a, b = pld.window(data, [1, 4], dtype=pl.INT32), pld.window(signal, [2, 1], dtype=pl.INT32)
        kernel(x[r], y[r], a, b, device=r)

x = np.arange(8, dtype=np.int32).reshape(2, 1, 4)
y = np.zeros_like(x)
host(x, y, config=RunConfig(distributed_config=DistributedConfig(device_ids=[0, 1])))
print("OK" if (y == x.sum(0)).all() else "FAILED")
"""
SUM = """
    for peer in pl.range(nr):
        pld.remote_store(mine, data, peer, [0, 0], atomic=pld.AtomicType.Add)
    {meet}
    pl.store(pl.load(data, [0, 0], [1, 4]), [0, 0], y)
    {after}
    pld.tensor.barrier(signal)
"""
BARRIER = "pld.tensor.barrier(signal)"
CLEARED = "pl.store(np.zeros((1, 4), np.int32), [0, 0], data)"


def is_another(then):
    """Do something for inputs that are not the script's."""
    return f"if mine.max() > 7: {then}"


HANGS = is_another("pld.system.wait(signal, [1, 0], 9, cmp=pld.WaitCmp.Ge)")


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Return what writes a script to the present folder."""
    monkeypatch.chdir(tmp_path)

    def write(*, meet=BARRIER, after="", body=SUM):
        path = tmp_path / "sums.py"
        path.write_text(PROGRAM.format(body=body.format(meet=meet, after=after)), "utf-8")
        return path

    return write


def kinds(judged):
    return {finding["kind"] for finding in judged.reused["findings"]}


def test_a_program_that_adds_to_what_was_left_is_wrong_though_it_has_no_race(script, tmp_path):
    judged = run_script(script(), options=["--calls", "2"], folder=tmp_path)
    assert judged.output.startswith("OK\n")
    assert judged.dispatched["verdict"] == "PROVED"
    assert judged.reused["verdict"] == "REFUTED"
    assert kinds(judged) == {"wrong-result"}
    assert "rank 0's result of call 1 is not the golden: output 0: 4 of 4 elements differ" in " ".join(
        judged.output.split()
    )
    assert judged.status == 1
    assert run_script(script(), folder=tmp_path).status == 0


def test_the_same_program_that_clears_its_window_is_right(script, tmp_path):
    judged = run_script(script(after=CLEARED), options=["--calls", "3"], folder=tmp_path)
    assert judged.reused["verdict"] == "PROVED"
    assert judged.status == 0


def test_only_windows_that_are_used_again_have_later_calls(script, tmp_path):
    output = " ".join(run_script(script(after=CLEARED), folder=tmp_path).output.split())
    once, reused = output.split("if the windows are reused")
    assert "any number of calls" not in once
    assert "any number of calls" in reused


def test_the_replay_line_of_a_wrong_result_shows_it_again(script):
    output = run("pypto", script().name).output
    command = shlex.split(re.search(r"replay  asyncsim (.*)", output)[1])
    again = run(*command)
    assert again.exit_code == 1
    assert "wrong-result: " in again.output


@pytest.mark.parametrize(
    ("then", "found"),
    [
        (f"{HANGS}\n    {BARRIER}", "deadlock"),
        ("if mine.max() < 8: pld.tensor.barrier(signal)", "race"),
    ],
)
def test_without_a_certain_result_on_fresh_windows_there_is_no_golden(script, tmp_path, then, found):
    judged = run_script(script(meet=then, after=CLEARED), folder=tmp_path)
    assert judged.dispatched["verdict"] == "PROVED"
    assert judged.reused["verdict"] == "REFUTED"
    assert found in kinds(judged)
    assert "golden" not in judged.output


def test_other_inputs_that_fail_on_fresh_windows_are_not_judged(script, tmp_path):
    judged = run_script(script(meet=f"{is_another('raise ValueError(mine)')}\n    {BARRIER}"), folder=tmp_path)
    assert "ValueError" in judged.reused["not_judged"]


def test_a_use_that_only_other_inputs_make_is_learnt(script, tmp_path):
    meet = f"{is_another('pld.remote_load(signal, 0, [0, 0], [2, 1])')}\n    {BARRIER}"
    judged = run_script(script(meet=meet, after=CLEARED), folder=tmp_path)
    assert judged.dispatched["verdict"] == "PROVED"
    assert "cells of a signal" in judged.reused["not_judged"]


def test_a_stale_result_is_explained_by_the_inputs_that_give_it(tmp_path, monkeypatch):
    judge = partial(run_script, SCRIPTS / "14_reduce_scatter.py", "-d", "0,1", "--mode", "hand", folder=tmp_path)
    words = "contribution is that of the previous call"
    monkeypatch.setenv("TENSORS", "numpy")
    assert words in " ".join(judge().output.split())
    monkeypatch.setattr(fresh, "MOST", 0)
    assert words not in " ".join(judge().output.split())


def test_changed_inputs_that_hang_give_no_golden(script):
    session = Session("sums.py")
    with script_run(str(script(meet=f"{HANGS}\n    {BARRIER}")), [], session):
        pass
    inputs = session.dispatched[0].inputs
    kernel = replace(session.dispatched[0].kernel, inputs=lambda *_: inputs)
    measured, fresh_runs = fresh.with_golden(kernel, Case(kernel, ranks=2, calls=2))
    np.testing.assert_array_equal(measured.golden(inputs)[0][0], [[4, 6, 8, 10]])
    with pytest.raises(MisuseError, match="these inputs hang"):
        measured.golden([(x + 100, y) for x, y in inputs])
    assert fresh_runs.made == 3  # both calls have the same inputs, and are run; those that hang are a third
