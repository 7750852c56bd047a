"""An audit saves its witnesses, can be interrupted, and is a command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from audits import source
from command import run as run_command

from asyncsim import KernelError
from asyncsim.checking.verdict.check import check
from asyncsim.study.audit import audit
from asyncsim.trace.finding import PROVED, REFUTED
from asyncsim.trace.jsonl import read_trace
from asyncsim.views.audit import audit_text
from kernels import reduce_scatter

# ---- saving, interrupting, the command


def test_each_part_saves_its_witnesses_in_a_folder_of_its_own(tmp_path):
    seen = []
    audited = audit(reduce_scatter.no_post_barrier, ranks=2, save=tmp_path, progress=seen.append)
    assert [(now.done, now.total, now.found) for now in seen] == [(1, 2, 1), (2, 2, 2)]
    saved = {Path(finding.trace) for row in audited.rows for report in row.reports for finding in report.findings}
    assert len(saved) == sum(len(report.findings) for row in audited.rows for report in row.reports)
    assert {path.parent.name for path in saved} == {
        f"{what}-kernels-reduce_scatter.py-{row.part.site[0].rpartition(':')[2]}"
        for what, row in zip(("skip", "drop"), audited.rows, strict=True)
    }
    assert {path.name for path in tmp_path.iterdir()} == {path.parent.name for path in saved} | {"as-it-stands"}
    for row in audited.rows:
        assert read_trace(row.guards[0].finding.trace).header.edits == (str(row.part.edit),)


def test_ctrl_c_ends_it_with_what_is_known():
    def interrupt(_):
        raise KeyboardInterrupt

    audited = audit(reduce_scatter.builtin, ranks=2, progress=interrupt)
    assert audited.interrupted
    assert [source(row) for row in audited.rows] == ["await barrier(rank, signal)  # ready: every chunk is staged"]
    assert "interrupted: what is missing here was not judged" in audit_text(audited)
    assert audited.to_json()["interrupted"]


def test_ctrl_c_within_the_judgement_of_a_part_leaves_that_part_out(monkeypatch):
    async def interrupted(*args, edits=(), **kwargs):
        report = await whole(*args, edits=edits, **kwargs)
        report.interrupted = bool(edits) if after else True
        return report

    whole, after = check.aio, True
    monkeypatch.setattr(check, "aio", interrupted)
    assert audit(reduce_scatter.builtin, ranks=2, calls=1).rows == []
    after = False
    audited = audit(reduce_scatter.builtin, ranks=2, calls=1)
    assert (audited.interrupted, audited.rows) == (True, [])


def test_a_kernel_that_raises_as_it_stands_is_not_audited():
    with pytest.raises(KernelError, match="op must be ReduceOp"):
        audit(reduce_scatter.wrong_op, ranks=2)


def test_the_command():
    result = run_command("audit", "reduce_scatter:builtin", "-P", "2")
    assert result.exit_code == 0
    assert "WAR against the next call's stage" in result.output
    replayed = [line.split()[1:] for line in result.output.splitlines() if "asyncsim replay" in line]
    assert [run_command(*arguments).exit_code for arguments in replayed] == [1, 0, 1, 1, 1]


def test_the_command_as_json():
    result = run_command("audit", "reduce_scatter:no_post_barrier", "-P", "2", "--json", "--fine")
    assert result.exit_code == 1
    shown = json.loads(result.stdout)
    assert (shown["verdict"], shown["one_call"]) == (REFUTED, PROVED)
    assert [part["kind"] for part in shown["parts"]] == ["barrier", "notify", "wait", "credits"]
    first = shown["parts"][0]
    assert first["edit"] == f"skip {first['site'][0]}"
    assert first["guards"][0]["findings"][0]["hazard"] == "RAW"
    assert [judged["calls"] for judged in first["judged"]] == [1, 2]
    assert shown["repairs"][0]["verdict"] == PROVED
    several = run_command("audit", "reduce_scatter:builtin", "-P", "1,2", "--calls", "1", "--json")
    assert [one["ranks"] for one in json.loads(several.stdout)] == [1, 2]


def test_the_command_stops_at_ctrl_c(monkeypatch):
    monkeypatch.setattr("asyncsim.study.audit.parts_of", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    result = run_command("audit", "reduce_scatter:builtin", "-P", "2,3", "--calls", "1")
    assert "interrupted; 1 of 2 were not audited" in result.stderr
