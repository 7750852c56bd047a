"""Exhaustive exploration by several workers: it finds what one finds, wherever the tree of schedules is cut."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from functools import partial
from itertools import count

import brute
import numpy as np
import pytest
from click.testing import CliRunner
from late_families import FAMILIES as LATE_FAMILIES
from late_programs import program_number as late_number
from late_runs import kernel_of as late_kernel
from naive import ANYTHING, LATE, case_of, draw, end_of, every_end
from programs import FAMILIES, kernel_of, program_number
from toy import parse

from asyncsim import DivergenceError, MisuseError, Signal, Window, explore, kernel, replay
from asyncsim.checking import exhaust_parallel as module
from asyncsim.checking import split as splitting
from asyncsim.checking.below import Below, search
from asyncsim.checking.dpor import Branching
from asyncsim.checking.exhaust import Exhausting, exhaust
from asyncsim.checking.exhaust_parallel import Dividing, exhaust_parallel
from asyncsim.checking.outcome import Judge
from asyncsim.checking.parallel import Crew
from asyncsim.checking.prefixes import Learnt, Prefix, Step
from asyncsim.checking.split import split
from asyncsim.cli.main import main
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import Blocking
from asyncsim.trace.token import decode
from kernels import reduce_scatter
from kernels.field import not_bugs

SIZES = (1, 2, 5, 20)
"""Into how many parts the tree is cut."""
BUDGET = 20_000

data = Window("data", (1,), np.int64, initialised=True)
cell = Signal("cell", (1,))
small = Signal("small", (1,), "int8", start=126)


class Here(Executor):
    """Runs each batch at once, and sends it and its part through pickle, as to a process and back."""

    def __init__(self, lose=lambda _: False):  # noqa: D107
        self.lose = lose
        self.given = []

    def submit(self, function, /, batch):
        self.given.append(batch)
        future = Future()
        if self.lose(batch):
            future.set_exception(BrokenExecutor("a worker died"))
            return future
        try:
            future.set_result(pickle.loads(pickle.dumps(function(pickle.loads(pickle.dumps(batch))))))  # noqa: S301
        except MisuseError as error:
            future.set_exception(error)
        return future


async def divided(case, parts, *, budget=BUDGET, jobs=1, on_run=None, **more):
    """Explore a case in so many parts, all of them here."""
    judge = Judge(case)
    crew = Crew(jobs, Here(), run=partial(search, judge, on_run=on_run))
    return await Dividing(case, judge, crew, parts=parts, first=1, **more).run(budget)


def facts(explored):
    """Return what must be the same whoever explores; where an overflow ended runs, that there was one is all."""
    kinds = {failure.finding.kind for failure in explored.failures}
    if "overflow" in kinds:
        return explored.complete, "overflow"
    return explored.complete, explored.ends, explored.results, kinds


async def differences(case, sizes, counts, *, jobs=1):
    """Return the numbers of parts with which an exploration says something else than one in one piece."""
    alone = await exhaust.aio(case, budget=BUDGET, judge=Judge(case))
    counts["cases"] += 1
    wrong = []
    for size in sizes:
        together = await divided(case, size, jobs=jobs)
        counts["runs"] += together.executions - together.redundant
        counts["alone"] += alone.executions - alone.redundant
        if facts(together) != facts(alone):
            wrong.append(size)
    return wrong


@Blocking
async def campaign(cases, *, engine="direct", **more):
    """Compare each case at two sizes in turn; return what is wrong, and how much was run."""
    counts = Counter()
    wrong = []
    for number, (name, case) in enumerate(cases):
        sizes = SIZES[number % 4], SIZES[(number + 1) % 4]
        wrong += [(name, size) for size in await differences(case, sizes, counts, **more)]
    return wrong, counts


def early(total, start=0):
    for number in range(start, start + total):
        family = FAMILIES[number % len(FAMILIES)]
        program = program_number(family, number)
        yield f"{family} {number}", Case(kernel_of(program), ranks=len(program.actors), calls=program.calls)


def late(total, start=0):
    for number in range(start, start + total):
        family = list(LATE_FAMILIES)[number % len(LATE_FAMILIES)]
        memory = ("ldst", "nic")[number // len(LATE_FAMILIES) % 2]
        program = late_number(family, number, total=7)
        yield f"{family} {number} {memory}", Case(late_kernel(program, {}), len(program.ranks), 1, memory)


def drawn(total):
    for number in range(total):
        rng = random.Random(f"parts {number}")  # noqa: S311 - dice, no secret
        kinds, memory, most, streams = ((ANYTHING, "sc", 7, number % 3 == 0), (LATE, "ldst", 4, False))[number % 2]
        yield case_of(draw(rng, kinds, most, streams=streams), memory)


# ---- the law


def small_ones(total):
    """Yield programs with few final states: the others take most of the time."""
    for number in count():
        family = FAMILIES[number % len(FAMILIES)]
        if total and len(brute.explore(program_number(family, number)).finals) <= 12:
            total -= 1
            yield from early(1, number)
        if not total:
            return


def test_any_cut_finds_what_one_search_finds():
    wrong, counts = campaign(small_ones(100), engine="direct")
    assert not wrong
    assert counts["cases"] == 100
    assert counts["runs"] < 1.2 * counts["alone"]


def test_any_cut_finds_what_one_search_finds_where_writes_land_late():
    wrong, counts = campaign(late(30), engine="direct")
    assert not wrong
    assert counts["runs"] < 1.2 * counts["alone"]


@pytest.mark.parametrize("cases", [partial(small_ones, 40), partial(late, 30)])
def test_what_is_left_off_is_taken_up_and_cut_again(monkeypatch, cases):
    monkeypatch.setattr(module, "SLICE", 1)
    monkeypatch.setattr(module, "LARGEST", 2)
    wrong, _ = campaign(cases(), engine="direct", jobs=3)
    assert not wrong


@Blocking
async def compare_with_every_run(total, *, engine="direct"):
    """Compare with all schedules, one after the other."""
    wrong, compared = [], 0
    for number, case in enumerate(drawn(total)):
        truth = await every_end(case, 150)
        if truth is None:
            continue
        ends = set()
        explored = await divided(case, SIZES[number % 4], on_run=lambda run, ends=ends: ends.add(end_of(run)))
        if explored.executions == 1:
            continue  # nothing was left to divide
        compared += 1
        if not explored.complete or ends != truth[0]:
            wrong.append(number)
    return wrong, compared


def test_the_parts_have_every_end_that_there_is():
    wrong, compared = compare_with_every_run(120, engine="direct")
    assert not wrong
    assert compared > 15


def no_wake(state, relation):
    """Stand in for sleeping: nobody is ever woken."""
    return state.asleep | {actor: state.ready[actor] for actor in state.done}


def eldest_only(state):
    """Stand in for who is awake at a cut."""
    return AWAKE(state)[:1]


AWAKE = splitting._awake


@pytest.mark.parametrize(
    ("owner", "rule", "instead"), [(Branching, "asleep_after", no_wake), (splitting, "_awake", eldest_only)]
)
def test_the_law_notices_a_missing_rule(monkeypatch, owner, rule, instead):
    monkeypatch.setattr(owner, rule, instead)
    assert campaign([("storing", storing_case())] * 4, engine="direct")[0]


# ---- what the tree may look like


@kernel(memory=[data])
async def storing(rank, data):
    """Store to one place twice, and look at nothing."""
    await rank.store(data.at(0)[0], rank.id)
    await rank.store(data.at(0)[0], rank.id)


def storing_case(ranks=3):
    return Case(storing, ranks, 1)


def case_of_text(text, **more):
    program = parse(text, **more)
    return Case(kernel_of(program), ranks=len(program.actors), calls=1)


async def test_a_part_may_be_a_whole_execution():
    case = storing_case(2)
    parts = await split(case, [Prefix(Learnt())], 100)
    assert len(parts) == 6  # 4! / (2! 2!)
    assert {len(part.fixed) for part in parts} == {4}
    assert await split(case, parts, 100) == parts
    explored = await divided(case, 100)
    assert (explored.executions - explored.redundant, explored.complete, explored.estimate) == (6, True, 6)


@pytest.mark.parametrize(
    ("text", "finals"), [("wait c >= 1; st x || st x", 1), ("wait c >= 1; st x || st x || wait d >= 1; c += 1", 1)]
)
async def test_a_deadlock_above_the_cut(text, finals):
    case = case_of_text(text, elements=(0,))
    explored = await divided(case, 20)
    assert explored.complete
    assert len(explored.ends) == finals
    assert {failure.finding.kind for failure in explored.failures} == {"deadlock"}


async def test_a_deadlock_below_one_way_and_not_the_other():
    case = case_of_text("wait c == 1; st x || c += 1; c += 1; ld x")
    for size in SIZES:
        explored = await divided(case, size)
        assert {failure.finding.kind for failure in explored.failures} == {"deadlock"}
        assert facts(explored) == facts(await exhaust.aio(case, budget=9, judge=Judge(case)))


async def test_one_actor_has_one_execution():
    case = case_of_text("st x; ld x; st x")
    explored = await divided(case, 20)
    assert (explored.executions, explored.redundant, explored.complete) == (1, 0, True)
    (part,) = await split(case, [Prefix(Learnt())], 20)
    assert [step.chosen for step in part.fixed] == ["0", "0", "0"]


async def test_a_part_where_everything_sleeps_is_left_out():
    """Both orders of what does not conflict are one class."""
    case = case_of_text("st x || st y")
    (part,) = await split(case, [Prefix(Learnt())], 20)
    assert [step.chosen for step in part.fixed] == ["0", "1"]


async def test_a_narrow_tree_is_not_looked_at_for_ever(monkeypatch):
    monkeypatch.setattr(splitting, "_LOOKS", 1)
    assert len(await split(storing_case(), [Prefix(Learnt())], 9)) >= 9
    monkeypatch.setattr(splitting, "_LOOKS", 0)
    assert len(await split(storing_case(), [Prefix(Learnt())], 9)) == 1


# ---- what is learnt


@kernel(memory=[data, small])
async def grows(rank, data, small):
    """Add to a small cell only where the other rank was late: whether it can overflow is learnt on the way."""
    if not rank.id:
        await rank.store(data[0], 1)
        return
    if not await rank.load(data.at(0)[0]):
        await rank.notify(small.at(0)[0], 1)
        await rank.notify(small.at(0)[0], 1)


async def test_what_a_worker_learns_is_known_from_the_start_the_next_time(monkeypatch):
    known = []
    old = Dividing._explore

    async def noted(self, learnt, budget):
        known.append(learnt)
        return await old(self, learnt, budget)

    monkeypatch.setattr(Dividing, "_explore", noted)
    case = Case(grows, 3, 1)
    alone = await exhaust.aio(case, budget=BUDGET, judge=Judge(case))
    for size in SIZES:
        known.clear()
        explored = await divided(case, size)
        assert facts(explored) == facts(alone)
        assert [bool(learnt.tight) for learnt in known] == [False, True]


# ---- whoever runs them


def told(explored):
    return explored, [failure.choices for failure in explored.failures]


@pytest.mark.parametrize("budget", [20, BUDGET])
async def test_who_was_faster_does_not_matter(monkeypatch, budget):
    monkeypatch.setattr(module, "FIRST", 5)
    case = Case(reduce_scatter.no_post_barrier, 3, 2)
    seen = []
    with ThreadPoolExecutor(2) as threads:
        for executor in (Here(), threads):
            explored = await exhaust_parallel.aio(case, Judge(case), budget=budget, jobs=2, executor=executor)
            seen.append(told(explored))
    assert seen[0] == seen[1]
    assert explored.complete is (budget == BUDGET)
    assert explored.executions <= budget


async def test_the_budget_is_kept_and_the_estimate_says_how_much_there_may_be():
    case = storing_case()  # 6! / (2! 2! 2!) = 90
    seen = []
    explored = await divided(case, 9, budget=40, progress=seen.append)
    assert (explored.executions, explored.complete, explored.over) == (40, False, False)
    assert explored.estimate > 40
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
    assert all(progress.total >= progress.done for progress in seen)
    few = await divided(case, 20, budget=5)
    assert (few.executions, few.complete) == (5, False)
    whole = await divided(case, 9)
    assert (whole.executions - whole.redundant, whole.estimate, whole.complete) == (90, 90, True)


@pytest.mark.parametrize("at", [1, 2, 4])
async def test_ctrl_c_ends_it_with_what_was_learnt(at):
    numbers = count(1)

    def interrupt(_):
        if next(numbers) == at:
            raise KeyboardInterrupt

    explored = await divided(Case(reduce_scatter.no_post_barrier, 3, 2), 9, progress=interrupt)
    assert (explored.complete, explored.interrupted) == (False, True)
    assert 1 <= explored.executions < 40


async def test_failures_are_told_once_in_the_order_of_the_schedules():
    kinds = []

    async def note(failure):
        kinds.append(failure.finding.kind)

    case = case_of_text("wait c == 1; st x || c += 1; c += 1; ld x")
    explored = await divided(case, 5, found=note)
    assert kinds == [failure.finding.kind for failure in explored.failures] == ["deadlock"]


async def test_a_kernel_that_does_not_repeat_itself_is_noticed_by_a_worker():
    runs = count()

    @kernel(memory=[data])
    async def forgetful(rank, data):
        if next(runs) < 6 or rank.id == 0:
            await rank.store(data.at(0)[0], rank.id)
        else:
            await rank.load(data.at(0)[0])
        await rank.store(data.at(0)[0], rank.id)

    with pytest.raises(DivergenceError, match="the same choices led to other operations"):
        await divided(Case(forgetful, 2, 1), 1)


async def test_a_prefix_that_the_kernel_does_not_follow():
    case = storing_case(2)
    prefix = Prefix(Learnt(), (Step("7"),))
    with pytest.raises(DivergenceError, match="at step 0: the same choices led elsewhere: 7 is not ready; now 0, 1"):
        await Exhausting(case, Judge(case), prefix=prefix).run(1)


async def test_an_execution_that_ends_its_process_is_told_with_its_prefix_and_refutes_nothing(monkeypatch):
    case = storing_case()
    crew = Crew(
        2, Here(lambda batch: batch.start == 1 and len(batch.prefix.fixed) > 1), run=partial(search, Judge(case))
    )
    monkeypatch.setattr(crew, "renew", lambda: None)
    explored = await Dividing(case, Judge(case), crew, parts=9, first=1).run(BUDGET)
    (failure,) = explored.failures
    assert "dies, in every attempt" in failure.finding.why
    assert failure.finding.shown == f"below the prefix {','.join(failure.choices)}"
    assert failure.finding.harmful is None
    assert not explored.complete
    assert explored.executions > 70


async def test_parts_that_are_lost_are_searched_again(monkeypatch):
    lost = iter([False, True, False, True])
    case = storing_case()
    crew = Crew(2, Here(lambda _: next(lost, False)), run=partial(search, Judge(case)))
    monkeypatch.setattr(crew, "renew", lambda: None)
    explored = await Dividing(case, Judge(case), crew, parts=9, first=1).run(BUDGET)
    assert (explored.executions - explored.redundant, explored.complete) == (90, True)


def test_only_parts_of_an_exhaustive_exploration_can_be_searched():
    with pytest.raises(TypeError, match="str is no part"):
        search(Judge(storing_case()), "batch")


# ---- the report


def test_all_were_run(monkeypatch):
    monkeypatch.setattr(module, "FIRST", 2)
    executor = Here()
    report = explore(not_bugs.identical_bytes, ranks=2, exhaustive=True, executor=executor)
    assert {type(batch) for batch in executor.given} == {Below}
    assert report.schedules > 5
    alone = explore(not_bugs.identical_bytes, ranks=2, exhaustive=True)
    assert report.verdict == alone.verdict == "EXHAUSTED"
    assert "; all 4 inequivalent executions of these 2 ranks, 2 calls and these inputs were run, and" in alone.scope
    assert " executions, among them all inequivalent ones, of these 2 ranks, 2 calls and these inputs" in report.scope
    assert alone.schedules == 5


def test_the_budget_ended_it():
    report = explore(storing, ranks=3, calls=1, exhaustive=True, budget=60)
    assert (report.verdict, report.schedules) == ("SURVIVED", 61)
    assert report.scope.startswith("60 executions of these 3 ranks, 1 call and these inputs were run, of about ")
    assert report.scope.endswith("; nothing is said of the others")


def test_two_processes_find_what_one_finds(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "FIRST", 3)
    report = explore(reduce_scatter.no_post_barrier, ranks=3, exhaustive=True, jobs=2, save=tmp_path)
    assert report.verdict == "REFUTED"
    assert report.scope.endswith(
        "of these 3 ranks, 2 calls and these inputs were run, among them all inequivalent ones"
    )
    (finding,) = report.findings
    assert finding.kind == "wrong-result"
    assert [str(path) for path in tmp_path.iterdir()] == [finding.trace]
    again = replay(decode(finding.token), reduce_scatter.no_post_barrier).run
    assert [found.kind for found in Judge(again.case).findings(again)] == ["wrong-result"]


def test_a_kernel_that_is_not_the_same_every_time():
    runs = count()

    @kernel(memory=[data])
    async def forgetful(rank, data):
        if next(runs) < 6 or rank.id == 0:
            await rank.store(data.at(0)[0], rank.id)
        else:
            await rank.load(data.at(0)[0])
        await rank.store(data.at(0)[0], rank.id)

    report = explore(forgetful, ranks=2, calls=1, exhaustive=True)
    assert [finding.kind for finding in report.findings] == ["hidden-state"]
    assert report.verdict == "REFUTED"


@pytest.mark.parametrize("more", [{"scheduler": "random"}, {"resume": "x"}])
def test_what_does_not_go_together(more):
    with pytest.raises(MisuseError, match="chooses the schedules itself"):
        explore(storing, exhaustive=True, **more)
    with pytest.raises(MisuseError, match="at least one execution"):
        explore(storing, exhaustive=True, budget=0)


def test_the_command():
    shown = CliRunner().invoke(main, ["explore", "reduce_scatter:no_post_barrier", "-P", "2", "--exhaustive"])
    assert shown.exit_code == 1
    assert "all 3 inequivalent executions of these 2 ranks, 2 calls and these inputs were run" in " ".join(
        shown.stdout.split()
    )
    short = ["explore", "reduce_scatter:builtin", "-P", "2", "--exhaustive", "--budget", "5"]
    assert "EXHAUSTED" in CliRunner().invoke(main, short).stdout
