"""The corpus on the command line: every case, both forms, against what must be found."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from asyncsim.cli import check as field
from asyncsim.cli.main import main
from kernels.field import CASES

COUNT = len(CASES)


@pytest.fixture(scope="module")
def forms():
    """Judge the corpus once."""
    return list(field.judge_field())


@pytest.fixture
def command(forms, monkeypatch):
    """Run asyncsim on what was judged already."""
    monkeypatch.setattr(field, "judge_field", lambda seed=0: iter(forms))
    return lambda *arguments: CliRunner().invoke(main, arguments)


def test_all_buggy_and_all_fixed_forms_are_as_expected(forms):
    assert [judged.form for judged in forms] == ["buggy", "fixed"] * COUNT
    assert all(judged.right for judged in forms)
    one_run = sum(a.report.one_run and b.report.one_run for a, b in zip(forms[::2], forms[1::2], strict=True))
    assert one_run >= 25


def test_json_has_an_element_a_form(command):
    result = command("check", "--all", "field", "--json")
    made = json.loads(result.output)
    assert (len(made), result.exit_code) == (2 * COUNT, 0)
    assert set(made[0]) >= {"name", "form", "expected", "found", "verdict", "one_run"}


def test_the_table_counts_what_was_decided(command):
    result = command("check", "--all", "field")
    assert result.exit_code == 0
    assert f"{COUNT} of {COUNT} buggy forms REFUTED" in result.output
    assert f"{COUNT} of {COUNT} fixed forms without any finding" in result.output


def test_a_form_that_is_not_as_expected_is_named_and_leaves_with_1(forms, monkeypatch):
    wrong = [replace(forms[0], right=False), *forms[1:]]
    monkeypatch.setattr(field, "judge_field", lambda seed=0: iter(wrong))
    result = CliRunner().invoke(main, ["check", "--all", "field"])
    assert result.exit_code == 1
    assert f"{forms[0].number} buggy: expected" in result.stderr


def test_a_corpus_is_judged_alone():
    result = CliRunner().invoke(main, ["check", "--all", "field", "reduce_scatter:hand"])
    assert result.exit_code == 2
    assert "give it no kernel" in result.stderr
