"""What kernels cost beside what they must: lower bounds, tables, and the command."""

from __future__ import annotations

import json
import re
from functools import partial

import numpy as np
import pytest
from command import run
from priced import PRICE, box, card, flag, only_a_barrier

from asyncsim import MisuseError, golden, kernel
from asyncsim.checking.record.locate import locate
from asyncsim.study.cost import ALGORITHMS, algorithms, bound_of, collective_of, compare, cost, resized
from asyncsim.trace.price import Price
from asyncsim.views.cost import card_text, comparison_text

# Lower bounds.


def test_the_bounds_of_the_collectives():
    def numbers(name, P):
        bound = bound_of(name, P, 1000 * P)
        return bound.messages, bound.moved, bound.reduced

    assert numbers("reduce-scatter", 4) == (2, 3000, 3000)
    assert numbers("all-reduce", 5) == (3, 8000, 4000)
    assert numbers("all-gather", 4) == (2, 12000, 0)
    assert numbers("broadcast", 8) == (3, 7000, 0)
    assert numbers("all-to-all", 1) == (0, 0, 0)
    assert bound_of("all-reduce", 4, 4000).seconds(Price(alpha=1, beta=2, gamma=9)) == 27000


@pytest.mark.parametrize(
    ("name", "collective"),
    [
        ("reduce_scatter:builtin", "reduce-scatter"),
        ("all_reduce:ring", "all-reduce"),
        ("halving_doubling:in_place", "all-reduce"),
        ("all_gather:pull", "all-gather"),
        ("broadcast:safe", "broadcast"),
        ("all_to_all:safe", "all-to-all"),
        ("all_to_all:v_safe", None),
    ],
)
def test_a_collective_is_known_by_its_golden_or_its_place(name, collective):
    assert collective_of(locate(name)) == collective


def test_a_golden_with_some_arguments_given_is_known_too():
    made = only_a_barrier.variant(golden=partial(golden.all_reduce, accumulate=np.float64))
    assert collective_of(made) == "all-reduce"


@pytest.mark.parametrize("names", ALGORITHMS.values())
@pytest.mark.parametrize("P", [2, 3, 4])
def test_no_algorithm_beats_the_bound(names, P):
    for name in names.values():
        for price in (PRICE, Price(alpha=0, beta=1), Price(alpha=0, beta=0, gamma=1)):
            made = cost(locate(name), price, ranks=P)
            if made.bound is not None and (price.gamma == 0 or made.reductions_show):
                assert made.path.seconds >= made.bound.seconds(price) * (1 - 1e-9)


def test_reductions_that_leave_no_event_are_told():
    assert card("all_reduce:mesh").reductions_show
    hidden = card("ring:by_pull")
    assert not hidden.reductions_show
    assert "reductions     do not all show" in card_text(hidden)


@kernel(memory=[box], inputs=lambda P, call, rng: [np.ones(1)] * P, golden=golden.all_reduce)
async def two_tasks(rank, x, box):
    """Do nothing, in two tasks."""

    async def other(rank):
        await rank.load(box[0])

    await rank.join(await rank.start(other))


def test_no_bound_is_claimed_where_a_rank_has_several_tasks():
    assert collective_of(two_tasks) == "all-reduce"
    assert cost(two_tasks, PRICE, ranks=2).bound is None


# Tables.


def test_where_each_algorithm_wins():
    cards = compare("all_reduce", Price(), ranks=[4], sizes=[1024, 1 << 17])
    best = {size: min(made, key=lambda name: made[name].path.seconds) for (_, size), made in cards.items()}
    assert best == {1024: "doubling", 1 << 17: "halving"}
    text = comparison_text("all_reduce", cards)
    lines = text.splitlines()
    assert lines[3].split()[:6] == ["P", "N", "mesh", "ring", "two-phase", "halving"]
    assert re.search(r"^4  131072 .* us \* ", text, re.MULTILINE)
    assert len(lines) == 14


def test_exhibits_are_made_of_the_size_that_is_asked_for():
    for names in ALGORITHMS.values():
        for name in names.values():
            assert cost(resized(locate(name), 4, 4096), PRICE).input_bytes == 4096
    with pytest.raises(MisuseError, match=r"8 bytes are less than one element a row of kernels\.all_reduce:two_phase"):
        resized(locate("all_reduce:two_phase"), 4, 8)
    with pytest.raises(MisuseError, match="its inputs take no size"):
        resized(locate("reduce_scatter:builtin"), 4, 4096)
    with pytest.raises(MisuseError, match="its inputs take no size"):
        resized(only_a_barrier, 4, 4096)
    with pytest.raises(MisuseError, match="there are tables of all_reduce, "):
        algorithms("reduce")


# The command.


def test_a_card_has_a_line_a_rank_and_the_total():
    assert (
        card_text(card("reduce_scatter:builtin", 2))
        == """\
kernels.reduce_scatter:builtin, P = 2, 1 call; N = 512 bytes of input a rank

rank  received B  sent B  messages  notifies  waits  barriers  credits  reduced B  windows B
----  ----------  ------  --------  --------  -----  --------  -------  ---------  ---------
0     256         256     1         2         2      2         2        256        512
1     256         256     1         2         2      2         2        256        512
all   512         512     2         4         4      4         4        512        1024

critical path  3256000.00 us: 3 alpha + 256 beta + 256 gamma
lower bound    1000000.00 us, 3.26 times as long: reduce-scatter takes 1 alpha, 256 beta or 256 gamma a call, \
whichever is most
               alpha = 1 s a message or notify, beta = 0.001 s a byte moved, gamma = 0 s a byte reduced
"""
    )
    assert "2 calls" in card_text(card("reduce_scatter:builtin", 2, calls=2))
    assert "not claimed" in card_text(cost(only_a_barrier, PRICE))
    alone = card_text(card("reduce_scatter:builtin", 1))
    assert "lower bound    0.00 us: reduce-scatter takes 0 alpha" in alone


def test_the_command_prints_cards_and_tables_and_json():
    assert run("cost", "reduce_scatter:builtin", "-P", "2,3").output.count("critical path") == 2
    table = run("cost", "--table", "all_gather", "-P", "2", "--bytes", "64")
    assert table.output.startswith("all_gather: the critical path of one call")
    (made,) = json.loads(run("cost", "all_reduce:mesh", "--alpha", "2", "--json").output)
    assert (made["alpha"], made["bound"]["collective"], made["total"]["received"]) == (2.0, "all-reduce", 12 * 256)
    (other,) = json.loads(run("cost", "all_to_all:v_safe", "--json").output)
    assert other["bound"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give kernels for their cards, or --table"),
        (("reduce_scatter:hand", "--table", "all_reduce"), "give kernels for their cards, or --table"),
        (("reduce_scatter:hand", "-P", "0"), "'0'; give integers of at least 1"),
        (("reduce_scatter:hand", "-P", "two"), "'two'; give integers of at least 1"),
    ],
)
def test_what_cannot_be_computed_is_refused(arguments, words):
    result = run("cost", *arguments)
    assert (result.exit_code, words in result.stderr) == (2, True)


@kernel(memory=[flag])
async def hangs(rank, flag):
    """Wait for nobody."""
    await rank.wait(flag[0] >= 1)


def test_a_run_that_hangs_has_no_card():
    with pytest.raises(MisuseError, match="the run ends in deadlock"):
        cost(hangs, PRICE)
