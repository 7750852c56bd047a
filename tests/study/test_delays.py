"""Few delays, in an otherwise fair run, provoke what a witness shows."""

import numpy as np
import pytest
from click.testing import CliRunner

from asyncsim import Signal, Window, check, kernel
from asyncsim.checking.record.locate import all_kernels
from asyncsim.cli.main import main
from asyncsim.study.delays import provoke
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.late import is_with_old_reads
from asyncsim.trace.token import read_record
from asyncsim.views.delays import DIALECTS, delays_code, delays_text
from kernels.field import CASES

RANKS = {f"field.{case.buggy.ref.partition('field.')[2].partition(':')[0]}": case for case in CASES}
BUGGY = {
    name: kernel for name, kernel in all_kernels().items()
    if kernel.finds and not name.startswith("pypto") and name != "reduce_scatter:wrong_op"
}  # fmt: skip
"""Those that are refuted by a schedule; what `wrong_op` does wrong it does before it does anything."""


def refuted(name):
    """Return the report of an exhibit, of as many ranks and calls as show it."""
    kernel, case = BUGGY[name], RANKS.get(name.partition(":")[0])
    options = {} if case is None else {"ranks": case.ranks, "calls": case.calls, "memory": case.memory}
    return check(kernel, **{"ranks": 2 if name.startswith("gpu.") else 3, **options})


@pytest.mark.parametrize("name", BUGGY)
def test_the_failure_of_an_exhibit_shows_with_at_most_three_delays(name):
    report = refuted(name)
    records = [read_record(str(finding.token)) for finding in report.findings if finding.harmful and finding.token]
    for record in records:
        if is_with_old_reads(record.header.memory):
            with pytest.raises(MisuseError, match="no delay brings about"):
                provoke(record, BUGGY[name])
        else:
            found = provoke(record, BUGGY[name]).delays
            assert found is not None
            assert len(found) <= 3


def test_a_barrier_that_is_missing_needs_one_delay_and_its_line_is_told():
    (finding,) = refuted("reduce_scatter:no_post_barrier").findings
    record = read_record(str(finding.token))
    kernel = BUGGY["reduce_scatter:no_post_barrier"]
    (delay,) = provoke(record, kernel).delays
    text = delays_text([delay])
    assert text.startswith("1 delay; all else runs as it comes\n1. hold rank ")
    assert f"before {delay.at}" in text
    assert "kernels/reduce_scatter.py:" in delay.at


@pytest.mark.parametrize("dialect", DIALECTS)
def test_code_holds_that_rank_in_that_call(dialect):
    (finding,) = refuted("reduce_scatter:no_post_barrier").findings
    (delay,) = provoke(read_record(str(finding.token)), BUGGY["reduce_scatter:no_post_barrier"]).delays
    code = delays_code([delay], dialect)
    assert f"rank == {delay.rank}" in code
    assert f"call == {delay.call}" in code
    assert delay.at in code
    if dialect != "cuda":
        compile(code, "pasted", "exec")


def test_what_lands_late_is_told_as_such_and_has_no_code():
    report = check(CASES_BY["F29"].buggy, ranks=2, memory="nic")
    found = provoke(read_record(str(report.findings[0].token)), CASES_BY["F29"].buggy).delays
    assert any(delay.landing for delay in found)
    assert "arrive late" in delays_text(found)
    assert "no line of a program does that" in delays_code(found, "cuda")


CASES_BY = {case.number: case for case in CASES}
box, flag = Window("box", (2,), np.int64), Signal("flag", (1,))


@kernel(memory=[box, flag])
async def spins(rank, box, flag):
    """Rank 1 tests for ever until rank 0 has come; rank 0's store may come after the load."""
    if rank.id == 0:
        await rank.notify(flag.at(1)[0])
        await rank.store(box.at(1)[0], 1)
        return 0
    while not await rank.test(flag[0] > rank.call):
        pass
    return await rank.load(box[0])


def test_a_delay_is_over_where_the_others_spin():
    report = check(spins, ranks=2)
    tokens = [finding.token for finding in report.findings if finding.harmful and finding.token]
    assert any(provoke(read_record(str(token)), spins).delays is not None for token in tokens)


def run(*arguments):
    done = CliRunner().invoke(main, ["delays", *map(str, arguments)])
    return done.exit_code, done.output


def test_the_command_prints_them_with_code(tmp_path):
    check(BUGGY["reduce_scatter:no_post_barrier"], ranks=3, save=tmp_path)
    (witness,) = tmp_path.iterdir()
    status, said = run(witness, "--code", "triton")
    assert said.startswith("wrong-result, with 1 delay; all else runs as it comes\n1. hold rank 2 before ")
    assert "@triton.jit" in said
    assert status == 0
    status, said = run(witness, "--json")
    assert '"delays": [' in said
    status, said = run(witness, "--budget", 1)
    assert said.startswith("in 1 runs no delays")
    assert status == 1


def test_a_run_that_is_right_is_refused(tmp_path):
    path = tmp_path / "right.jsonl"
    assert CliRunner().invoke(main, ["record", "reduce_scatter:builtin", str(path), "-P", "2"]).exit_code == 0
    status, said = run(path)
    assert "no failure that its schedule decides" in said
    assert status == 2
