"""The reference page tells the truth: names, the example, and what a second dispatch does."""

from __future__ import annotations

import re

import pytest
from command import ROOT, run
from test_pypto_scripts import ANY, CLEAN, REUSED, each_with_each, peers, ranks, ring

from asyncsim.frontends.pypto.modules import modules_of
from asyncsim.frontends.pypto.session import Session

PAGE = (ROOT / "docs" / "reference" / "pypto.md").read_text("utf-8")
WORDS = {ranks: "P", peers: "P\N{MINUS SIGN}1", each_with_each: "P(P\N{MINUS SIGN}1)", ring: "2, 6, 16", ANY: "some"}


def section(title):
    """Return the text under a heading."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize(("title", "module"), [("`pl`", "pypto.language"), ("`pld`", "pypto.language.distributed")])
def test_the_page_has_every_name_and_no_other(title, module):
    there = modules_of(Session("page.py"))
    rows = re.findall(r"^\| (`.*?) \|", section(title), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    composites = set(there["pypto.language.distributed"].tensor.__all__) if title == "`pld`" else set()
    assert named == set(there[module].__all__) | composites


def test_the_example_prints_what_the_page_shows(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("TENSORS", "numpy")
    monkeypatch.setenv("COLUMNS", "110")
    arguments = re.search(r"\$ asyncsim (pypto .*)", PAGE)[1].split()
    result = run(*arguments)
    assert result.exit_code == 0
    assert re.sub(r"in \d+\.\d+ s", "in 0.05 s", result.output) == re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)[1]


def test_the_page_has_the_table_of_second_dispatches():
    lines = ["| script | mode | WAR | RAW |", "|---|---|---|---|"]
    for script, modes in REUSED.items():
        for mode, hazards in modes.items():
            war, raw = (WORDS[hazards[hazard]] if hazard in hazards else "" for hazard in ("WAR", "RAW"))
            lines.append(f"| {script} | {mode} | {'clean' if hazards == CLEAN else war} | {raw} |".replace("  |", " |"))
    assert "\n".join(lines) in PAGE


def test_the_page_has_every_option():
    shown = set(re.findall(r"`(--\w+)", section_before_shapes()))
    assert shown == set(re.findall(r"^  (--\w+)", run("pypto", "--help").output, re.MULTILINE))


def section_before_shapes():
    """Return what stands above the first heading but one."""
    return PAGE.partition("\n## ")[0]
