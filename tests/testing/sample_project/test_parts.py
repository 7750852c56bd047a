"""Parts of one's own, against the rules that asyncsim's parts keep."""

from shift import shift

from asyncsim import Signal, Window, all_reduce, golden
from asyncsim.testing import check_collective, check_kernel, check_scheduler


class LastFirst:
    """A scheduler: of the actors that can go on, the last one."""

    def begin(self, actors):
        """There is nothing to forget."""

    def choose(self, ready):
        """Return one of the operations that are offered."""
        return ready[-1]


async def mesh(rank, x, data, signal):
    """Stage, do the collective, return the result."""
    await rank.store(data[...], x)
    await all_reduce(rank, data, signal)
    return await rank.load(data[...])


def test_the_scheduler_keeps_the_rules():
    check_scheduler(LastFirst)


def test_the_kernel_keeps_the_rules():
    check_kernel(shift, ranks=[1, 2, 3, 5])


def test_the_collective_keeps_the_rules():
    check_collective(
        mesh,
        memory=[Window("data", (1, "P")), Signal("signal", ("P", 1), self_cleaning=True)],
        shape=(1, "SIZE"),
        golden=golden.all_reduce,
        ranks=[1, 2, 3],
    )
