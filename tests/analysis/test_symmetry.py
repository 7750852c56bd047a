"""One rank's frontiers speak for all where the ranks are rotations of one another, and only there."""

from __future__ import annotations

import pytest
from programs import FAMILIES, kernel_of, program_number
from runs import RandomSchedule

import kernels.dissemination_barrier
import kernels.ring
from asyncsim import Case, Fifo, Kernel, Signal, Window, kernel, simulate
from asyncsim.analysis.edges import edges_of
from asyncsim.analysis.frontiers import Frontiers
from asyncsim.analysis.guards import Guards
from asyncsim.analysis.streams import Streams

x = Window("x", (1,), initialised=True)
count = Signal("count", (1,))


@kernel(memory=[x, count])
async def counting(rank, x, count, *, reset=True, late=-1):
    """Every rank tells all others on one counter, in rotated order, and takes its credits back."""
    for step in range(1, rank.size):
        await rank.load(x.at((rank.id + step) % rank.size)[0])
        await rank.notify(count.at((rank.id + step) % rank.size)[0], 1)
    if rank.id != late:
        await rank.wait(count[0] >= rank.size - 1)
    await rank.store(x[0], 1.0)
    if reset:
        await rank.notify(count[0], 1 - rank.size)


def frontiers(streams, *, symmetric):
    with pytest.MonkeyPatch.context() as patch:
        if not symmetric:
            patch.setattr("asyncsim.analysis.frontiers.is_rotation", lambda *_: False)
        return Frontiers(streams, Guards(streams), edges_of(streams))


def assert_same(case, scheduler):
    streams = Streams(simulate(case, scheduler, record="any").trace)
    one, each = (frontiers(streams, symmetric=symmetric) for symmetric in (True, False))
    for actor, stream in enumerate(streams.events):
        for index in range(len(stream) + 1):
            for other in range(len(streams.events)):
                assert one.reach(actor, index, other) == each.reach(actor, index, other)
    return one.rotated


KERNELS = [
    made
    for module in (kernels.ring, kernels.dissemination_barrier)
    for made in vars(module).values()
    if isinstance(made, Kernel)
]


@pytest.mark.parametrize("given", [counting, counting.variant(reset=False), *KERNELS], ids=lambda made: made.ref)
def test_the_passes_of_one_rank_give_the_frontiers_of_all(given):
    rotated = [assert_same(Case(given, ranks), Fifo()) for ranks in (2, 3, 4, 5)]
    if given in (counting, *KERNELS[:1]):
        assert all(rotated)


def test_symmetry_is_used_whatever_the_run():
    for seed in range(5):
        assert assert_same(Case(counting, 4), RandomSchedule(seed))


def test_one_rank_that_differs_ends_it():
    assert not assert_same(Case(counting.variant(late=0), 3), Fifo())


def test_ascending_peers_are_no_rotation():
    @kernel(memory=[x, count])
    async def ascending(rank, x, count):
        for peer in rank.peers:
            await rank.notify(count.at(peer)[0], 1)
        await rank.wait(count[0] >= rank.size - 1)

    assert not assert_same(Case(ascending, 4), Fifo())
    assert assert_same(Case(ascending, 2), Fifo())


@pytest.mark.parametrize("family", FAMILIES)
def test_random_programs_have_the_same_frontiers_with_and_without(family):
    for number in range(8):
        program = program_number(family, number)
        assert_same(Case(kernel_of(program), len(program.actors), program.calls), RandomSchedule(number))
