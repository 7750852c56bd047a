"""Words: elements of a window as cells. They lie in its memory, and every other view of it sees them."""

import numpy as np
import pytest

from asyncsim import And, AtomicAdd, Case, Fifo, KernelError, Max, Set, Window, check, kernel, simulate
from asyncsim.checking.search.cellwise import change_now
from asyncsim.schedulers.random import Random
from asyncsim.trace.conflict import accesses_conflict, conflict
from asyncsim.trace.op import change_by

FLAG = Window("flag", (2, 4), np.uint32, initialised=True)
BYTES = Window("bytes", (32,), np.uint8, over="flag")
HALVES = Window("halves", (16,), np.int16, over="flag")
REAL = Window("real", (4,), np.float32, initialised=True)
MODELS = ("sc", "ldst", "nic")


@pytest.mark.parametrize("model", MODELS)
def test_a_word_and_a_store_of_its_bytes_are_one_memory(model):
    @kernel(memory=[FLAG, BYTES])
    async def one(rank, flag, bytes_):
        await rank.store(bytes_[4], 3)
        seen = await rank.fetch_add(flag.word[0, 1], 2**32 - 1)
        await rank.notify(flag.word[0, 1], 254, Max)
        await rank.quiet()
        return [
            seen,
            int(await rank.load(bytes_[4])),
            int(await rank.load(flag[0, 1])),
            await rank.read(flag.word[0, 1]),
        ]

    report = check(one, ranks=1, calls=1, memory=model)
    assert report.verdict == "EXHAUSTED"
    assert _outputs(one, model) == [3, 254, 254, 254]


def _outputs(made, model, ranks=1):
    return simulate(Case(made, ranks, 1, model), Fifo()).outputs[0][0]


@pytest.mark.parametrize("model", MODELS)
def test_an_actor_sees_its_own_updates_of_a_word_as_its_own_stores(model):
    """Through a network adapter it sees them when they have landed, and what is relaxed may land first."""

    @kernel(memory=[FLAG])
    async def one(rank, flag):
        if rank.id == 0:
            await rank.store(flag.at(1)[0, 0], 8)
            await rank.notify(flag.at(1).word[0, 0], 1, order="relaxed")
            if model == "nic":
                await rank.quiet()
            return [int(await rank.load(flag.at(1)[0, 0])), await rank.read(flag.at(1).word[0, 0])]
        return None

    seen = {tuple(simulate(Case(one, 2, 1, model), Random(seed)).outputs[0][0]) for seed in range(20)}
    assert seen == ({(9, 9), (8, 8)} if model == "nic" else {(9, 9)})


def test_a_word_wraps_as_hardware_does_and_takes_off_by_adding_the_rest():
    @kernel(memory=[FLAG, HALVES])
    async def one(rank, flag, halves):
        await rank.fetch_add(flag.word[0, 0], -1)
        high = await rank.read(flag.word[0, 0])
        await rank.exchange(halves.word[2], 2**15 - 1)
        await rank.notify(halves.word[2], 1)
        await rank.notify(halves.word[3], -1, And)
        return [high, await rank.read(halves.word[2])]

    assert _outputs(one, "sc") == [2**32 - 1, -(2**15)]


def test_a_wait_on_a_word_is_let_pass_by_a_plain_store_which_races_with_it():
    @kernel(memory=[FLAG])
    async def plain(rank, flag):
        if rank.id == 0:
            await rank.store(flag.at(1)[1, 2], 5)
        else:
            await rank.wait(flag.word[1, 2] == 5)

    report = check(plain, ranks=2, calls=1, memory="sc")
    assert [finding.kind for finding in report.findings] == ["race"]


def test_a_word_that_orders_is_no_race_and_one_that_orders_nothing_is():
    def made(*, order):
        @kernel(memory=[FLAG, REAL])
        async def pair(rank, flag, real):
            if rank.id == 0:
                await rank.store(real.at(1)[0:4], np.ones(4, np.float32))
                await rank.notify(flag.at(1).word[0, 0], 1)
                return None
            if order:
                await rank.wait(flag.word[0, 0] >= 1, then=Set(0))
            return (await rank.load(real[0:4])).tolist()

        return pair

    assert check(made(order=True), ranks=2, calls=1, memory="sc").verdict == "PROVED"
    assert check(made(order=False), ranks=2, calls=1, memory="sc").verdict == "REFUTED"


def test_reading_a_word_that_nobody_wrote_is_told():
    empty = Window("empty", (1,), np.int32)

    @kernel(memory=[empty])
    async def early(rank, empty):
        await rank.fetch_add(empty.word[0], 1)
        await rank.read(empty.word[0])

    run = simulate_recorded(early)
    assert [event.unwritten for event in run.trace.events] == [True, False]


def simulate_recorded(made):
    return simulate(Case(made, 1, 1), Fifo(), record="words")


def test_two_words_are_told_apart_and_a_word_is_told_from_data():
    @kernel(memory=[FLAG])
    async def one(rank, flag):
        await rank.notify(flag.word[0, 0], 1)
        await rank.read(flag.word[0, 0])
        await rank.read(flag.word[0, 1])
        await rank.load(flag[0, 0])
        await rank.notify(flag.word[0, 0], 1)

    add, read, other, load, again = (event.op for event in simulate_recorded(one).trace.events)
    seen = [conflict(add, each) for each in (read, other, load, again)]
    assert seen == [True, False, True, False]
    assert not accesses_conflict(add.accesses[0], read.accesses[0])
    assert change_by(read) is None
    assert change_now(add) == ("AtomicAdd", 1)


MISTAKES = {
    "real.word[0]": "a word is an integer, and window 'real' holds float32",
    "flag.word[0]": ".word[...] is one element, an offset a dimension; this has shape (4,)",
    "flag.word[2, 0]": "offset 2 is outside dimension 0",
    "flag.word[0, 0] and halves.word[0]": "share bytes; synchronise on one of them",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_what_is_no_word_is_refused(text):
    @kernel(memory=[FLAG, HALVES, REAL])
    async def wrong(rank, flag, halves, real):
        await rank.read(eval(text, {"rank": rank, "flag": flag, "halves": halves, "real": real}))  # noqa: S307 - of this file

    with pytest.raises(KernelError) as caught:
        simulate_recorded(wrong)
    assert MISTAKES[text] in str(caught.value)


def test_a_put_with_signal_takes_a_signal():
    @kernel(memory=[FLAG, REAL])
    async def wrong(rank, flag, real):
        await rank.put_signal(real.at(0)[0], real[0], flag.word[0, 0], 1, AtomicAdd)

    with pytest.raises(KernelError, match="notifies no word"):
        simulate_recorded(wrong)


def test_a_word_that_nobody_wrote_is_a_finding():
    empty = Window("empty", (1,), np.int32)

    @kernel(memory=[empty])
    async def early(rank, empty):
        return await rank.fetch_add(empty.word[0], 1)

    report = check(early, ranks=1, calls=1, memory="sc")
    assert [finding.kind for finding in report.findings] == ["unwritten-read"]
    assert report.verdict == "REFUTED"
