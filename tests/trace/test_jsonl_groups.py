"""Traces of kernels on groups: they come back, replay, and are analysed as the run itself; others are refused."""

import json

import numpy as np
import pytest
from everything import read, written
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncsim import DivergenceError, Group, Signal, TraceError, Window, barrier, kernel, settle, simulate
from asyncsim.analysis.analyse import analyse
from asyncsim.checking.record.replay import replay
from asyncsim.checking.verdict.check import check
from asyncsim.machine.case import Case
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.random import Random
from asyncsim.trace.jsonl import read_trace
from asyncsim.trace.world import World

SIZE = 2
ends = Group("ends", lambda P: (P - 1, 0))
middle = Group("middle", (1,))


def kernel_on(group, *, meet_again=False):
    """Return a kernel in which the members of a group gather, beside memory of the world and of a third rank."""

    @kernel(
        memory=[
            Window("data", ("P", SIZE), group=group),
            Signal("signal", ("P", 1), self_cleaning=True, group=group),
            Window("all", (1,), np.int32),
            Signal("own", (1,), np.int8, group=middle),
        ]
    )
    async def gather(rank, data, signal, every, own):
        await rank.store(every[0], rank.id)
        if rank.id in middle.members(rank.size):
            await rank.notify(own[0], 1)
        if rank.id not in group.members(rank.size):
            return None
        team = rank.within(group)
        for peer in range(team.size):
            await team.store(data.at(peer)[team.id], rank.call + np.arange(SIZE, dtype=np.float32))
        await barrier(team, signal)
        out = await team.load(data[:])
        if meet_again:
            await barrier(team, signal, generation=2)
        await settle(team, signal, credits=1 + meet_again)
        return out

    return gather


racy, right = kernel_on(ends), kernel_on(ends, meet_again=True)


def trace_of(program=racy, scheduler=None, memory="sc"):
    """Return the trace of two calls on three ranks."""
    return simulate(Case(program, 3, 2, memory), scheduler or Fifo(), record="fifo").trace


TRACE = trace_of()
TEXT = written(TRACE)
PLAIN = [
    "".join((json.dumps({k: v for k, v in json.loads(line).items() if k != "crc"}), "\n")) for line in TEXT.splitlines()
]
"""The same without sums, so that a test can change a line and nothing else stops it."""


def changed(line, old, new):
    """Return the text with a change in one line, counted from 1."""
    assert old in PLAIN[line - 1]
    return "".join((*PLAIN[: line - 1], PLAIN[line - 1].replace(old, new, 1), *PLAIN[line:]))


def step_line(kind, place):
    """Return the number of the first line with this operation on this window or signal."""
    return 1 + next(n for n, line in enumerate(PLAIN) if f'"op": "{kind}"' in line and f'": "{place}"' in line)


# They come back.


def test_the_header_says_who_belongs_together():
    header = json.loads(TEXT.splitlines()[0])
    assert header["groups"] == [{"name": "ends", "ranks": [2, 0]}, {"name": "middle", "ranks": [1]}]
    assert [item.get("group") for item in header["declarations"]] == ["ends", "ends", None, "middle"]


def test_the_world_is_rebuilt():
    old, new = TRACE.header.world, read(TEXT).header.world
    assert new.groups == old.groups == {"world": (0, 1, 2), "ends": (2, 0), "middle": (1,)}
    for name, layout in old.layouts.items():
        again = new.layouts[name]
        assert (again.shape, again.members, again.group, again.first_slot) == (
            layout.shape, layout.members, layout.group, layout.first_slot,
        )  # fmt: skip
    assert str(new.views(0)[0].at(0)[1]) == "data[1, 0:2]@2"


@given(st.integers(0, 1 << 16), st.sampled_from(["sc", "ldst", "nic", "ldst:atom=1"]))
@settings(max_examples=20)
def test_every_run_comes_back(seed, memory):
    text = written(trace_of(right, Random(seed), memory))
    assert written(read(text)) == text


def test_a_group_that_only_counts_ranks_is_not_in_the_header():
    @kernel(memory=[Window("data", (1,), np.int32)])
    async def counting(rank, data):
        if rank.id != 1:
            await rank.store(data[0], rank.within(ends).id)

    trace = trace_of(counting)
    assert "ends" in trace.header.world.groups
    assert '"groups":[]' in written(trace)
    assert written(read(written(trace))) == written(trace)


# They replay, and are analysed.


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic"])
@pytest.mark.parametrize("program", [racy, right])
def test_a_trace_from_a_file_replays(program, memory):
    text = written(trace_of(program, Random(3), memory))
    assert written(replay(read(text), program).run.trace) == text


@pytest.mark.parametrize("program", [racy, right])
def test_the_analysis_of_a_file_is_that_of_the_run(program):
    trace = trace_of(program)
    live, read_back = analyse(trace), analyse(read(written(trace)))
    assert live.findings == read_back.findings
    assert (live.race_pairs, live.clean, live.exact) == (read_back.race_pairs, read_back.clean, read_back.exact)
    assert bool(live.findings) == (program is racy)


async def test_a_witness_on_a_group_is_kept_and_replays(tmp_path):
    report = await check.aio(racy, ranks=3, save=tmp_path)
    (race,) = report.findings
    assert race.title == "WAR race, next call"
    trace = read_trace(race.trace)
    again = await replay.aio(trace, racy)
    assert written(again.run.trace) == written(trace)


def test_other_members_are_a_divergence():
    other = kernel_on(Group("ends", (0, 2)))
    with pytest.raises(DivergenceError, match=r"the list of groups differs; recorded: .*\[2, 0\].* met: .*\[0, 2\]"):
        replay(read(TEXT), other)


def test_the_same_members_by_another_rule_are_no_divergence():
    assert World(3, kernel_on(Group("ends", (2, 0))).memory).groups == TRACE.header.world.groups


# What cannot be is refused, with line and reason.

GROUPS = '"groups": [{"name": "ends", "ranks": [2, 0]}, {"name": "middle", "ranks": [1]}]'
HEADER_FAULTS = [
    (GROUPS, '"groups": {}', "'groups' is {}; it must be a list"),
    (GROUPS, '"groups": [1]', "a group is 1; it must be an object"),
    (GROUPS, '"groups": []', "the header knows no group 'ends'"),
    ('"ranks": [2, 0]', '"ranks": [3, 0]', "a member is 3; it must be an integer, 0 to 2"),
    ('"ranks": [2, 0]', '"ranks": [-1, 0]', "a member is -1; it must be an integer, 0 to 2"),
    ('"ranks": [2, 0]', '"ranks": [true, 0]', "a member is True; it must be an integer, 0 to 2"),
    ('"ranks": [2, 0]', '"ranks": ["2", 0]', "a member is '2'; it must be an integer, 0 to 2"),
    ('"ranks": [2, 0]', '"ranks": [2, 2]', "group 'ends': (2, 2) are no members; name at least one rank, each once"),
    ('"ranks": [2, 0]', '"ranks": []', "group 'ends': () are no members"),
    ('"ranks": [2, 0]', '"ranks": 2', "'ranks' is 2; it must be a list"),
    (', "ranks": [2, 0]', "", "a group has no 'ranks'"),
    ('"name": "ends"', '"name": "middle"', "two groups are called 'middle'"),
    ('"name": "ends"', '"name": "world"', "a group is called 'world', as all ranks together are"),
    ('"name": "ends"', '"name": "a b"', "a group needs a name that is an identifier"),
    ('"name": "ends"', '"name": 7', "'name' is 7; it must be a text"),
    ('"name": "ends"', '"name": "ends", "size": 2', "a group has a field 'size' that does not belong there"),
    ('"group": "ends"', '"group": "world"', "the header knows no group 'world'"),
    ('"group": "ends"', '"group": null', "'group' is None; it must be a text"),
    ('"group": "middle"', '"group": "ends"', "group 'middle' owns nothing"),
]


@pytest.mark.parametrize(("old", "new", "reason"), HEADER_FAULTS)
def test_a_header_with_groups_that_cannot_be_is_refused(old, new, reason):
    with pytest.raises(TraceError) as caught:
        read(changed(1, old, new))
    assert reason in caught.value.reason
    assert caught.value.line == 1


STEP_FAULTS = [
    ("store", "data", '"owner": 2', '"owner": 1', "data is of group 'ends' (ranks 2, 0); rank 1 owns no part of it"),
    ("notify", "signal", '"owner": 2', '"owner": 1', "signal is of group 'ends' (ranks 2, 0); rank 1 owns no part"),
    ("notify", "own", '"owner": 1', '"owner": 2', "own is of group 'middle' (ranks 1); rank 2 owns no part of it"),
    ("notify", "own", '"rank": 1, "actor": "1"', '"rank": 0, "actor": "0"', "(ranks 1); rank 0 cannot touch it"),
    ("store", "data", '"owner": 2', '"owner": 3', "'owner' is 3; it must be an integer, 0 to 2"),
]


@pytest.mark.parametrize(("kind", "place", "old", "new", "reason"), STEP_FAULTS)
def test_a_step_outside_a_group_is_refused(kind, place, old, new, reason):
    line = step_line(kind, place)
    with pytest.raises(TraceError) as caught:
        read(changed(line, old, new))
    assert reason in caught.value.reason
    assert caught.value.line == line


leaves = st.none() | st.booleans() | st.integers(-2, 4) | st.sampled_from(["ends", "middle", "world", ""])


@given(st.data())
@settings(max_examples=200)
def test_a_changed_header_is_refused_or_gives_a_trace(data):
    line = json.loads(PLAIN[0])
    holder = line[data.draw(st.sampled_from(["groups", "declarations"]))]
    holder = data.draw(st.sampled_from(holder))
    key = data.draw(st.sampled_from([*sorted(holder), "group"]))
    holder[key] = data.draw(leaves | st.lists(leaves, max_size=3))
    text = "".join((json.dumps(line), "\n", *PLAIN[1:]))
    try:
        trace = read(text)
    except TraceError:
        return
    assert written(read(written(trace))) == written(trace)
