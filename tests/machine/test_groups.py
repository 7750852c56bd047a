"""Groups: some of the ranks with numbers of their own, and memory that is theirs alone."""

import numpy as np
import pytest

from asyncsim import RAW, WAR, Group, MisuseError, Signal, Window, World, barrier, kernel, settle, simulate
from asyncsim.checking.verdict.check import check
from asyncsim.machine.case import Case
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.errors import KernelError

SIZE = 2

ends = Group("ends", (0, 2))
evens = Group("evens", lambda P: range(0, P, 2))
backwards = Group("backwards", lambda P: range(P - 1, -1, -1))


def rows(P, call, rng):
    return [rng.standard_normal(SIZE, np.float32) for _ in range(P)]


def of_members(group):
    """Return the golden of an all-gather within a group; nothing for the others."""

    def golden(xs):
        members = group.members(len(xs))
        every = np.stack([xs[member] for member in members])
        return [every if rank in members else None for rank in range(len(xs))]

    return golden


def gather_within(group, *, meet_again=True, finds=()):
    """Return an all-gather of a group, which the other ranks sit out."""
    data = Window("data", ("P", SIZE), group=group)
    signal = Signal("signal", ("P", 1), self_cleaning=True, group=group)

    @kernel(memory=[data, signal], inputs=rows, golden=of_members(group), finds=finds)
    async def gather(rank, x, data, signal):
        if rank.id not in group.members(rank.size):
            return None
        team = rank.within(group)
        for peer in range(team.size):
            await team.store(data.at(peer)[team.id], x)
        await barrier(team, signal)
        out = await team.load(data[:])
        if meet_again:
            await barrier(team, signal, generation=2)
        await settle(team, signal, credits=1 + meet_again)
        return out

    return gather


@pytest.mark.parametrize("group", [ends, evens, backwards], ids=lambda group: group.name)
@pytest.mark.parametrize("ranks", [3, 4, 5])
async def test_composites_work_on_a_group_as_they_are(group, ranks):
    report = await check.aio(gather_within(group), ranks=ranks)
    assert (report.verdict, report.findings) == ("PROVED", [])


async def test_a_race_within_a_group_is_told_in_ranks_of_the_world():
    report = await check.aio(gather_within(ends, meet_again=False), ranks=3)
    (race,) = report.findings
    assert WAR("next call").matches(race)
    assert race.harmful
    assert {side.rank for side in race.sides} == {0, 2}
    assert "@2" in race.sides[0].region or "@0" in race.sides[0].region


def test_members_have_numbers_of_their_own_and_others_own_nothing():
    world = World(4, [Window("data", ("P", SIZE), group=evens), Signal("signal", ("P",), group=evens)])
    assert world.groups == {"world": (0, 1, 2, 3), "evens": (0, 2)}
    data, signal = world.views(2)
    assert (data.shape, signal.shape) == ((2, SIZE), (2,))
    assert str(data.at(0)[1]) == "data[1, 0:2]@0"
    assert str(data[0]) == "data[0, 0:2]@2"
    assert str(signal.at(1)[0]) == "signal[0]@2"


def test_arrays_are_made_for_members_alone():
    run = simulate(Case(gather_within(ends), 4), Fifo())
    assert [array.size for array in run.windows] == [4, 0, 4, 0]


@kernel(memory=[Window("seen", (1,), np.int32)])
async def numbers(rank, seen):
    """Return what a rank is called in the world and in the group."""
    await rank.store(seen[0], rank.id)
    team = rank.within(backwards)
    return str((rank.id, rank.size, rank.peers, rank.group, team.id, team.size, team.peers, team.group, team.members))


def test_a_member_knows_its_number_and_its_peers():
    run = simulate(Case(numbers, 3, 1), Fifo())
    assert run.outputs[0][0] == str((0, 3, (1, 2), "world", 2, 3, (0, 1), "backwards", (2, 1, 0)))


def test_phases_streams_and_calls_go_on_within_a_group():
    async def work(rank, data):
        await rank.store(data[0], rank.id + 10 * rank.call)

    @kernel(memory=[Window("data", (1,), np.int32, group=ends)])
    async def busy(rank, data):
        if rank.id == 1:
            return
        team = rank.within(ends)
        with rank.phase("outer"), team.phase("inner"):
            first = await team.start(work, data)
            await team.join(first)
            second = await rank.start(work, data)
            await team.join(second)
            await team.load(data[0])

    run = simulate(Case(busy, 3, 2), Fifo(), record="fifo")
    assert {event.op.actor.name for event in run.trace.events if event.op.kind == "store"} == {
        "0.1", "0.2", "0.3", "0.4", "2.1", "2.2", "2.3", "2.4",
    }  # fmt: skip
    loads = [event for event in run.trace.events if event.op.kind == "load"]
    assert {(event.phase, event.call) for event in loads} == {("outer/inner", 0), ("outer/inner", 1)}
    assert {bytes(event.data)[0] for event in loads} == {0, 2, 10, 12}


async def test_memory_may_be_shared_between_the_world_and_a_group_on_purpose():
    pads = Signal("pads", ("P",))
    box = Window("box", (1,))

    @kernel(memory=[box, pads], finds=RAW("same call"))
    async def shared(rank, box, pads):
        if rank.id != 1:
            team = rank.within(ends)
            for member in team.members:
                if member != rank.id:  # world memory counts in ranks of the world
                    await team.store(box.at(member)[0], 1)
                    await team.notify(pads.at(member)[team.id], 1)
            await team.wait(pads[1 - team.id] >= 1)
            await team.load(box[0])

    report = await check.aio(shared, ranks=3, calls=1)
    assert (report.verdict, report.findings) == ("PROVED", [])


# Collectives are compared within their group.


async def test_a_collective_of_a_group_concerns_its_members_alone():
    def calling(*names):
        @kernel(memory=[Signal("signal", (1,))])
        async def program(rank, signal):
            if rank.id != 1:
                rank.within(ends).collective(names[rank.id // 2])
            rank.collective("all", root=0)
            await rank.notify(signal[0], 1)

        return program

    assert (await check.aio(calling("gather", "gather"), ranks=3, calls=1)).verdict == "PROVED"
    (mismatch,) = (await check.aio(calling("gather", "reduce"), ranks=3, calls=1)).findings
    assert mismatch.kind == "call-mismatch"
    assert "on all ranks of group 'ends'" in mismatch.why
    assert "rank 0 calls gather()" in mismatch.why
    assert "rank 2 calls reduce()" in mismatch.why


# Mistakes.


def touching(touch):
    @kernel(memory=[Window("data", (1,), group=ends), Signal("signal", (1,), group=ends)])
    async def program(rank, data, signal):
        if rank.id == 1:
            await touch(rank, data, signal)

    return program


@pytest.mark.parametrize(
    ("touch", "said"),
    [
        (
            lambda rank, data, signal: rank.load(data[0]),
            r"data\[\.\.\.\] belongs to group 'ends', whose members are the ranks 0, 2",
        ),
        (lambda rank, data, signal: rank.load(data.at(0)[0]), r"data\.at\(0\) belongs to group 'ends'"),
        (lambda rank, data, signal: rank.notify(signal.at(0)[0], 1), r"signal\.at\(0\) belongs to group 'ends'"),
        (lambda rank, data, signal: rank.load(data), r"got all of 'data'; index it"),
        (lambda rank, data, signal: rank.within(ends).load(data[0]), r"rank 1 is no member of group 'ends'"),
        (lambda rank, data, signal: rank.within("ends").load(data[0]), r"'ends' is no group; declare one"),
    ],
)
def test_a_rank_outside_cannot_touch_a_groups_memory(touch, said):
    with pytest.raises(KernelError, match=said):
        simulate(Case(touching(touch), 3, 1), Fifo())


def test_a_rank_outside_may_look_at_names_and_shapes():
    data, signal = World(3, [Window("data", ("P",), group=ends), Signal("signal", ("P",), group=ends)]).views(1)
    assert (data.name, data.shape, signal.name, signal.shape) == ("data", (2,), "signal", (2,))


def test_a_peer_is_a_number_of_the_group():
    data, _ = World(3, [Window("data", ("P",), group=ends), Signal("signal", ("P",))]).views(2)
    with pytest.raises(MisuseError, match=r"rank 2: data\.at\(2\); peers are the ranks 0 to 1"):
        data.at(2)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Group("world", (0, 1)), "a group is called 'world', as all ranks together are"),
        (lambda: Group("a pair", (0, 1)), "a group needs a name that is an identifier"),
        (lambda: Group("pair", ()), "name at least one rank, each once"),
        (lambda: Group("pair", (0, 0)), "name at least one rank, each once"),
        (lambda: Group("pair", (0, -1)), "are no members"),
        (lambda: Group("pair", (0, True)), "are no members"),
        (lambda: Group("pair", "01"), "are no members"),
        (lambda: Group("pair", 2), "group 'pair': 2 are no members"),
        (lambda: Group("pair", lambda P: []).members(2), "name at least one rank, each once"),
        (lambda: Window("data", (1,), group="pair"), "window 'data': group='pair'; give a Group"),
        (lambda: Signal("signal", (1,), group=(0, 1)), r"signal 'signal': group=\(0, 1\); give a Group"),
        (lambda: World(2, [Window("data", (1,), group=ends)]), "group 'ends' has rank 2; there are the ranks 0 to 1"),
        (
            lambda: World(2, [Window("a", (1,), group=Group("g", (0,))), Window("b", (1,), group=Group("g", (1,)))]),
            "two groups are called 'g'",
        ),
    ],
)
def test_what_is_no_group_is_refused(make, said):
    with pytest.raises(MisuseError, match=said):
        make()
