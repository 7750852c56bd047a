"""Under ``gpu`` a read may return an older version: what is allowed, what is not, and that it is said and replayed."""

import io
from itertools import pairwise

import pytest
import trio

from asyncsim import Case, Fifo, Kernel, MisuseError, Set, Signal, Window, check, kernel, replay, simulate
from asyncsim.checking.search.older import OlderVersionsSearch
from asyncsim.trace.jsonl import write_trace
from asyncsim.trace.jsonl_read import read_trace
from asyncsim.trace.late import model_of, with_old_reads
from asyncsim.trace.token import decode

MEMORY = [Window("x", (2,), "int64"), Signal("f", (2,))]


def threads(*programs, result=max, right=0, blocks=("", "", "", "")) -> Kernel:
    """Return a kernel whose one rank runs programs as streams and returns what `result` makes of what they return."""

    @kernel(memory=MEMORY, inputs=lambda P, call, rng: [0] * P, golden=lambda xs: [right] * len(xs))
    async def streams(rank, _, x, f):
        await rank.store(x[0], 0)
        await rank.store(x[1], 0)
        started = [await rank.start(run, x, f, block=block) for run, block in zip(programs, blocks, strict=False)]
        return int(result([await rank.join(stream) for stream in started]))

    return streams


def message(release=None, acquire=None, scope=None, blocks=("", "")):
    """Return a kernel that passes a message, and returns whether it was missed."""

    async def send(rank, x, f):
        await rank.store(x[0], 1)
        await rank.notify(f[0], order=release or "release", scope=scope)
        return 0

    async def receive(rank, x, f):
        await rank.wait(f[0] >= 1, order=acquire, scope=scope)
        return 1 - int(await rank.load(x[0]))

    return threads(send, receive, blocks=blocks)


@pytest.mark.parametrize(
    ("release", "acquire", "scope", "blocks", "verdict"),
    [
        ("release", "acquire", None, ("", ""), "PROVED"),
        ("relaxed", "acquire", None, ("", ""), "REFUTED"),
        ("release", "relaxed", None, ("", ""), "REFUTED"),
        ("release", "acquire", "block", ("", ""), "REFUTED"),
        ("release", "acquire", "block", ("b", "b"), "EXHAUSTED"),
        ("release", "acquire", "rank", ("", ""), "EXHAUSTED"),
    ],
)
def test_a_message_is_seen_if_a_release_is_acquired_by_scopes_that_include_each_other(
    release, acquire, scope, blocks, verdict
):
    report = check(message(release, acquire, scope, blocks), ranks=1, calls=1, memory="gpu")
    assert report.verdict in {verdict, "PROVED" if verdict == "EXHAUSTED" else verdict}
    assert check(message(release, acquire, scope, blocks), ranks=1, calls=1, memory="sc").verdict == "PROVED"


def test_the_witness_names_the_read_that_returns_an_older_version_and_replays():
    unseen = message("relaxed")
    found = next(each for each in check(unseen, ranks=1, calls=1, memory="gpu").findings if each.token)
    again = replay(decode(found.token), unseen)
    assert again.run.outputs == [[1]]
    assert again.run.case.memory == "gpu:old=0.2#1"


def ends(made: Kernel) -> set[int]:
    """Return all that a kernel of one rank can return under ``gpu``."""
    found = set()

    class Silent:
        steps = 100

        def digests(self, run):
            return [[str(run.outputs)]]

        def findings(self, run):
            return []

    search = OlderVersionsSearch(
        Case(made, 1, calls=1, memory="gpu"), Silent(), lambda run: found.add(run.outputs[0][0])
    )
    assert trio.run(search.run, 20_000).complete
    return found


def store_then_load(fence):
    def of(mine, other):
        async def run(rank, x, f):
            await rank.store(x[mine], 1)
            await fence(rank)
            return int(await rank.load(x[other]))

        return run

    return threads(of(0, 1), of(1, 0), result=sum)


def test_only_fences_that_are_sequentially_consistent_order_a_store_before_a_later_load():
    assert ends(store_then_load(lambda rank: rank.fence(order="sc"))) == {1, 2}
    assert ends(store_then_load(lambda rank: rank.fence(order="acq_rel"))) == {0, 1, 2}
    assert ends(store_then_load(lambda rank: rank.fence(order="sc", scope="block"))) == {0, 1, 2}


def test_a_plain_load_may_go_back_and_an_atomic_read_may_not():
    async def write(rank, x, f):
        await rank.store(x[0], 1)
        await rank.notify(f[0], 1, Set, order="relaxed")
        return 0

    def reading(load):
        async def run(rank, x, f):
            seen = [await load(rank, x, f) for _ in range(2)]
            return int(any(a > b for a, b in pairwise(seen)))

        return run

    assert ends(threads(write, reading(lambda rank, x, f: rank.load(x[0])))) == {0, 1}
    assert ends(threads(write, reading(lambda rank, x, f: rank.read(f[0], order="relaxed")))) == {0}


def test_an_update_hands_on_what_was_released_before_and_a_set_does_not():
    def chain(middle):
        async def first(rank, x, f):
            await rank.store(x[0], 1)
            await rank.notify(f[0])
            return 0

        async def second(rank, x, f):
            await rank.wait(f[0] >= 1, order="relaxed")
            await middle(rank, f)
            return 0

        async def third(rank, x, f):
            await rank.wait(f[0] >= 2)
            return 1 - int(await rank.load(x[0]))

        return threads(first, second, third)

    assert ends(chain(lambda rank, f: rank.notify(f[0], order="relaxed"))) == {0}
    assert ends(chain(lambda rank, f: rank.fetch_add(f[0], order="relaxed"))) == {0}
    assert ends(chain(lambda rank, f: rank.notify(f[0], 2, Set, order="relaxed"))) == {0, 1}


def test_a_trace_keeps_blocks_and_old_reads():
    case = Case(message("release", None, "block", ("b0", "b0")), 1, calls=1, memory=with_old_reads({("0.2", 1): 1}))
    run = simulate(case, Fifo(), record="fifo")
    written, again = io.StringIO(), io.StringIO()
    write_trace(run.recorded, written)
    written.seek(0)
    trace = read_trace(written)
    write_trace(trace, again)
    assert again.getvalue() == written.getvalue()
    assert {event.op.actor.in_block for event in trace.events} == {(0, "0"), (0, "b0")}
    assert trace.header.memory == "gpu:old=0.2#1"


def test_a_read_of_a_stream_with_a_name_is_named():
    reads = {("1.b1", 6): 1, ("1.proxy_2.0", 0): 3}
    assert dict(model_of(with_old_reads(reads)).old or {}) == reads


@pytest.mark.parametrize(
    "text", ["gpu:old=", "gpu:old=x#1", "gpu:old=1.#1", "gpu:old=1#2~0", "gpu:atom=1", "gpu:older"]
)
def test_a_text_that_names_no_read_is_refused(text):
    with pytest.raises(MisuseError):
        model_of(text)


def test_a_block_is_named_as_a_variable():
    @kernel(memory=MEMORY)
    async def bad(rank, x, f):
        await rank.start(message, block="not a name")

    with pytest.raises(Exception, match="name a block as a variable"):
        simulate(Case(bad, 1), Fifo())


def test_a_load_of_several_elements_misses_none_of_those_that_its_actor_knows():
    async def other(rank, x, f):
        await rank.store(x[0], 1)
        await rank.notify(f[0])
        return 0

    async def own(rank, x, f):
        await rank.store(x[1], 1)
        await rank.wait(f[0] >= 1)
        return int(2 - (await rank.load(x[:])).sum())

    assert ends(threads(other, own)) == {0}


def test_of_two_writes_that_race_either_may_be_the_last_even_to_who_knows_both():
    def write(value, cell):
        async def run(rank, x, f):
            await rank.store(x[0], value)
            await rank.notify(f[cell])
            return 0

        return run

    async def read(rank, x, f):
        await rank.wait(f[0] >= 1)
        await rank.wait(f[1] >= 1)
        return int(await rank.load(x[0])) * 10 + int(await rank.load(x[0]))

    assert ends(threads(write(1, 0), write(2, 1), read)) == {11, 12, 21, 22}
