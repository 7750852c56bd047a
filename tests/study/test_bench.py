"""The figures: what they compare, what they are wanted to be, and how they are shown."""

from __future__ import annotations

import itertools
import json
import os

import pytest
from click.testing import CliRunner

from asyncsim.cli import bench
from asyncsim.cli.main import main
from asyncsim.machine.handover import handover
from asyncsim.study.figures import (
    FULL,
    QUICK,
    Figure,
    Sizes,
    check_figures,
    engine_figures,
    growth_figures,
    questions,
    step_figures,
)
from asyncsim.views.figures import figures_json, figures_markdown, figures_text

TINY = Sizes(rounds=1, runs=1, handovers=10, checked=((2, 1),), grown=(2, 4))
FIGURES = [Figure("a ÷ b", "k, P = 2", 2.5, "5 ÷ 2", at_most=2), Figure("c ÷ d", "k", 3.0, "6 ÷ 2", at_least=2.5)]


@pytest.fixture
def ticks():
    """A clock that goes on by one second each time it is read: whatever is measured once takes one second."""
    return map(float, itertools.count()).__next__


def test_a_check_is_compared_with_its_reference_run_on_either_engine(ticks):
    figures = check_figures(2, rounds=2, clock=ticks)
    assert [figure.what for figure in figures] == [
        "check ÷ its reference run, trio engine",
        "check ÷ its reference run, direct engine",
    ]
    for figure in figures:
        assert (figure.where, figure.ratio, figure.detail) == ("reduce_scatter:builtin, P = 2", 1, "1.00 s ÷ 1.00 s")
        assert figure.wanted == ""  # so small a check has other costs


def test_a_large_check_has_a_bound(ticks, monkeypatch):
    monkeypatch.setattr("asyncsim.study.figures.SMALL", 2)
    assert {figure.wanted for figure in check_figures(2, clock=ticks)} == {"≤ 2"}


def test_the_growth_stands_beside_that_of_the_operations(ticks):
    first, second = growth_figures((2, 4, 8), clock=ticks)
    assert first.what == "check at P = 4 ÷ at P = 2"
    assert first.detail == "1.00 s ÷ 1.00 s; operations: 4.55"  # 200 and 44
    assert second.detail == "1.00 s ÷ 1.00 s; operations: 4.24"  # 848 and 200


def test_engines_are_compared_by_schedules_a_second(ticks):
    (figure,) = engine_figures(Sizes(3, 4, 10, (), ()), clock=ticks)
    assert (figure.ratio, figure.detail, figure.wanted) == (1, "4 ÷ 4 a second", "≥ 2.5")


async def test_a_hand_over_is_what_two_tasks_that_wake_each_other_need(ticks):
    assert await handover(times=10, clock=ticks) == 2 / 20  # both tasks read the clock when they begin, one at its end


def test_a_step_is_told_in_hand_overs(ticks):
    exploring, recording = step_figures(Sizes(1, 1, 10, (), ()), clock=ticks)
    assert exploring.ratio == recording.ratio == pytest.approx((1 / 848) / (2 / 20))
    assert (exploring.wanted, recording.wanted) == ("≤ 2", "≤ 2.8")


def test_a_clock_that_is_too_coarse_gives_no_number():
    (figure,) = growth_figures((2, 4), clock=lambda: 0.0)
    assert figure.ratio == float("inf")


def test_by_processor_time_everything_costs_something():
    assert all(figure.ratio > 0 for _, measure in questions(TINY) for figure in measure())


@pytest.mark.parametrize("sizes", [FULL, QUICK])
def test_each_size_asks_every_question(sizes):
    asked = [question for question, _ in questions(sizes)]
    assert len(asked) == 3 + len(sizes.checked)
    assert all(after == 2 * before for before, after in itertools.pairwise(sizes.grown))


def test_a_figure_says_whether_it_keeps_its_bound():
    assert [(figure.wanted, figure.met) for figure in FIGURES] == [("≤ 2", False), ("≥ 2.5", True)]
    assert not Figure("", "", 2.0, at_least=2.5).met
    assert Figure("", "", 2.0).met


def test_figures_are_shown_as_text_as_markdown_and_as_json():
    facts = {"date": "2026-01-02", "Python": "3.11"}
    text = figures_text(FIGURES, facts).splitlines()
    assert text[0] == "date 2026-01-02, Python 3.11"
    assert text[4].split("  ") == ["a ÷ b", " k, P = 2", "2.50", " ≤ 2 (missed)", "5 ÷ 2"]
    assert figures_markdown(FIGURES, facts).splitlines()[2:] == [
        "| figure | of | ratio | wanted | made of |",
        "| --- | --- | --- | --- | --- |",
        "| a ÷ b | k, P = 2 | 2.50 | ≤ 2 (missed) | 5 ÷ 2 |",
        "| c ÷ d | k | 3.00 | ≥ 2.5 | 6 ÷ 2 |",
    ]
    told = figures_json(FIGURES, facts)
    assert told["date"] == "2026-01-02"
    assert [(figure["what"], figure["ratio"], figure["met"]) for figure in told["figures"]] == [
        ("a ÷ b", 2.5, False), ("c ÷ d", 3.0, True),
    ]  # fmt: skip


@pytest.mark.parametrize(("size", "options"), [("QUICK", ["--quick"]), ("FULL", [])])
def test_the_command_prints_the_figures_and_writes_them(monkeypatch, tmp_path, size, options):
    monkeypatch.setattr(bench, size, TINY)
    file = tmp_path / "figures.json"
    result = CliRunner().invoke(main, ["bench", *options, "--json", str(file)])
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines()[0] == "what a scheduled step costs …"
    assert "check at P = 4 ÷ at P = 2" in result.stdout
    assert len(json.loads(file.read_text("utf-8"))["figures"]) == 6


def test_the_command_prints_markdown(monkeypatch):
    monkeypatch.setattr(bench, "QUICK", TINY)
    result = CliRunner().invoke(main, ["bench", "--quick", "--markdown"])
    assert "| figure | of | ratio | wanted | made of |\n" in result.stdout


def test_where_nobody_counts_the_load_it_is_a_question_mark(monkeypatch):
    def unknown():
        raise OSError

    monkeypatch.setattr(os, "getloadavg", unknown)
    monkeypatch.setattr(bench, "QUICK", TINY)
    assert "load ?\n" in CliRunner().invoke(main, ["bench", "--quick"]).stdout
