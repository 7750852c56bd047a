"""Schedulers: what each of them chooses, and that it chooses the same again."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections import Counter
from itertools import groupby

import pytest
from scheduled import RULE, choices, data, flag, free, ping, read_peer

from asyncsim import ATOMIC_ADD as ADD
from asyncsim import Case, DivergenceError, MisuseError, explore, simulate
from asyncsim.schedulers.lenient import UNTIL_BLOCKED, Lenient
from asyncsim.schedulers.pct import Pct
from asyncsim.schedulers.random import Random
from asyncsim.schedulers.replay import Replay, same_op
from asyncsim.schedulers.script import Script
from asyncsim.schedulers.table import SCHEDULERS, make
from asyncsim.trace.op import Op
from asyncsim.trace.world import Actor, World
from kernels.reduce_scatter import builtin, no_post_barrier

EXAMPLES = (
    "fifo",
    "eager",
    "random",
    "calls",
    "starve:rank=1",
    "pct:depth=2",
    "pos",
    "surw",
    "delay",
    "preempt",
    "latency:jitter=1",
    f"script:rules={RULE}",
)


def test_every_scheduler_has_an_example():
    assert {example.partition(":")[0] for example in EXAMPLES} == set(SCHEDULERS), "add it to EXAMPLES"


def test_an_object_is_not_a_name():
    with pytest.raises(MisuseError, match="named by text here"):
        make(object())


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_scheduler_keeps_the_protocol_and_begins_anew(text):
    case = Case(builtin, 3, 2)
    one, two = make(text, seed=11), make(text, seed=11)
    first = [simulate(case, one).choices for _ in range(3)]
    assert first == [simulate(case, two).choices for _ in range(3)]
    assert all(sorted(run) == sorted(first[0]) for run in first)
    if "seed" not in inspect.signature(SCHEDULERS[text.partition(":")[0]]).parameters or text.startswith("script"):
        assert first[0] == first[1] == first[2]
    else:
        assert first[0] != first[1] != first[2]


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_text_of_a_scheduler_makes_it_again(text):
    scheduler = make(text, seed=5)
    again = make(str(scheduler))
    assert str(again) == str(scheduler)
    case = Case(builtin, 2, 1)
    assert simulate(case, again).choices == simulate(case, scheduler).choices


def test_schedules_do_not_depend_on_the_process():
    program = (
        "from asyncsim import Case, simulate\n"
        "from asyncsim.schedulers.table import make\n"
        "from kernels.reduce_scatter import builtin\n"
        "for text in ('random:seed=3', 'pct:seed=3', 'pos:seed=3'):\n"
        "    print(''.join(simulate(Case(builtin, 3, 1), make(text)).choices))\n"
    )
    printed = {
        subprocess.run(  # noqa: S603 - this interpreter, on the text above
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, check=True, text=True, timeout=240
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    own = [simulate(Case(builtin, 3, 1), make(f"{name}:seed=3")).choices for name in ("random", "pct", "pos")]
    assert printed == {"".join("".join(run) + "\n" for run in own)}


def test_fifo_takes_turns():
    assert choices(free, make("fifo")) == "012012012"


def test_eager_switches_only_when_an_actor_cannot_go_on():
    assert choices(free, make("eager")) == "000111222"
    assert choices(ping, make("eager"), ranks=2, calls=2) == "11110000"


def test_the_starved_rank_runs_when_nobody_else_can():
    assert choices(free, make("starve:rank=0")) == "121212000"
    assert choices(ping, make("starve:rank=1"), ranks=2) == "1100"


def test_to_starve_a_rank_that_is_not_there_is_a_mistake():
    with pytest.raises(MisuseError, match="no rank 7; the ranks are 0 to 2"):
        choices(free, make("starve:rank=7"))


def test_random_takes_every_ready_operation_about_equally_often():
    scheduler = Random(seed=1)
    ready = [Op(Actor(str(i), i, i), "load") for i in range(4)]
    scheduler.begin([op.actor for op in ready])
    counts = Counter(scheduler.choose(ready).actor.name for _ in range(4000))
    assert all(850 < count < 1150 for count in counts.values())


def test_pct_of_depth_1_is_run_to_block_in_an_order_by_chance():
    orders = {choices(free, scheduler) for scheduler in [make("pct:depth=1", seed=2)] for _ in range(40)}
    assert len(orders) == 6
    assert all(len(list(groupby(order))) == 3 for order in orders)


def test_pct_changes_priorities_as_often_as_its_depth_says():
    scheduler = make("pct:depth=2,steps=9", seed=2)
    switches = [len(list(groupby(choices(free, scheduler)))) - 1 for _ in range(40)]
    assert max(switches) == 3
    assert min(switches) == 2


def test_pct_learns_how_long_a_run_is():
    scheduler = Pct(depth=3)
    assert scheduler.steps is None
    for _ in range(2):
        choices(free, scheduler)
    assert scheduler.steps == 9
    assert Pct(steps=4).steps == 4


def test_pct_gives_a_priority_to_an_actor_that_was_started_later():
    scheduler = Pct(depth=1)
    late = Op(Actor("0.1", 0, 1), "load")
    scheduler.begin([])
    assert scheduler.choose([late]) is late


def test_pos_finds_a_race_between_single_operations_at_once():
    scheduler = make("pos", seed=0)
    first = Counter(choices(read_peer, scheduler, ranks=2)[0] for _ in range(200))
    assert 60 < first["0"] < 140


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fifi", "no scheduler is called 'fifi'; did you mean fifo? there are: fifo, eager"),
        ("replay", "no scheduler is called 'replay'"),
        ("", "no scheduler is called ''; there are:"),
        ("zzz:seed=1", "no scheduler is called 'zzz'; there are"),
        ("fifo:seed=1", "fifo has no argument 'seed'; write fifo"),
        ("pct:deep=3", "pct has no argument 'deep'; write pct:depth=...,seed=...,steps=..."),
        ("pct:depth", "pct: 'depth' is no argument"),
        ("pct:", "pct: '' is no argument"),
        ("pct:depth=", "pct: 'depth=' is no argument"),
        ("pct:depth=3,depth=4", "pct: depth is given twice"),
        ("pct:depth=0", "pct: depth=0; give an integer >= 1"),
        ("pct:depth=x", "pct: depth='x'; give an integer >= 1"),
        ("pct:steps=0", "pct: steps=0; give an integer >= 1"),
        ("random:seed=-1", "random: seed=-1; give an integer >= 0"),
        ("pos:seed=1.5", "pos: seed='1.5'; give an integer >= 0"),
        ("starve", "starve needs rank; write starve:rank=..."),
        ("script:rules=;", "script: no rule"),
        ("script:rules=7", "script: '7' is no rule"),
    ],
)
def test_a_text_that_names_no_scheduler_is_explained(text, message):
    with pytest.raises(MisuseError) as caught:
        make(text)
    assert message in str(caught.value)


def test_make_takes_the_seed_of_the_text_before_its_own():
    assert str(make("random", seed=3)) == "random:seed=3"
    assert str(make("random:seed=4", seed=3)) == "random:seed=4"
    assert str(make(" pct:steps=9 , depth=2")) == "pct:depth=2,seed=0,steps=9"


def test_lenient_follows_its_segments_as_far_as_they_fit():
    assert choices(free, Lenient([("1", 2), ("9", 1), ("0", 0), ("2", 1), ("1", 5)])) == "112122000"
    assert choices(free, Lenient([("2", UNTIL_BLOCKED)])) == "222000111"
    assert choices(free, Lenient([])) == "000111222"


def test_replay_follows_the_schedule_to_its_end():
    case = Case(no_post_barrier, 3, 2)
    run = simulate(case, make("random", seed=3), record="x")
    assert simulate(case, Replay(run.choices, run.trace.events)).choices == run.choices


def test_replay_says_what_it_expected_and_what_it_met():
    case = Case(ping, 2, 1)
    with pytest.raises(DivergenceError, match=r"step 0: actor 0 was next, but is not ready; ready: 1 \(sto") as e:
        simulate(case, Replay(["0"]))
    assert e.value.step == 0
    with pytest.raises(DivergenceError, match=r"step 1: the schedule ends here, after 1 steps, but .* on: 1 \("):
        simulate(case, Replay(["1"]))
    recorded = simulate(case, make("fifo"), record="x").trace
    events = [recorded.events[1], *recorded.events[1:]]
    with pytest.raises(DivergenceError, match=r"actor 1: recorded: notify flag\[1\]@0 \+= 1; met: store to data"):
        simulate(case, Replay(recorded.choices, events))
    with pytest.raises(DivergenceError, match=r"actor 0 \(wait flag\[1\]@0 (>=|Ge) 1\) was next, but is not ready"):
        simulate(case, Replay(["0"], [recorded.events[2]]))
    with pytest.raises(DivergenceError, match="and 2 more"):
        simulate(Case(free, 6, 1), Replay([]))


def test_two_operations_are_the_same_by_place_not_by_object():
    one, two = (World(2, [data, flag]) for _ in range(2))

    def notify(world, **changes):
        _, signal = world.views(0)
        how = {"kind": "notify", "cell": signal.at(1)[0], "how": ADD, "amount": 1}
        return Op(world.actors[0], **{**how, **changes})

    assert same_op(notify(one), notify(two))
    assert not same_op(notify(one), notify(two, amount=2))
    assert not same_op(notify(one), notify(two, cell=two.views(0)[1][0]))
    row, column = two.views(0)[0][0], two.views(0)[0][0:1, 0]
    assert same_op(Op(one.actors[0], "load", one.views(0)[0][0].reads), Op(two.actors[0], "load", row.reads))
    assert not same_op(Op(one.actors[0], "load", one.views(0)[0][0].reads), Op(two.actors[0], "load", column.reads))


def test_every_scheduler_of_the_table_says_where_it_comes_from():
    for name, factory in SCHEDULERS.items():
        module = inspect.getmodule(factory) if inspect.isclass(factory) else inspect.getmodule(Script)
        assert "Source: " in module.__doc__, name


def test_a_scheduler_without_a_seed_is_explored_once():
    report = explore(builtin, ranks=2, scheduler="starve:rank=0", runs=40)
    assert report.scope.startswith("1 schedule sampled (starve:rank=0)")
    assert explore(builtin, ranks=2, scheduler="pos", runs=4).scope.startswith("4 schedules sampled")
