"""The law of order and scope: one run under ``gpu`` against every execution, those with older and late values too.

(a) Where nothing is flagged no race is missed, neither of data nor of scopes, and all executions end alike. (b) Where
all is at world scope there is no false pair, but for the few that the theory has; with narrower scopes there are few.
(c) With a rule taken out that is noticed.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from gpu_law import campaign, check, table
from gpu_programs import FAMILIES, FENCES, MODES, ONE_SCOPE, SCOPES, SYNCHRONISED, program_number
from gpu_toy import parse

import asyncsim.analysis.known
import asyncsim.analysis.scopes
from asyncsim.analysis.known import Known
from asyncsim.analysis.streams import Streams
from asyncsim.analysis.visible import Visible

if TYPE_CHECKING:
    from collections.abc import Callable

ORDINARY, THOROUGH = 25, 4_000
KINDS = [(family, mode) for family in FAMILIES for mode in MODES]
FLOORS = {"racy": 0.25, "clean": 0.3, "flagged": 0.1}
"""Shares of the programs: with fewer of a kind, the law would say little."""
MOST_FALSE = {SYNCHRONISED: 0.0, FENCES: 0.001, ONE_SCOPE: 0.01, SCOPES: 0.03}
"""Of the pairs that are said, how many may be none: where scopes differ, mostly beside real ones ..."""
MOST_CALLED_RACY = {SYNCHRONISED: 0.0, FENCES: 0.001, ONE_SCOPE: 0.001, SCOPES: 0.01}
"""... so that of the programs fewer are called racy and are not."""


def test_the_law(
    programs_of: Callable[[int, int], int], pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    """The programs come from a seeded generator, as many of each family and mode."""
    counts, wrong = campaign(range(programs_of(ORDINARY, THOROUGH)), KINDS, program_number)
    if pytestconfig.getoption("--thorough"):
        with capsys.disabled():
            print(f"\n{table(counts)}")  # noqa: T201 - a thorough run is made for its table
    total = sum(counts.values(), Counter())
    for what, share in FLOORS.items():
        assert total[what] >= share * total["programs"], f"too few {what} programs:\n{table(counts)}"
    assert not wrong, "\n".join(wrong)
    for mode in MODES:
        of_mode = sum((count for (_, each), count in counts.items() if each == mode), Counter())
        assert of_mode["false"] <= MOST_FALSE[mode] * of_mode["pairs"], table(counts)
        assert of_mode["called racy"] <= MOST_CALLED_RACY[mode] * of_mode["programs"], table(counts)


RULES = {
    "a scope does not count": lambda patch: patch.setattr(asyncsim.analysis.known, "include", lambda *_: True),
    "updates land at once": lambda patch: patch.setattr(asyncsim.analysis.scopes, "with_late_updates", Streams),
    "a wait sees what is newest": lambda patch: _with(patch, lambda self, wait, run: run.has_done(wait.place)),
    "a Set hands on what it overwrites": lambda patch: patch.setattr(Known, "_cuts", lambda *_: False),
    "what takes away is known": lambda patch: patch.setattr(Visible, "_is_settled", lambda *_: True),
    "an earlier life is known to be over": lambda patch: patch.setattr(Visible, "_could_pass", lambda *_: False),
    "a read knows all": lambda patch: patch.setattr(Visible, "_unknown_to", lambda *_: iter(())),
}
"""What each rule forbids to believe."""

BREAKING = {
    "a scope does not count": "st x; fence @rel.gpu; c += 1 @rlx || wait c >= 1; ld x",
    "updates land at once": "st x; c += 1; d += 1 @rlx || wait d >= 1 @rlx; c += 1 @rlx || wait c >= 1; ld x",
    "a wait sees what is newest": "c += 1; st x; c += 1; d += 1 @rel || wait d >= 1 @rlx; wait c >= 1; ld x",
    "a Set hands on what it overwrites": "st x; c += 1 || wait c >= 1 @rlx; c := 5 @rlx || wait c == 5; ld x",
    "what takes away is known": (
        "c += 1 @rlx; d += 1 || wait d >= 1 @rlx; e += 1; wait c <= 0; ld x || wait e >= 1; st x; c += -1"
    ),
    "an earlier life is known to be over": (
        "c := 1 @rlx; d += 1; f += 1 || wait d >= 1 @rlx; e += 1; wait c == 0; ld x"
        " || wait f >= 1; wait e >= 1; st x; c := 0"
    ),
    "a read knows all": "get c += 1 @rlx; d += 1 || wait d >= 1 @rlx; read c",
}


def _with(patch: pytest.MonkeyPatch, also: Callable[..., bool]) -> None:
    comes_about = Known._comes_about
    patch.setattr(
        Known, "_comes_about",
        lambda self, wait, number, run: comes_about(self, wait, number, run) and also(self, wait, run),
    )  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_missed_where_it_is_left_out(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = parse(BREAKING[rule])
    sound = check(program)
    assert sound is not None
    assert not sound.mistakes
    RULES[rule](monkeypatch)
    broken = check(program)
    assert broken is not None
    assert broken.mistakes


def test_programs_without_scopes_are_told_from_those_with() -> None:
    said = {mode: str(program_number("monotone", mode, 5)) for mode in MODES}
    assert len(set(said.values())) == len(MODES)
    assert "cta" in "".join(str(program_number("monotone", SCOPES, number)) for number in range(9))
    assert "fence" not in said[SYNCHRONISED]
