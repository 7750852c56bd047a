"""Races that only explored executions have, and what is said of them: benign, harmful, not shown to be harmful."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner
from executors import Here
from exhaust import exhaust

from asyncsim import Case, Set, Signal, Window, check, explore, kernel, replay
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.search import coenabled
from asyncsim.checking.search.ends import NOT_FOLLOWED, OrderComparison
from asyncsim.checking.search.equivalence import RecordedChoices
from asyncsim.checking.verdict import classify
from asyncsim.checking.workers import exhaust_parallel
from asyncsim.cli.main import main
from asyncsim.machine.direct import drive
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.table import make
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.token import decode

box = Window("box", (1,), np.int32, initialised=True)
word = Window("word", (1,), np.int64, initialised=True)
flag = Signal("flag", (1,))
FIVE = np.array([5], np.int32)


@kernel(memory=[box, flag])
async def off_path(rank, box, flag):
    """Store only where the test says yes, which it does not in the fair run; a load of the peer's races with that."""
    if rank.id == 1:
        await rank.notify(flag.at(0)[0], 1)
        await rank.load(box.at(0)[:])
    if rank.id == 0 and await rank.test(flag[0] >= 1):
        await rank.store(box[:], FIVE)


def titles(report):
    return [(finding.title, finding.pairs, finding.harmful) for finding in report.findings]


@pytest.mark.parametrize(
    "judge",
    [
        lambda: check(off_path, ranks=2, calls=1, memory="sc"),
        lambda: explore(off_path, ranks=2, calls=1, exhaustive=True),
        lambda: explore(off_path, ranks=2, calls=1, exhaustive=True, executor=Here()),
    ],
)
def test_a_race_off_the_reference_path_is_told(judge, monkeypatch):
    monkeypatch.setattr(exhaust_parallel, "FIRST", 1)
    report = judge()
    assert report.verdict == "EXHAUSTED"
    assert titles(report) == [("WAR race, same call", 1, False)]
    (race,) = report.findings
    assert race.shown.startswith("the same bits in both orders, each followed to all its ends (")
    replayed = replay(decode(race.token), off_path).run
    names = list(replayed.choices)
    assert names.index("1") < names.index("0")  # so that the test says yes


def test_a_race_of_a_sampled_schedule_is_told_and_not_called_benign():
    report = check(off_path, ranks=2, calls=1, memory="sc", budget=0)
    assert report.verdict == "SURVIVED"
    assert titles(report) == [("WAR race, same call", 1, None)]
    assert report.findings[0].shown == NOT_FOLLOWED


def test_long_schedules_are_not_looked_at(monkeypatch):
    monkeypatch.setattr(coenabled, "LONGEST", 2)
    report = check(off_path, ranks=2, calls=1, memory="sc", budget=0, samples=9)
    assert not report.findings
    assert "9 schedules were sampled, 0 of them looked at for races" in report.scope


def test_only_so_many_steps_of_schedules_are_looked_at():
    case = Case(off_path, 2, 1)
    judge = Judge(case)
    judge.set_reference(drive(case, Fifo()))
    looked = coenabled.SampledRaces(case, judge.steps, 7)
    for number in range(4):
        recorded = RecordedChoices(make(f"random:seed={number}"))
        drive(case, recorded)
        looked.add_run(recorded)
    assert looked.schedules == 2  # the second of them only in part


@kernel(memory=[Signal("cell", (1,)), flag])
async def sets_off_path(rank, cell, flag):
    """Set a cell only where the test says yes; a credit of the peer's may be erased by that."""
    if rank.id == 1:
        await rank.notify(flag.at(0)[0], 1)
        await rank.notify(cell.at(0)[0], 1)
    if rank.id == 0 and await rank.test(flag[0] >= 1):
        await rank.notify(cell[0], 0, op=Set)


def test_a_signal_race_off_the_reference_path_is_told():
    report = check(sets_off_path, ranks=2, calls=1, memory="sc")
    assert report.verdict == "EXHAUSTED"
    assert titles(report) == [("signal-race, same call", 1, False)]
    assert report.findings[0].why.endswith("can come in either order: the Set can erase the credit")


def test_two_puts_with_signal_can_race_with_data_and_signal():
    @kernel(memory=[word, flag])
    async def both(rank, word, flag):
        await rank.put_signal(word.at(0)[0], np.int64(7), flag.at(0)[0], 1 + rank.id, op=Set)

    case = Case(both, 2, 1)
    explored = exhaust(case, budget=10, judge=Judge(case))
    assert {kind for kind, *_ in explored.races} == {"race", "signal-race"}


@kernel(memory=[box, flag], golden=lambda xs: [0, 0], inputs=lambda P, call, rng: [0] * P)
async def harmful_off_path(rank, x, box, flag):
    """The same, but the load is returned, and must not see the store."""
    if rank.id == 1:
        await rank.notify(flag.at(0)[0], 1)
        return int((await rank.load(box.at(0)[:]))[0])
    if await rank.test(flag[0] >= 1):
        await rank.store(box[:], FIVE)
    return 0


def test_a_harmful_one_has_a_witness_of_its_own():
    report = check(harmful_off_path, ranks=2, calls=1, memory="sc")
    assert report.verdict == "REFUTED"
    race = next(finding for finding in report.findings if finding.kind == "race")
    assert race.harmful
    assert "5 instead of 0" in race.shown
    run = replay(decode(race.token), harmful_off_path).run
    assert run.outputs[0][1] == 5


# ---- benign


@kernel(memory=[word, flag], golden=lambda xs: [xs[1], None], inputs=lambda P, call, rng: [int(rng.integers(1, 9))] * P)
async def late(rank, x, word, flag):
    """Set the flag to 0 while credits come. Set before the old credit, that credit lets the wait pass too early."""
    if rank.id == 1:
        await rank.notify(flag.at(0)[0], 1)
        await rank.store(word.at(0)[0], x)
        await rank.notify(flag.at(0)[0], 1)
        return None
    await rank.fence()
    await rank.fence()
    await rank.notify(flag[0], 0, op=Set)
    await rank.wait(flag[0] >= 1)
    return int(await rank.load(word[0]))


def test_two_schedules_with_the_same_bits_do_not_make_a_pair_benign():
    report = check(late, ranks=2, calls=1, memory="sc")
    assert [(finding.kind, finding.harmful) for finding in report.findings] == [("signal-race", True)] * 2
    old = next(finding for finding in report.findings if "0 instead of" in finding.shown)
    run = replay(decode(old.token), late).run
    assert run.outputs[0][0] == 0


@kernel(memory=[box])
async def same_word(rank, box):
    """All but rank 0 put the same number to one place."""
    if rank.id:
        await rank.store(box.at(0)[:], FIVE)


def test_the_races_of_an_exhausted_kernel_are_benign_and_counted():
    report = check(same_word, ranks=4, calls=1, memory="sc")
    assert report.verdict == "EXHAUSTED"
    assert titles(report) == [("WAW race, same call", 3, False)]
    assert report.findings[0].shown == "the same bits in all 6 inequivalent executions"


def test_a_race_that_is_not_followed_to_all_ends_is_not_called_benign(monkeypatch):
    monkeypatch.setattr(classify, "BUDGET", 3)
    report = check(same_word, ranks=4, calls=2, memory="sc", budget=3, samples=3)
    assert report.verdict == "SURVIVED"
    assert {finding.harmful for finding in report.findings} == {None}
    assert NOT_FOLLOWED in report.findings[0].shown


def test_more_pairs_than_are_followed_are_not_called_benign(monkeypatch):
    monkeypatch.setattr("asyncsim.analysis.group.EXAMPLES", 1)
    report = check(same_word, ranks=4, calls=1, memory="sc", budget=5, samples=3)
    (race,) = report.findings
    assert race.harmful is None
    assert "others were not run" in race.shown


# ---- both orders, followed


def following(program, *, budget=100, ranks=2):
    """Return what follows both orders of a case, and its judge."""
    case = Case(program, ranks, 1)
    judge = Judge(case)
    judge.set_reference(drive(case, Fifo()))
    return OrderComparison(judge, budget)


def storing(*, returns, other=1):
    @kernel(memory=[box])
    async def stores(rank, box):
        if rank.id == 1:
            await rank.store(box.at(0)[0], np.int32(other))
        else:
            await rank.store(box[0], np.int32(1))
        return returns

    return stores


@pytest.mark.parametrize(
    ("program", "harmful", "words"),
    [
        (storing(returns=0), False, "the same bits in both orders, each followed to all its ends (2 executions)"),
        (storing(returns=0, other=2), None, "the windows end with other contents"),
        (storing(returns=None, other=2), True, "the windows end with other contents"),
    ],
)
async def test_what_is_left_in_windows_is_harm_where_nothing_is_returned(program, harmful, words):
    shown = await following(program).compare([], "0", "1")
    assert shown.harmful is harmful
    assert words in shown.words


async def test_another_result_within_the_tolerance_is_harm_without_a_failure():
    @kernel(memory=[box], golden=lambda xs: [1.0, 1.0], inputs=lambda P, call, rng: [0] * P)
    async def almost(rank, x, box):
        if rank.id:
            await rank.store(box.at(0)[0], np.int32(1))
            return 1.0
        return 1.0 + 1e-12 * int(await rank.load(box[0]))

    shown = await following(almost).compare([], "0", "1")
    assert shown.harmful
    assert "differ in their bits" in shown.words


async def test_without_a_budget_nothing_is_followed():
    for budget in (0, 1):
        shown = await following(storing(returns=0), budget=budget).compare([], "0", "1")
        assert (shown.harmful, shown.words) == (None, NOT_FOLLOWED)


async def test_a_pair_of_which_one_keeps_the_other_from_going_on_is_not_followed():
    @kernel(memory=[flag])
    async def takes(rank, flag):
        await rank.notify(flag[0], 1)
        await rank.wait(flag[0] >= 1, consume=True)
        await rank.wait(flag[0] >= 1, consume=True)

    shown = await following(takes).compare(["0", "0"], "0", "1")
    assert shown.harmful is None


async def test_a_result_that_the_order_which_was_followed_does_not_have_is_harm():
    @kernel(memory=[box])
    async def reads(rank, box):
        if rank.id == 1:
            await rank.store(box.at(0)[0], np.int32(1))
            return 0
        first = int(await rank.load(box[0]))
        for _ in range(3 * (rank.id == 2)):
            await rank.store(box.at(0)[0], np.int32(1))
        return first

    ends = following(reads, ranks=3, budget=4)
    shown = await ends.compare([], "0", "1")
    assert shown.harmful


@kernel(memory=[box, flag], golden=lambda xs: [0, 0], inputs=lambda P, call, rng: [0] * P)
async def raises_off_path(rank, x, box, flag):
    """The load that races raises if it sees the store."""
    if rank.id == 1:
        await rank.notify(flag.at(0)[0], 1)
        if (await rank.load(box.at(0)[:]))[0]:
            raise ValueError("five")
    elif await rank.test(flag[0] >= 1):
        await rank.store(box[:], FIVE)
    return 0


def test_a_race_that_makes_a_kernel_raise_is_harmful():
    report = check(raises_off_path, ranks=2, calls=1, memory="sc")
    assert report.verdict == "REFUTED"
    race = next(finding for finding in report.findings if finding.kind == "race")
    assert race.harmful
    assert "ValueError: five" in race.shown


def test_ctrl_c_while_orders_are_followed_ends_the_check_with_what_was_found(monkeypatch):
    async def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(OrderComparison, "compare", interrupted)
    report = check(off_path, ranks=2, calls=1, memory="sc")
    assert (report.verdict, report.interrupted) == ("SURVIVED", True)
    assert titles(report) == [("WAR race, same call", 1, None)]
    other = explore(off_path, ranks=2, calls=1, exhaustive=True)
    assert (other.interrupted, titles(other)) == (True, [("WAR race, same call", 1, None)])


# ---- which races refute


def test_all_races_refute_where_that_is_asked_for():
    report = check(same_word, ranks=3, calls=1, memory="sc", races="all")
    assert report.verdict == "REFUTED"
    assert report.scope.startswith(
        "a race that is not shown to be harmful counts all the same (races: all); one run does not decide; all 2"
    )
    two = explore(off_path, ranks=2, calls=1, exhaustive=True, races="all")
    assert two.verdict == "REFUTED"
    assert check(same_word, ranks=1, calls=1, memory="sc", races="all").verdict == "PROVED"


@pytest.mark.parametrize("judge", [check, explore])
def test_which_races_refute_is_one_of_two_words(judge):
    with pytest.raises(MisuseError, match="races='some'; give 'harmful', or 'all'"):
        judge(same_word, ranks=2, races="some")


@pytest.mark.parametrize("command", [["check", "--memory", "sc"], ["explore", "--exhaustive"]])
@pytest.mark.parametrize(("races", "status"), [("harmful", 0), ("all", 1)])
def test_the_commands_leave_with_that_status(command, races, status):
    words = [*command, "kernels.field.not_bugs:identical_bytes", "-P", "2", "--races", races]
    shown = CliRunner().invoke(main, words)
    assert shown.exit_code == status
    assert shown.stdout.startswith("REFUTED" if status else "EXHAUSTED")
