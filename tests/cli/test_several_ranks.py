"""Several P in one go: a line each, one report in full, and what becomes of a P that a kernel is not made for."""

from __future__ import annotations

import json

import pytest
from command import BAD, GOOD, run

from asyncsim.cli import check as check_module

KERNELS = """
import numpy as np
from asyncsim import Group, RefusedError, Signal, Window, barrier, kernel

x = Window("x", ("P",), np.int64, initialised=True)
c = Signal("c", ("P", 1))

@kernel(memory=[x])
async def even(rank, x):
    if rank.size % 2: raise ValueError("an even P only")
    await rank.store(x[0], 1)

@kernel(memory=[x])
async def asserts(rank, x):
    assert rank.size == 3
    await rank.store(x[0], 1)

@kernel(memory=[x])
async def buggy(rank, x):
    await rank.store(x[2 if rank.size < 3 else 0], 1)

@kernel(memory=[Window("y", (1,), initialised=True, group=Group("g", (0, 2)))])
async def grouped(rank, y):
    if rank.id in (0, 2):
        await rank.store(y[0], 1.0)

@kernel(memory=[x])
async def composite(rank, x):
    if rank.size == 2:
        raise RefusedError("not for two")
    await rank.store(x[0], 1)

@kernel(memory=[x])
async def never(rank, x):
    assert rank.size > 100

@kernel(memory=[x, c])
async def wrong_at_3(rank, x, c):
    await rank.store(x[0], rank.call)
    if rank.size != 3:
        await barrier(rank, c)
    got = await rank.load(x.at((rank.id + 1) % rank.size)[0])
    if rank.size != 3:
        await barrier(rank, c, generation=2)
        for peer in range(rank.size):
            if peer != rank.id:
                await rank.notify(c[peer], -2)
    return got

@kernel(memory=[x])
async def same_bits(rank, x):
    await rank.store(x.at(0)[0], 7)
"""


@pytest.fixture(autouse=True)
def _file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made.py").write_text(KERNELS, encoding="utf-8")


def heads(result):
    """Return the lines that begin with a verdict, or with the word that there is none."""
    words = ("PROVED", "EXHAUSTED", "SURVIVED", "REFUTED", "not judged")
    return [line for line in result.stdout.splitlines() if line.startswith(words)]


def test_check_judges_at_2_3_and_4_unless_told_otherwise():
    result = run("check", GOOD)
    assert result.exit_code == 0
    *lines, full = heads(result)
    assert [line.rpartition("P = ")[2][0] for line in lines] == ["2", "3", "4"]
    assert all(line.startswith("PROVED  kernels.reduce_scatter:builtin, P = ") for line in lines)
    assert full == lines[-1]
    assert result.stdout.count(" decides for every schedule") == 1
    assert run("check", GOOD, "-P", "2,3,4").stdout.splitlines()[:4] == result.stdout.splitlines()[:4]


def test_one_p_is_told_in_full_alone():
    for words in (("-P", "3"), ("-d", "0,1,2")):
        assert len(heads(run("check", GOOD, *words))) == 1
    assert isinstance(json.loads(run("check", GOOD, "-P", "3", "--json").stdout), dict)


def test_other_commands_keep_one_p():
    assert json.loads(run("audit", GOOD, "--json").stdout)["ranks"] == 4
    assert heads(run("explore", GOOD, "--runs", "2"))[0].endswith("P = 4, 2 calls, sc")


def test_the_first_refutation_is_told_in_full():
    result = run("check", "made.py:wrong_at_3")
    assert result.exit_code == 1
    *lines, full = heads(result)
    assert [line.partition(" ")[0] for line in lines] == ["PROVED", "REFUTED", "PROVED"]
    assert ": " in lines[1].partition("sc")[2]
    assert full == "REFUTED  made.py:wrong_at_3, P = 3, 2 calls, sc"
    assert "1. " in result.stdout
    assert "asyncsim replay" in result.stdout


def test_where_nothing_is_refuted_the_report_that_says_least_is_told():
    result = run("check", "made.py:same_bits")
    assert result.exit_code == 0
    *lines, full = heads(result)
    assert all("WAW race" in line for line in lines)
    assert full.startswith("SURVIVED  made.py:same_bits, P = 4")


def test_json_is_an_array_of_what_was_judged():
    told = json.loads(run("check", BAD, "-P", "2,3", "--json").stdout)
    assert [(each["ranks"], each["verdict"]) for each in told] == [(2, "REFUTED"), (3, "REFUTED")]
    told = json.loads(run("check", "made.py:even", "--json").stdout)
    assert [(each["ranks"], each["verdict"]) for each in told] == [(2, "PROVED"), (3, None), (4, "PROVED")]
    assert "an even P only" in told[1]["refused"]


@pytest.mark.parametrize(
    ("name", "left_out"),
    [("even", ["3"]), ("asserts", ["2", "4"]), ("grouped", ["2"]), ("composite", ["2"])],
)
def test_a_p_that_a_kernel_refuses_itself_is_told_and_left_out(name, left_out):
    result = run("check", f"made.py:{name}")
    assert result.exit_code == 0
    missing = [line for line in heads(result) if line.startswith("not judged")]
    assert [line.rpartition("P = ")[2][0] for line in missing] == left_out
    assert all(": refused: " in line for line in missing)
    assert "replay" not in result.stdout


def test_a_kernel_that_fails_at_one_p_alone_is_no_success():
    result = run("check", "made.py:buggy")
    assert result.exit_code == 2
    assert heads(result)[0].startswith("not judged  made.py:buggy, P = 2: failed: rank 0 failed in call 0")
    assert "PROVED  made.py:buggy, P = 3" in result.stdout


def test_a_kernel_that_can_be_run_at_no_p_is_bad_input():
    result = run("check", "made.py:never")
    assert result.exit_code == 2
    assert "assert rank.size > 100" in result.stderr
    assert run("check", "made.py:never", "-P", "2").exit_code == 2


def test_several_kernels_stand_apart():
    lines = run("check", GOOD, "made.py:even").stdout.splitlines()
    start = next(n for n, line in enumerate(lines) if "made.py:even, P = 2" in line)
    assert lines[start - 1] == ""


def test_a_certificate_is_of_one_p():
    result = run("check", GOOD, "--certificate", "c.jsonl")
    assert result.exit_code == 0
    assert "ACCEPTED" in run("certify", "c.jsonl", "--kernel", GOOD).stdout
    assert "of 4 ranks" in run("certify", "c.jsonl").stdout
    assert run("check", GOOD, "-P", "2,3", "--certificate", "c.jsonl").exit_code == 2


def test_ctrl_c_leaves_out_the_rest(monkeypatch):
    real = check_module.check

    def interrupted(kernel, **options):
        if options["ranks"] == 3:
            raise KeyboardInterrupt("here")
        return real(kernel, **options)

    monkeypatch.setattr(check_module, "check", interrupted)
    result = run("check", GOOD)
    assert result.exit_code == 130
    assert "asyncsim: interrupted here; 2 of 3 were not judged" in result.stderr
    assert [line.partition(",")[2] for line in heads(result)] == [" P = 2, 2 calls, sc"] * 2
