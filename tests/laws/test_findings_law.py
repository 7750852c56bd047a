"""The law of findings: whatever a report says of a finding holds of it alone, and its replay line shows it.

(a) Every replay line replays, and shows what the report says it shows. (b) The pair of a title comes the other way
round than in the fair run in its witness, and with the pair in order that schedule does not fail the same. (c) What
is harmless alone is not called harmful beside a race. (d) A pair that is counted can race. (e) The law would notice.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from brute import explore
from programs import FAMILIES, kernel_of, program_number
from told import PAIRED, beside_a_race, is_inverted, random_case, slips
from toy import parse

from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.record.locate import all_kernels, locate
from asyncsim.checking.verdict import suspects
from asyncsim.checking.verdict.check import check
from asyncsim.checking.witness.swapped import FailsByPair
from asyncsim.cli.demo import SHOWN
from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.late import model_of
from asyncsim.trace.token import decode
from kernels.field import CASES

REFUTED_ORDINARY, REFUTED_THOROUGH = 120, 5_000
"""So many refuted programs are drawn; of six in ten programs one is."""
FLAGGED = ("anybody subtracts", "every comparison", "equal", "sets", "tests", "overflow", "wrapping", "set flags")
QUICK = {"budget": 60, "samples": 10, "engine": "direct"}


def judged(case: Case):
    return check(case.kernel, ranks=case.ranks, calls=case.calls, memory=case.memory, **QUICK)


def test_every_replay_line_shows_what_its_report_says(pytestconfig):
    wanted = REFUTED_THOROUGH if pytestconfig.getoption("--thorough") else REFUTED_ORDINARY
    kinds: Counter[str] = Counter()
    wrong: list[str] = []
    number = refuted = 0
    while refuted < wanted:
        report = judged(random_case(number))
        wrong += [f"{number}: {slip}" for slip in slips(report)]
        kinds.update(finding.kind for finding in report.findings if finding.harmful)
        refuted += report.refuted
        number += 1
    assert not wrong, "\n".join(wrong[:5])
    assert {"race", "signal-race", "deadlock"} <= set(kinds)


async def says_nothing(judge, run):
    """Say less than a run shows."""
    return "nothing"


def fails_somehow(own, run):
    """Ask of a shrunk witness only that it fails."""
    return bool(own._judge.failures(run))


def first_pair(suspect, seen, told=suspects._as_finding):
    """Tell the first pair of a finding, whichever it was that did harm."""
    return told(suspect, seen).with_(sides=suspect.sides)


@pytest.mark.parametrize(
    ("place", "name", "instead"),
    [
        (FailsByPair, "__call__", fails_somehow),
        (suspects, "failures_in_words", says_nothing),
        (suspects, "_as_finding", first_pair),
    ],
    ids=["shrinking forgets the pair", "words of another run", "the first pair is told"],
)
def test_the_law_notices(monkeypatch, place, name, instead):
    monkeypatch.setattr(place, name, instead)
    assert any(slips(judged(random_case(number))) for number in range(400))


def test_where_the_fair_run_hangs_a_witness_hangs_as_it_did():
    text = "ld y; take c < 1; d += 2; ad y || st x; c += 1; y <- y; ad x; c += 1; wait d != 2"
    assert slips(of(parse(text, elements=(1, 1), cells=(0, 1)))) == []


def test_two_findings_between_the_same_lines_have_each_its_own_count():
    text = "st y; d += -1; d += -2; c += -1; y <- x; d += -2; c += 1 || ad x; st x; st y; ad y; wait d <= -2; ad x"
    races = of(parse(text, elements=(0, 1), cells=(0, 1), starts=(0, 1))).findings
    assert sorted((race.hazard, race.pairs) for race in races) == [("RAW", 2), ("WAR", 1), ("WAW", 2), ("WAW", 2)]


def alone_and_beside(number, family):
    """Return a program of two or more ranks and one call, and the same beside a race; None if it is no such."""
    program = program_number(family, number)
    return program, beside_a_race(program, random.Random(number))  # noqa: S311 - dice, no secret


def of(program):
    return judged(Case(kernel_of(program), len(program.actors), 1, "sc"))


def test_what_is_harmless_alone_is_harmless_beside_a_race(programs_of):
    total = programs_of(160, 4_000)
    flagged = 0
    for number in range(total):
        program, beside = alone_and_beside(number, FLAGGED[number % len(FLAGGED)])
        alone = of(program)
        if alone.verdict in ("PROVED", "EXHAUSTED"):
            flagged += bool(alone.findings)
            harmful = [finding for finding in of(beside).findings if finding.harmful]
            window = f"data[{len(program.elements)}]"
            others = [finding for finding in harmful if not finding.sides[0].region.startswith(window)]
            assert not others, f"{number}: {program}: {others[0].title}: {others[0].shown}"
    assert flagged > total // 40


def test_a_pair_that_is_counted_can_race(programs_of):
    total = programs_of(160, 4_000)
    counted = 0
    for number in range(total):
        program = program_number(FAMILIES[number % len(FAMILIES)], number)
        if program.calls > 1 or program.floats:
            continue
        report = of(program)
        if any(finding.kind != "race" for finding in report.findings) or report.notes:
            truth = explore(program).races
            races = [finding for finding in report.findings if finding.kind == "race"]
            told = [frozenset((int(side.actor), side.index) for side in finding.sides) for finding in races]
            assert set(told) <= truth, f"{number}: {program}: {told} of {truth}"
            assert sum(finding.pairs for finding in races) <= len(truth), f"{number}: {program}"
            counted += len(told)
    assert counted > total // 20


EXHIBITS = {
    name: (kernel, 3, 2, "auto")
    for name, kernel in all_kernels().items()
    if not name.startswith("field.") and not any(each.kind == "refused" for each in kernel.finds) and kernel.finds
} | {case.number: (case.buggy, case.ranks, case.calls, case.memory) for case in CASES}


def order_slips(report):
    """Return the findings about a pair that is in order in its witness, or not in order in the fair run.

    Where the fair run fails itself, the order of the fair run may be the one that does harm.
    """
    judge, run = Judge(report.case), drive(report.case, Fifo())
    judge.set_reference(run)
    paired = [finding for finding in report.findings if finding.kind in PAIRED and finding.token]
    return [finding.title for finding in paired if is_inverted(run.choices, finding.sides)] + [
        finding.title
        for finding in paired
        if finding.harmful and not is_shown(decode(finding.token), finding.sides) and not judge.failures(run)
    ]


def is_shown(token, sides):
    """Whether the witness has the sides the other way round; under gpu, or one of them returns an older version."""
    old = model_of(token.memory).old or {}
    return is_inverted(token.choices, sides) or any((side.actor, side.index) in old for side in sides)


@pytest.mark.parametrize("name", EXHIBITS)
def test_in_each_finding_of_an_exhibit_the_titled_pair_is_the_inverted_one(name):
    kernel, ranks, calls, memory = EXHIBITS[name]
    report = check(kernel, ranks=ranks, calls=calls, memory=memory, **QUICK)
    assert order_slips(report) == []
    assert slips(report) == []


def test_in_each_finding_of_the_demo_the_titled_pair_is_the_inverted_one():
    name, ranks, calls = SHOWN
    report = check(locate(name), ranks=ranks, calls=calls)
    assert [finding.pairs for finding in report.findings] == [12]
    assert order_slips(report) == []
