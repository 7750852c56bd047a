"""The demonstration: it computes what it shows, and fails when that is not what is known."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from command import BAD, GOOD, Terminal, last_line, replay_arguments, run

from asyncsim.checking.record.locate import locate
from asyncsim.checking.verdict.report import Report
from asyncsim.cli import demo as demo_module
from asyncsim.cli import progress as progress_module
from asyncsim.machine.case import Case
from asyncsim.trace.finding import PROVED, REFUTED, Finding


def test_the_demo_gives_what_is_known_and_a_line_that_replays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    started = time.monotonic()
    result = run("demo", "--save", "out")
    assert result.exit_code == 0
    assert time.monotonic() - started < 120
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in result.output.splitlines() if "  yes" in line}
    assert len(rows) == 8
    assert rows["no_post_barrier"].split("  ")[0] == "clean"
    assert rows["hand_no_epilogue"].endswith("WAR 12, RAW 12  yes")
    assert set(rows["builtin"].split()) == set(rows["double_buffer"].split()) == {"clean", "yes"}
    assert "await rank.load(data.at(peer)[rank.id])" in result.output
    assert "nothing orders" in result.output
    assert " instead of " in result.output
    assert len(list(Path("out").iterdir())) == 1
    assert run(*replay_arguments(result.output)).exit_code == 1


def test_a_demo_that_does_not_give_what_is_known_fails(monkeypatch):
    right = demo_module.check

    def check(kernel, **options):
        report = right(kernel, **options)
        if kernel.name == "builtin":
            report.findings.append(Finding("race", "made up", hazard="WAW"))
        return report

    monkeypatch.setattr(demo_module, "check", check)
    monkeypatch.setattr(demo_module, "KERNELS", (GOOD, BAD))
    monkeypatch.setattr(demo_module, "RANKS", (2,))
    monkeypatch.setattr(demo_module, "SHOWN", (BAD, 2, 2))
    result = run("demo")
    assert result.exit_code == 1
    assert last_line(result.output, "WAW (benign) 1").endswith("  no")
    assert f"asyncsim: not as known: {GOOD}, P = 2, calls = 1\n" in result.stderr


@pytest.mark.parametrize(
    ("verdict", "findings", "calls", "right"),
    [
        (PROVED, [], 2, False),
        (PROVED, [], 1, True),
        ("SURVIVED", [], 1, False),
        (REFUTED, [Finding("race", "", hazard="WAR", scope="next call", pairs=2)], 2, True),
        (REFUTED, [Finding("race", "", hazard="WAR", scope="next call", pairs=3)], 2, False),
        (REFUTED, [Finding("race", "", hazard="RAW", scope="next call", pairs=2)], 1, False),
    ],
)
def test_what_is_known_of_a_kernel_is_compared(verdict, findings, calls, right):
    report = Report(Case(locate(BAD), 2, calls), verdict, "", findings)
    assert demo_module.as_expected(report) is right


def test_a_cell_says_what_was_found_or_how_far_it_got():
    case = Case(locate(BAD), 2)
    assert demo_module.cell_text(Report(case, PROVED, "")) == "clean"
    assert demo_module.cell_text(Report(case, "SURVIVED", "")) == "SURVIVED"
    assert demo_module.cell_text(Report(case, REFUTED, "", [Finding("deadlock", "", harmful=True)])) == "deadlock 1"


def test_an_interrupted_demo_leaves_with_130(monkeypatch):
    def check(kernel, *, ranks, **_):
        return Report(Case(kernel, ranks), PROVED, "", interrupted=True)

    monkeypatch.setattr(demo_module, "check", check)
    assert run("demo").exit_code == 130


def test_the_demo_shows_how_far_it_is(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(progress_module, "sys", type("Sys", (), {"stderr": terminal}))
    monkeypatch.setattr(demo_module, "KERNELS", (BAD,))
    monkeypatch.setattr(demo_module, "RANKS", (2,))
    monkeypatch.setattr(demo_module, "SHOWN", (BAD, 2, 2))
    assert run("demo").exit_code == 0
