"""A check says what it is doing, and how far it is; Ctrl-C says it, too, and loses no witness."""

from __future__ import annotations

import signal

import numpy as np
import pytest
from command import ctrl_c, run

from asyncsim import Signal, Window, check, kernel
from asyncsim.checking.record.stage import Stage
from asyncsim.checking.search.witness_writer import WitnessWriter
from asyncsim.checking.verdict import suspects
from kernels.reduce_scatter import builtin, no_post_barrier

x = Window("x", (4,), initialised=True)
c = Signal("c", (1,))


class Told(list):
    """What a check told: with each stage, how many steps it had when it began."""

    def __call__(self, now):
        """Take it."""
        self.append((now.stage, 0 if now.stage is None else now.stage.steps))

    @property
    def names(self):
        return [stage.name for stage, _ in self if stage is not None]

    @property
    def ended(self):
        """How far each run came: its choices have grown meanwhile."""
        return {stage.name: (stage.steps, stage.total) for stage, _ in self if stage and stage.choices is not None}


def interrupting(name, *, at=1, told=None):
    """Return a progress that is Ctrl-C when a stage of this name begins for the `at`-th time."""
    told = [] if told is None else told

    def progress(now):
        told.append("" if now.stage is None else now.stage.name)
        if told.count(name) == at and told[-1] == name:
            raise KeyboardInterrupt

    return progress


def test_a_proof_tells_its_stages_and_each_run_grows_after_it_was_told():
    told = Told()
    report = check(builtin, ranks=3, progress=told)
    assert told.names == [
        "reference run", "analysis", "judgement of the results", "second run", "comparison of two runs",
        "look at later calls",
    ]  # fmt: skip
    assert {begun for _, begun in told} == {0}
    assert told.ended == {"reference run": (report.steps, None), "second run": (report.steps, report.steps)}
    about = {stage.name: stage.total for stage, _ in told}
    assert about["analysis"] == about["comparison of two runs"] == report.steps


@pytest.mark.parametrize("engine", ["trio", "direct"])
def test_another_reference_has_a_fair_run_before_it(engine):
    told = Told()
    report = check(builtin, ranks=2, scheduler="random:seed=3", engine=engine, progress=told)
    assert told.names[:4] == ["fair run", "reference run", "analysis", "analysis of the fair run"]
    assert told.ended["reference run"] == (report.steps, report.steps)


def test_a_refutation_tells_of_witnesses_and_what_it_found(monkeypatch):
    seen = []
    check(no_post_barrier, ranks=3, progress=seen.append)
    names = [now.stage.name for now in seen]
    assert names[3:] == [
        *["run of a witness"] * (len(names) - 6),
        "shrinking of a witness",
        *["writing of a witness"] * 2,
    ]
    assert names.count("run of a witness") >= 2
    assert (seen[0].found, seen[-1].found) == (0, 1)
    monkeypatch.setattr(suspects, "MANY_RANKS", 6)
    told = Told()
    check(no_post_barrier, ranks=6, progress=told)
    assert told.names[-3:] == ["check at P = 2", "check at P = 3", "check at P = 4"]


def test_what_tells_schedules_is_in_no_stage():
    @kernel(memory=[x, c], inputs=lambda ranks, call, rng: rng.standard_normal((ranks, 1)))
    async def asks(rank, value, x, c):
        if rank.id:
            await rank.notify(c.at(0)[0], 1)
        elif await rank.test(c[0] >= 1):
            await rank.store(x[0], np.float32(1))

    told = []
    report = check(asks, ranks=2, calls=1, progress=told.append)
    assert report.verdict == "EXHAUSTED"
    assert [now.stage is None for now in told] == sorted(now.stage is None for now in told)
    assert told[-1].stage is None
    assert told[-1].done == report.schedules - 1


def test_where_a_check_is_is_said_in_words():
    steps = ["0"]
    assert Stage("second run", False, steps, 9).where == "in the second run, after 1 step"  # noqa: FBT003
    steps += ["1"] * 1_234_566
    assert Stage("second run", False, steps, 9).where == "in the second run, after 1,234,567 steps"  # noqa: FBT003
    assert Stage("analysis", False, None, 4000).where == "in the analysis of 4,000 steps"  # noqa: FBT003
    assert Stage("check at P = 2", False).where == "in the check at P = 2"  # noqa: FBT003


# ---- Ctrl-C


@pytest.mark.parametrize(
    ("stage", "where"),
    [("reference run", "in the reference run, after 0 steps"), ("analysis", "in the analysis of 108 steps")],
)
def test_ctrl_c_before_the_analysis_is_over_gives_no_report_but_says_where(stage, where):
    with pytest.raises(KeyboardInterrupt) as caught:
        check(builtin, ranks=3, progress=interrupting(stage))
    assert str(caught.value) == where


def stopping(step):
    """Return a kernel under which somebody presses Ctrl-C at a step of rank 0, in every run from the second on."""
    runs = []

    @kernel(memory=[x, c], inputs=lambda ranks, call, rng: rng.standard_normal((ranks, 1)))
    async def stopped(rank, value, x, c):
        if rank.id == 0:
            runs.append(rank.id)
        for number in range(step):
            if rank.id == 0 and len(runs) > 1 and number == step - 1:
                ctrl_c()
            await rank.store(x[0], np.float32(value[0]))

    return stopped


def test_ctrl_c_in_the_second_run_says_after_how_many_steps():
    report = check(stopping(40), ranks=1, calls=1)
    assert (report.verdict, report.interrupted, report.one_run) == ("SURVIVED", True, False)
    assert report.scope == ("2 schedules were run before the check was interrupted in the second run, after 39 steps")


@pytest.mark.parametrize("stage", ["shrinking of a witness", "writing of a witness"])
def test_ctrl_c_while_a_witness_is_shrunk_or_written_keeps_it_as_it_is(tmp_path, stage):
    report = check(no_post_barrier, ranks=2, progress=interrupting(stage), save=tmp_path)
    (finding,) = report.findings
    assert (report.verdict, report.interrupted, finding.harmful) == ("REFUTED", True, True)
    assert finding.trace is not None
    assert run("replay", finding.token).exit_code == 1
    assert run("replay", finding.trace).exit_code == 1


def test_a_witness_too_long_to_be_run_again_with_nobody_heard_is_left_out(monkeypatch):
    monkeypatch.setattr(suspects, "LONG", 10)
    report = check(no_post_barrier, ranks=2, progress=interrupting("writing of a witness"))
    (finding,) = report.findings
    assert (report.verdict, finding.token) == ("REFUTED", None)


def test_a_second_ctrl_c_does_not_lose_the_witness(monkeypatch):
    before, heard = signal.getsignal(signal.SIGINT), []
    keep = WitnessWriter.write_witness

    async def pressed(self, finding, choices, **named):
        heard.append(signal.getsignal(signal.SIGINT))
        signal.raise_signal(signal.SIGINT)
        return await keep(self, finding, choices, **named)

    monkeypatch.setattr(WitnessWriter, "write_witness", pressed)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        report = check(no_post_barrier, ranks=2, engine="direct", progress=interrupting("shrinking of a witness"))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIG_IGN]
    assert report.findings[0].token is not None


def test_ctrl_c_at_a_few_ranks_keeps_what_the_many_show(monkeypatch):
    monkeypatch.setattr(suspects, "MANY_RANKS", 3)
    report = check(no_post_barrier, ranks=3, progress=interrupting("check at P = 3"))
    (finding,) = report.findings
    assert (report.verdict, report.interrupted, finding.harmful) == ("REFUTED", True, True)
    assert report.scope.endswith("was interrupted in the check at P = 3")


def test_ctrl_c_within_the_check_at_a_few_ranks_ends_the_whole(monkeypatch):
    monkeypatch.setattr(suspects, "MANY_RANKS", 3)
    tried = []
    whole = suspects.race_witness

    async def pressed(judge, *arguments, **options):
        tried.append(judge.case.ranks)
        if judge.case.ranks == 2:
            raise KeyboardInterrupt
        return await whole(judge, *arguments, **options)

    monkeypatch.setattr(suspects, "race_witness", pressed)
    report = check(no_post_barrier, ranks=3)
    assert (tried, report.interrupted, report.verdict) == ([3, 2], True, "REFUTED")
    assert report.scope.endswith("was interrupted in the check at P = 2")


def test_who_interrupted_by_watching_is_told_nothing_more():
    told = []
    check(no_post_barrier, ranks=2, progress=interrupting("shrinking of a witness", told=told))
    assert told[-1] == "shrinking of a witness"
