"""What order and scope do, on the shortest programs: every belief that is false has its counterexample here."""

from __future__ import annotations

import pytest
from gpu_law import Said, check, judged, said_of
from gpu_runs import played
from gpu_toy import parse

from asyncsim.analysis.analyse import analyse

ONE_RANK = ((0, 0), (0, 1))


def told(text: str, races: int = 0, *, scopes: int = 0, said: int | None = None, **more: object) -> Said:
    """Check a program whose executions have so many races, of data and of scopes; `said`: as many are said."""
    checked = check(parse(text, **more))  # type: ignore[arg-type]
    assert checked is not None
    assert not checked.mistakes
    assert (len(checked.truth.races), len(checked.truth.scopes)) == (races, scopes)
    assert len(checked.said.races) == (races if said is None else said)
    return checked.said


def why(text: str, **more: object) -> str:
    """Return why two accesses race."""
    result = analyse(played(parse(text, **more), 0))  # type: ignore[arg-type]
    return next(finding.why for finding in result.findings if finding.kind == "race")


# A message: data, and a signal.


def test_release_and_acquire_pass_a_message() -> None:
    assert told("st x; c += 1 || wait c >= 1; ld x").clean
    assert told("st x; fence @rel; c += 1 @rlx || wait c >= 1 @rlx; fence @acq; ld x").clean


@pytest.mark.parametrize(("text", "missing"), [
    ("st x; c += 1 @rlx || wait c >= 1; ld x", "is relaxed, and no release fence stands between it"),
    ("c += 1 @rlx; fence @rel; st x; d += 1 @rlx || wait c >= 1; wait d >= 1 @rlx; ld x", "no release fence"),
    ("st x; c += 1 || wait c >= 1 @rlx; ld x", "is relaxed, and no acquire fence stands between it"),
    ("st x; c += 1 || fence @acq; wait c >= 1 @rlx; ld x", "is relaxed, and no acquire fence stands between it"),
    ("st x; fence @rel.gpu; c += 1 @rlx || wait c >= 1; ld x", "in scopes that do not include each other"),
    ("st x; c += 1 @rel.gpu || wait c >= 1; ld x", "(scope rank) and rank 1's 'wait"),
])  # fmt: skip
def test_what_is_missing_is_said(text: str, missing: str) -> None:
    assert missing in why(text).replace("stream 1.2", "rank 1")


# The counterexamples of the theory, by their numbers there.


def test_c18_a_store_may_pass_the_relaxed_wait_before_it() -> None:
    told("ld x; c += 1 || wait c >= 1 @rlx; st x", 1)


def test_c19_who_passes_a_signal_on_relaxed_does_not_pass_order_on() -> None:
    told("st x; c += 1 || wait c >= 1 @rlx; d += 1 || wait d >= 1; ld x", 1)


def test_c20_the_next_release_does_not_publish_by_another_cell() -> None:
    told("st x; d += 1; c += 1 @rlx || wait c >= 1; ld x", 1)


def test_c21_a_stale_value_lets_a_wait_pass_too_early() -> None:
    told("c += 1; st x; c += 1; d += 1 @rlx || wait d >= 1 @rlx; wait c >= 1; ld x", 1)


def test_c22_updates_do_not_land_in_the_order_of_the_program() -> None:
    told("st x; c += 1; d += 1 @rlx || wait d >= 1 @rlx; c += 1 @rlx || wait c >= 1; ld x", 1)


def test_c23_a_set_does_not_continue_a_release_sequence_but_an_add_does() -> None:
    told("st x; c += 1 || wait c >= 1 @rlx; c := 5 @rlx || wait c == 5; ld x", 1)
    told("st x; c += 1 || wait c >= 1 @rlx; c += 4 @rlx || wait c == 5; ld x")


def test_c24_the_rule_is_not_exact_each_wait_can_be_clean_but_not_both() -> None:
    told(
        "st x; c += 1; d += 1 || wait c >= 1; e += 1 || wait e >= 1 @rlx; d += 1 @rlx"
        " || wait d >= 1 @rlx; e += 1 @rlx || wait d >= 1; wait e >= 1; ld x",
        said=1,
    )


def test_c25_neither_release_is_sure_but_one_of_the_two_is() -> None:
    told("st x; c += 1; d += 1 || wait c >= 1; e += 1 || wait d >= 1; e += 1 || wait e >= 1; ld x")


def test_c26_both_the_scope_of_the_fence_and_that_of_the_operation_count() -> None:
    told("st x; fence @rel.gpu; c += 1 @rlx.sys || wait c >= 1 @acq.sys; ld x", 1)
    told("st x; c += 1 @rel.gpu || wait c >= 1 @acq.sys; ld x", 1, scopes=1)
    assert told("st x; c += 1 @rel.gpu || wait c >= 1 @acq.sys; ld x", homes=ONE_RANK).clean


def test_c27_a_wait_may_pass_on_an_old_value_so_it_is_flagged() -> None:
    assert not judged(parse("c += 1 @rlx; d += 1 @rlx || wait d >= 1 @rlx; wait c == 0 @rlx")).judged


# More of the same kind.


def test_an_update_without_a_result_is_no_read_for_a_fence_behind_it() -> None:
    told("st x; c += 1; d += 1 @rlx || wait d >= 1 @rlx; c += 1 @rlx; fence @acq; ld x", 1)


def test_a_step_of_a_wait_and_an_update_does_not_release_unless_it_says_so() -> None:
    pads = "wait c == 1 c := 0 @acq; ld x || st x; wait c == 0 c := 1 @{}"
    told(pads.format("acq"), 1)
    assert told(pads.format("ar")).clean


def test_pads_are_proved_though_the_order_of_their_sets_is_not_by_happens_before() -> None:
    text = "; ".join(["st x; wait c == 0 c := 1 @rel"] * 2) + " || " + "; ".join(["wait c == 1 c := 0 @acq; ld y"] * 2)
    assert said_of(parse(text), analyse(played(parse(text), 1))).clean


def test_a_relaxed_value_may_be_an_older_one() -> None:
    assert not judged(parse("c += 1 @rlx; d += 1 @rel || wait d >= 1 @rlx; read c @rlx")).judged
    assert told("c += 1 @rlx; d += 1 @rel || wait d >= 1; read c @rlx").clean
