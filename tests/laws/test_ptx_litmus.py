"""The litmus tests of PTX: what it forbids is never shown, and what it allows is refuted with that outcome."""

from pathlib import Path

import pytest
from ptx import NotationError, parse
from ptx_kernels import kernel_of, seen

from asyncsim import check, replay
from asyncsim.trace.token import decode

pytestmark = pytest.mark.law

TABLE = Path(__file__).with_name("ptx_litmus.txt")
TESTS = [line.split(" | ") for line in TABLE.read_text("utf-8").splitlines() if not line.startswith("#")]
MISSED = {
    "LB+RMW-a": "an operation of a run is not done later than it stands in the program (load buffering)",
    "LB-dlb-no-fence-2": "the same",
}
"""What PTX allows and no run shows, with the reason."""


def judge(homes, program, condition):
    """Return the report of a litmus test under ``gpu``, and whether a witness of it shows the outcome."""
    made = kernel_of(parse(program, homes), condition)
    ranks = 1 + max(int(home.split(".")[1]) for home in homes.split())
    report = check(made, ranks=ranks, calls=1, memory="gpu", budget=20_000)
    outputs = [replay(decode(each.token), made).run.outputs for each in report.findings if each.harmful and each.token]
    return report, any(calls[0][0] == 1 for calls in outputs)


@pytest.mark.parametrize(("name", "homes", "program", "condition", "known"), TESTS, ids=[row[0] for row in TESTS])
def test_an_outcome_is_shown_if_and_only_if_it_is_allowed(name, homes, program, condition, known):
    report, shown = judge(homes, program, condition)
    assert shown == (known in ("allowed", "not always") and name not in MISSED)
    # What is not shown is ruled out, unless something races that could show by being done later than it stands: then
    # nothing is claimed. Where threads wait for different barriers, they hang.
    kinds = {each.kind for each in report.findings}
    if not shown and kinds != {"deadlock"}:
        assert report.verdict in ({"SURVIVED"} if "race" in kinds else {"PROVED", "EXHAUSTED"})


def test_what_is_missed_is_little():
    allowed = [row[0] for row in TESTS if row[4] in ("allowed", "not always")]
    assert len(MISSED) <= 0.1 * len(allowed)
    assert set(MISSED) <= set(allowed)


def test_the_table_is_whole():
    assert len(TESTS) == 65
    assert {row[4] for row in TESTS} == {"allowed", "forbidden", "always", "not always"}


def test_a_condition_is_read():
    assert seen("P0:r1=1 ∧ x≠2")({(0, "r1"): 1, (-1, "x"): 0})
    assert not seen("P0:r1=1 ∧ x≠2")({(0, "r1"): 1, (-1, "x"): 2})
    assert seen("∀ P0:r1=1 \N{LOGICAL OR} P1:r1=1")({(0, "r1"): 0})
    assert seen("P0:r1=P0:r2")({(0, "r1"): 3, (0, "r2"): 3})


@pytest.mark.parametrize(
    ("program", "homes"), [("W x", "0.0"), ("R x=1", "0.0"), ("W x=1 ‖ W x=2", "0.0"), ("L0: W x=1; goto L0", "0.0")]
)
def test_what_is_not_in_the_notation_is_refused(program, homes):
    with pytest.raises(NotationError):
        parse(program, homes)
