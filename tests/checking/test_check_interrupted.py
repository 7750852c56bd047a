"""Ctrl-C in a check: what the analysis has found by then is told, and a proof that was made stays one."""

from asyncsim import check
from asyncsim.checking.verdict import probe as second
from asyncsim.checking.verdict import suspects
from kernels.reduce_scatter import builtin, no_post_barrier


def interrupts(*_, **__):
    raise KeyboardInterrupt


def test_a_race_whose_witness_was_not_run_is_told_all_the_same(monkeypatch):
    monkeypatch.setattr(suspects, "race_witness", interrupts)
    report = check(no_post_barrier, ranks=3)
    assert (report.verdict, report.interrupted) == ("SURVIVED", True)
    (finding,) = report.findings
    assert (finding.kind, finding.hazard, finding.pairs, finding.harmful) == ("race", "WAR", 6, None)
    assert finding.shown == "not shown: the check was interrupted before"


def test_a_race_whose_witness_is_being_shrunk_is_told_once(monkeypatch):
    monkeypatch.setattr(suspects.shrink, "aio", interrupts)
    report = check(no_post_barrier, ranks=3)
    assert (report.verdict, report.interrupted, len(report.findings)) == ("REFUTED", True, 1)


def test_a_proof_that_was_made_stays_one(monkeypatch):
    monkeypatch.setattr(second, "scope_of_later_calls", interrupts)
    report = check(builtin, ranks=3)
    assert (report.verdict, report.interrupted, report.later_calls) == ("PROVED", True, "")
    assert report.scope.startswith("one run of ")
