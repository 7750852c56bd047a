"""Views of one memory: what one writes the other reads, and races are seen across them."""

from io import StringIO

import numpy as np
import pytest

from asyncsim import MisuseError, Signal, Window, audit, barrier, check, kernel
from asyncsim.analysis.analyse import analyse
from asyncsim.analysis.certificate import certificate
from asyncsim.analysis.compact import analyse_columns
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.table import make
from asyncsim.trace.columns import Columns
from asyncsim.trace.errors import TraceError
from asyncsim.trace.event import Trace
from asyncsim.trace.jsonl import read_trace, write_trace
from asyncsim.trace.world import World

DATA = Window("data", ("P", 2), np.float32)
BITS = Window("bits", ("P", 2), np.int32, over="data")
HALVES = Window("halves", (4,), np.int16, over="data")
READY = Signal("ready", ("P",))


@kernel(memory=[DATA, BITS, HALVES])
async def punned(rank, data, bits, halves):
    """Write floats, read their bits, and the other way round."""
    await rank.store(data[0], np.array([1.0, -2.0], np.float32))
    seen = await rank.load(bits[0])
    await rank.store(bits[0, 0], 0x40400000)
    await rank.store(data[0, 1], -1.0)
    return seen, await rank.load(data[0]), await rank.load(halves[:])


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic"])
def test_what_one_view_writes_the_other_reads(memory):
    run = simulate(Case(punned, ranks=2, calls=1, memory=memory), make("fifo"))
    for seen, floats, halves in run.outputs[0]:
        assert seen.tolist() == np.array([1.0, -2.0], np.float32).view(np.int32).tolist()
        assert floats.tolist() == [3.0, -1.0]
        assert halves.tolist() == np.array([3.0, -1.0], np.float32).view(np.int16).tolist()
    assert run.unwritten == []
    assert len(run.windows) == 2  # the memory of each rank once


@kernel(memory=[DATA, BITS])
async def crossed(rank, data, bits):
    """Write through one view what peers read through the other."""
    await rank.store(data[rank.id], np.full(2, rank.call + 1, np.float32))
    return await rank.load(bits.at(1 - rank.id)[1 - rank.id])


@pytest.mark.parametrize("memory", ["sc", "ldst"])
def test_a_race_between_two_views_is_seen(memory):
    report = check(crossed, ranks=2, calls=1, memory=memory)
    assert report.refuted
    assert any(finding.kind == "race" for finding in report.findings)


@kernel(memory=[DATA, HALVES])
async def half_written(rank, data, halves):
    """Write the first half of an element, and read the whole of it."""
    await rank.store(halves[0], 1)
    return await rank.load(data[0, 0])


@kernel(memory=[DATA, HALVES])
async def wholly_written(rank, data, halves):
    """Write both halves."""
    await rank.store(halves[0:2], np.ones(2, np.int16))
    return await rank.load(data[0, 0])


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic"])
def test_an_element_is_written_when_all_its_bytes_are(memory):
    report = check(half_written, ranks=2, calls=1, memory=memory)
    assert [finding.kind for finding in report.findings] == ["unwritten-read"]
    assert not check(wholly_written, ranks=2, calls=1, memory="sc").findings


@kernel(memory=[DATA, BITS, READY])
async def pieces(rank, data, bits, ready):
    """Let a large tile land in pieces, through the view that was not declared first."""
    peer = 1 - rank.id
    await rank.put(bits.at(peer)[0:2], np.arange(4, dtype=np.int32).reshape(2, 2))
    await rank.notify(ready.at(peer)[rank.id], 1)
    await rank.wait(ready[peer] >= 1)
    return await rank.load(bits[0:2]), (await rank.load(data[0:2])).view(np.int32)


@kernel(memory=[DATA, Window("rows", (4,), np.float32, over="data")])
async def added(rank, data, rows):
    """Add through two views of one dtype."""
    for peer in range(2):
        await rank.store(rows.at(peer)[0], 1.0, atomic="add")
    return await rank.load(data[0, 0])


def test_adds_through_views_of_one_dtype_are_adds():
    run = simulate(Case(added, ranks=2, calls=1), make("fifo"))
    assert [float(y) for y in run.outputs[0]] == [2.0, 2.0]
    kinds = [finding.kind for finding in check(added, ranks=2, calls=1).findings]
    assert kinds == ["race", "order-dependent-sum"]


@kernel(memory=[Window("raw", (4,), np.int32, initialised=True), Window("body", (4,), np.float32, over="raw")])
async def mixed(rank, raw, body, *, floats, integers):
    """Add floats by the one rank and integers by the other, to one memory."""
    if rank.id:
        await rank.store(body.at(0)[floats], np.ones(2, np.float32), atomic="add")
    else:
        await rank.store(raw[integers], np.ones(2, np.int32), atomic="add")
    await rank.quiet()


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic"])
def test_adds_of_two_dtypes_to_disjoint_bytes_do_not_race(memory):
    apart = mixed.variant(floats=slice(2, 4), integers=slice(0, 2))
    assert check(apart, ranks=2, calls=1, memory=memory).verdict == "PROVED"
    assert simulate(Case(apart, ranks=2, calls=1, memory=memory), make("eager")).windows[0].tolist()[:2] == [1, 1]


@pytest.mark.parametrize("memory", ["sc", "ldst", "nic"])
def test_adds_of_two_dtypes_to_common_bytes_race(memory):
    report = check(mixed.variant(floats=slice(1, 3), integers=slice(0, 2)), ranks=2, calls=1, memory=memory)
    assert [finding.kind for finding in report.findings] == ["race"]
    assert report.verdict == "REFUTED" or report.findings[0].harmful is False


@kernel(memory=[Window("raw", (4,), np.int32, initialised=True), Window("half", (8,), np.int16, over="raw")])
async def integers(rank, raw, half):
    """Add integers of two sizes to one memory."""
    if rank.id:
        await rank.store(half.at(0)[0], 1, atomic="add")
    else:
        await rank.store(raw[0], 1, atomic="add")


@pytest.mark.parametrize("ranks", [2, 32])
def test_adds_of_integers_of_two_sizes_race(ranks):
    trace = simulate(Case(integers, ranks=ranks, calls=1), make("fifo"), record="fifo").trace
    (race,) = analyse(trace).findings
    assert (race.kind, race.pairs) == ("race", ranks - 1)


def test_memory_of_two_dtypes_has_no_certificate():
    report = check(punned, ranks=2, calls=1)
    assert report.verdict == "PROVED"
    with pytest.raises(MisuseError, match="windows of different dtypes share memory"):
        certificate(*report.proof)


def test_a_view_lands_in_pieces():
    run = simulate(Case(pieces, ranks=2, calls=1, memory="nic:atom=1"), make("fifo"))
    for own, other in run.outputs[0]:
        assert own.tolist() == other.tolist() == [[0, 1], [2, 3]]


def test_a_trace_says_which_window_a_view_is_over():
    trace = simulate(Case(punned, ranks=2, calls=1), make("fifo"), record="fifo").trace
    text = StringIO()
    write_trace(trace, text)
    assert '"over":"data"' in text.getvalue()
    again = read_trace(StringIO(text.getvalue()))
    assert [window.over for window in again.header.world.memory] == ["", "data", "data"]
    copy = StringIO()
    write_trace(again, copy)
    assert copy.getvalue() == text.getvalue()
    slots = {access.region.slot for event in again.events for access in event.op.accesses}
    assert slots == {0, 1}


def test_a_trace_with_a_view_over_nothing_is_refused():
    trace = simulate(Case(punned, ranks=2, calls=1), make("fifo"), record="fifo").trace
    text = StringIO()
    write_trace(trace, text)
    lines = [line.partition(',"crc"')[0] + "}" for line in text.getvalue().splitlines()]
    damaged = "\n".join(lines).replace('"over":"data"', '"over":"date"')
    with pytest.raises(TraceError, match="line 1: window 'bits' is over 'date', which is no window"):
        read_trace(StringIO(damaged))


WRONG = [
    (lambda: Window("b", (1,), over="not a name"), "a window needs a name"),
    (lambda: Window("b", (1,), over="a", initialised=True), "initialised, dirty and group are said there"),
    (lambda: Window("b", (1,), np.complex128, over="a"), "elements of at most 8 bytes, not 16"),
    (lambda: World(2, [Window("b", (1,), over="a")]), "'b' is over 'a', which is no window that is declared before it"),
    (lambda: World(2, [Signal("a", (1,)), Window("b", (1,), over="a")]), "'b' is over 'a', which is no window"),
    (lambda: World(2, [Window("a", (1,)), Window("b", (2,), over="a")]), "has 8 bytes; that one has 4"),
    (lambda: World(2, [Window("a", (1,), np.complex128), Window("b", (2,), over="a")]), "of more than 8 bytes"),
    (
        lambda: World(2, [Window("a", (1,)), Window("b", (1,), over="a"), Window("c", (1,), over="b")]),
        "cannot be over 'b', which is over another one itself",
    ),
]


@pytest.mark.parametrize(("make_it", "words"), WRONG, ids=[words for _, words in WRONG])
def test_a_view_that_cannot_be_is_refused(make_it, words):
    with pytest.raises(MisuseError, match=words):
        make_it()


def views_of(*views):
    """Return a kernel whose peers write, through views in turn, into what its own rank has just read."""

    @kernel(memory=[Window("base", (4,), np.int32), *views, Signal("turn", ("P", 1))])
    async def reused(rank, base, *rest):
        *seen, turn = rest
        await rank.store(base[:], np.full(4, rank.call + 1, np.int32))
        await barrier(rank, turn, generation=2 * rank.call + 1)
        out = await rank.load(base[:])
        for peer in rank.peers:
            number = (rank.id + peer) % len(views)
            rows = seen[number].at(peer)[0:2, 0] if len(views[number].shape) > 1 else seen[number].at(peer)[0:2]
            await rank.store(rows, np.zeros(2, views[number].dtype))
        await barrier(rank, turn, generation=2 * rank.call + 2)
        return out

    return reused


@pytest.mark.parametrize(
    "views",
    [
        (Window("again", (4,), np.int32, over="base"),),
        (Window("again", (4,), np.int32, over="base"), Window("halves", (8,), np.int16, over="base")),
        (Window("columns", (2, 2), np.float32, over="base"), Window("bytes", (4, 4), np.uint8, over="base")),
    ],
    ids=["one", "two dtypes", "strides"],
)
@pytest.mark.parametrize("memory", ["sc", "ldst"])
def test_a_race_through_several_views_is_one_finding_about_the_memory_they_share(views, memory):
    report = check(views_of(*views), ranks=4, calls=2, memory=memory)
    races = [finding for finding in report.findings if finding.kind == "race"]
    assert [(finding.hazard, finding.window) for finding in races] == [("WAR", "base"), ("WAW", "base")]
    # A call: each rank's load with the store of each peer; each two of the peers' stores.
    assert [finding.pairs for finding in races] == [2 * 4 * 3, 2 * 4 * 3]
    assert len(audit(views_of(*views), ranks=2, calls=1).report.findings) == 1


@pytest.mark.parametrize("memory", ["sc", "ldst"])
def test_elements_that_nobody_wrote_are_one_finding_through_all_views(memory):
    @kernel(memory=[DATA, BITS])
    async def forgets(rank, data, bits):
        for view in (data, bits):
            await rank.load(view[0])

    (finding,) = check(forgets, ranks=2, calls=1, memory=memory).findings
    assert (finding.kind, finding.window) == ("unwritten-read", "data")
    assert finding.pairs == 4


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_columns_and_events_tell_the_same_of_several_views(ranks):
    views = Window("again", (4,), np.int32, over="base"), Window("halves", (8,), np.int16, over="base")
    case = Case(views_of(*views), ranks=ranks, calls=2)
    trace = simulate(case, make("fifo"), record="fifo").trace
    packed = Trace(trace.header, Columns.of(trace.events), trace.footer)
    assert analyse_columns(packed, packed) is not None
    assert analyse(packed).findings == analyse(trace).findings
