"""What a kernel has in Python beside its windows: outputs, inputs, what its streams share, and its rank."""

import numpy as np
import pytest
from command import ctrl_c

from asyncsim import Case, KernelError, MisuseError, Signal, Window, barrier, check, explore, kernel, settle, simulate
from asyncsim.schedulers.fifo import Fifo

ROW = Window("row", (4,), np.int32, initialised=True)
SIGNAL = Signal("signal", ("P", 1))


def numbers(ranks, call, rng):
    return [rng.integers(1, 100, 1).astype(np.int32) for _ in range(ranks)]


def exchange(kept, *, again):
    """Return a kernel that gives the same array in every call, or a fresh one; `again`: with the barrier it needs."""

    @kernel(memory=[ROW, SIGNAL], inputs=numbers, golden=lambda xs: [xs[-1], *xs[:-1]])
    async def program(rank, x, row, signal):
        await rank.store(row[0], x[0])
        await barrier(rank, signal)
        value = await rank.load(row.at((rank.id - 1) % rank.size)[0])
        if again:
            await barrier(rank, signal, generation=2)
        await settle(rank, signal, credits=1 + again)
        out = kept.setdefault(rank.id, np.zeros(1, np.int32)) if kept is not None else np.zeros(1, np.int32)
        out[0] = value
        return out

    return program


@pytest.mark.parametrize("kept", [None, {}], ids=["fresh", "kept"])
def test_an_output_is_what_it_was_when_it_was_returned(kept):
    report = check(exchange(kept, again=True), ranks=2)
    if kept is None:
        assert report.verdict == "PROVED"
    else:  # what is kept might be read in the next call: nothing is proved, and nothing is wrong
        assert report.verdict == "SURVIVED"
        assert "kept of program" in report.findings[0].why


@pytest.mark.parametrize("kept", [None, {}], ids=["fresh", "kept"])
def test_a_race_does_its_harm_to_an_array_that_the_next_call_uses_again(kept):
    report = check(exchange(kept, again=False), ranks=2)
    assert report.verdict == "REFUTED"
    assert report.findings[0].kind == "race"


@pytest.mark.parametrize("make", [lambda x: {"a": x}, lambda x: bytearray(x.tobytes())], ids=["dict", "bytearray"])
def test_whatever_an_input_is_each_run_gets_a_copy(make):
    @kernel(memory=[ROW], inputs=lambda ranks, call, rng: [make(x) for x in numbers(ranks, call, rng)])
    async def program(rank, x, row):
        key = "a" if isinstance(x, dict) else 0
        was = int(x[key]) if isinstance(x, bytearray) else int(x[key][0])
        x[key] = 0 if isinstance(x, bytearray) else x[key] * 0
        await rank.store(row[0], was)
        return was

    assert check(program, ranks=2).verdict == "PROVED"


class Table:
    """An input of the user's own making."""

    def __init__(self):
        """Hold a zero."""
        self.value = 0


def test_an_input_may_be_an_object_of_the_users_own():
    @kernel(memory=[ROW], inputs=lambda ranks, call, rng: [Table() for _ in range(ranks)])
    async def program(rank, x, row):
        x.value += 1
        await rank.store(row[0], x.value)
        return x.value

    assert check(program, ranks=2).verdict == "PROVED"


def test_an_input_that_cannot_be_copied_is_refused():
    @kernel(memory=[ROW], inputs=lambda ranks, call, rng: [(n for n in range(2)) for _ in range(ranks)])
    async def program(rank, x, row):
        await rank.store(row[0], 1)

    with pytest.raises(MisuseError, match="an input of type generator cannot be copied"):
        simulate(Case(program, 2, 1), Fifo())


def appends(rank, row):
    box = []

    async def stream(rank, number):
        await rank.load(row[0])
        box.append(number)
        await rank.load(row[1])

    return box, stream


@kernel(memory=[ROW], inputs=numbers)
async def streams_share_a_list(rank, x, row):
    box, stream = appends(rank, row)
    started = [await rank.start(stream, number) for number in (1, 2)]
    for one in started:
        await rank.join(one)
    return np.array(box)


@kernel(memory=[ROW], inputs=numbers)
async def a_stream_stores_what_its_parent_changes(rank, x, row):
    async def stream(rank):
        for _ in range(8):
            await rank.load(row[0])
        await rank.store(row[1], x[0])

    started = await rank.start(stream)
    await rank.load(row[0])
    x[0] = 7
    await rank.join(started)
    return await rank.load(row[1])


@kernel(memory=[ROW, Signal("flag", (1,))], inputs=numbers)
async def undecided_streams_share_a_list(rank, x, row, flag):
    """A test of a cell decides nothing here, but takes the kernel out of the theory."""
    if rank.id == 0 and rank.size > 1:
        await rank.notify(flag.at(1)[0])
    await rank.test(flag[0] >= 1)
    box, stream = appends(rank, row)
    started = [await rank.start(stream, number) for number in (1, 2)]
    for one in started:
        await rank.join(one)
    return np.array(box)


@pytest.mark.parametrize(
    "program", [streams_share_a_list, a_stream_stores_what_its_parent_changes, undecided_streams_share_a_list]
)
def test_streams_that_share_an_object_are_not_proved(program):
    report = check(program, ranks=2, calls=1)
    assert report.verdict == "REFUTED"
    assert report.findings[0].kind in {"hidden-state", "wrong-result"}


@kernel(memory=[ROW], inputs=numbers)
async def streams_apart(rank, x, row):
    async def stream(rank, at):
        await rank.store(row[at], x[0])
        return await rank.load(row[at])

    started = [await rank.start(stream, at) for at in (1, 2)]
    return np.array([await rank.join(one) for one in started])


def test_a_proof_of_streams_says_what_it_takes_for_granted():
    report = check(streams_apart, ranks=2, calls=1)
    assert report.verdict == "PROVED"
    assert "if the streams of a rank share no Python object (none shows in 16 further schedules)" in report.scope
    assert "share no Python object" not in check(exchange(None, again=True), ranks=2).scope


@kernel(memory=[ROW, Signal("flag", (1,))], inputs=numbers)
async def uses_the_rank_of_its_parent(rank, x, row, flag):
    async def stream(_):
        await rank.store(row[0], x[0])

    started = await rank.start(stream)
    await rank.join(started)
    return await rank.load(row[0])


@pytest.mark.parametrize("engine", ["trio", "direct"])
@pytest.mark.parametrize("calls_of", [check, explore])
def test_a_stream_that_uses_the_rank_of_its_parent_is_refused_at_its_line(calls_of, engine):
    with pytest.raises(KernelError, match=r"test_private_objects\.py:\d+ .*actor 0\.1 awaits an operation of actor 0;"):
        calls_of(uses_the_rank_of_its_parent, ranks=2, engine=engine)


class Odd(BaseException):
    """No exception that anybody should raise."""


@pytest.mark.parametrize("engine", ["trio", "direct"])
@pytest.mark.parametrize("error", [Odd, GeneratorExit, SystemExit])
def test_whatever_a_kernel_raises_is_told_with_its_line(error, engine):
    @kernel(memory=[ROW], inputs=numbers)
    async def program(rank, x, row):
        await rank.load(row[0])
        raise error

    with pytest.raises(
        KernelError, match=rf"rank 0 failed in call 0 at .*test_private_objects\.py:\d+ .*{error.__name__}"
    ):
        simulate(Case(program, 2, 1), Fifo(), engine=engine)


@pytest.mark.parametrize("engine", ["trio", "direct"])
def test_ctrl_c_in_a_kernel_is_nobodys_mistake(engine):
    @kernel(memory=[ROW], inputs=numbers)
    async def program(rank, x, row):
        await rank.load(row[0])
        ctrl_c()

    with pytest.raises(KeyboardInterrupt):
        simulate(Case(program, 2, 1), Fifo(), engine=engine)
