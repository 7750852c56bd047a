"""How far a proof reaches: said of later calls only where they can be foreseen; and many ranks shown by few."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from asyncsim import Signal, Window, check, kernel
from asyncsim.checking.record.locate import locate
from asyncsim.machine.calluse import CallUse
from asyncsim.views.report import report_text
from kernels.reduce_scatter import builtin, double_buffer, hand, no_post_barrier

x = Window("x", (4,), initialised=True)
c = Signal("c", (1,))


@pytest.mark.parametrize(
    ("given", "calls", "said"),
    [
        (builtin, 2, "and for any number of calls, if later ones issue the same operations: call 1 begins as call 0"),
        (hand, 1, "not for 2 calls: then the analysis finds something; judge it with --calls 2"),
        (double_buffer, 2, "and for up to 2147483647 calls"),
    ],
)
def test_a_proof_says_how_far_it_reaches(given, calls, said):
    report = check(given, ranks=3, calls=calls)
    assert report.verdict == "PROVED"
    assert report.later_calls.startswith(said)
    assert report.to_json()["later_calls"] == report.later_calls
    assert said in " ".join(report_text(report).split())


def test_who_is_refuted_is_promised_nothing():
    assert check(hand, ranks=2).later_calls == ""


TABLE = (1, 2, 3, 4)
USES = {
    "nothing": (lambda n: 0, True, 1),
    "as a threshold": (lambda n: (n + 1) * 3 - 2, True, 1),
    "a threshold, reversed": (lambda n: 2 * (1 + n), True, 1),
    "modulo": (lambda n: n % 3, True, 3),
    "by a mask": (lambda n: n & 1, True, 2),
    "modulo twice": (lambda n: n % 2 + n % 3, True, 6),
    "squared": (lambda n: n * n, False, 1),
    "modulo itself": (lambda n: 7 % (n + 1), False, 1),
    "modulo a call": (lambda n: (n + 5) % (n + 2), False, 1),
    "by an odd mask": (lambda n: n & 5, False, 1),
    "compared": (lambda n: n == 0, False, 1),
    "compared, reversed": (lambda n: 0 < n, False, 1),  # noqa: SIM300 - the order is the point
    "as a truth": (lambda n: 1 if n else 2, False, 1),
    "halved": (lambda n: n // 2, False, 1),
    "subtracted from": (lambda n: 9 - n, False, 1),
    "as a key": (lambda n: {0: 1, 1: 2, 2: 3}[n], False, 1),
    "as an index": (lambda n: TABLE[n], False, 1),
    "as a bound": (lambda n: TABLE[:n], False, 1),
    "as a range": (lambda n: len(range(n)), False, 1),
    "as a text": (lambda n: f"{n}", False, 1),
    "as an integer": (int, False, 1),
    "as a float": (float, False, 1),
    "negated": (lambda n: -n, False, 1),
    "shifted": (lambda n: 1 << n, False, 1),
    "plus a half": (lambda n: n + 0.5, False, 1),
    "in numpy": (lambda n: int(np.arange(4)[n]), False, 1),
}


def plain(value):
    return value.as_threshold() if hasattr(value, "as_threshold") else value


@pytest.mark.parametrize("how", USES)
def test_what_is_done_with_the_number_of_a_call_is_noted_and_changes_nothing(how):
    use, foreseen, modulus = USES[how]
    for call in (0, 1, 2):
        noted = CallUse()
        value = use(noted.number(call))
        assert (noted.otherwise, noted.modulus) == (not foreseen, modulus)
        assert plain(value) == use(call)
    noted = CallUse()
    use(noted.number(1))
    assert noted.repeats_after(6) == foreseen
    assert noted.repeats_after(modulus + 1) == (foreseen and modulus == 1)


def test_a_kernel_that_asks_for_its_first_call_is_judged_for_its_calls_only():
    @kernel(memory=[x, c])
    async def special(rank, x, c):
        await rank.load(x[0 if rank.call < 1000 else 1])

    @kernel(memory=[x, c])
    async def plain(rank, x, c):
        await rank.load(x[0])

    assert check(special, ranks=2).later_calls == ""
    assert check(plain, ranks=2).later_calls.startswith("and for any number")


def test_a_pattern_of_three_needs_more_calls_than_are_tried():
    @kernel(memory=[x, c])
    async def turns(rank, x, c):
        await rank.load(x[(0, 0, 1)[rank.call % 3]])

    assert check(turns, ranks=2).later_calls == ""
    assert check(turns, ranks=2, calls=4).later_calls.startswith("and for any number")


def test_a_kernel_that_cannot_be_called_once_more_is_judged_for_its_calls_only():
    def inputs(ranks, call, rng):
        if call > 1:
            raise ValueError("two are enough")
        return np.full((ranks, 1), call, np.float32)

    @kernel(memory=[x, c], inputs=inputs)
    async def twice(rank, value, x, c):
        await rank.store(x[rank.call], value[0])

    report = check(twice, ranks=2)
    assert (report.verdict, report.later_calls) == ("PROVED", "")


@pytest.fixture
def many(monkeypatch):
    """Let six ranks be many."""
    monkeypatch.setattr("asyncsim.checking.verdict.suspects.MANY_RANKS", 6)
    monkeypatch.setattr("asyncsim.machine.course.COMPACT_RANKS", 6)


@pytest.mark.usefixtures("many")
def test_the_race_of_many_ranks_is_shown_by_two(tmp_path):
    report = check(no_post_barrier, ranks=6, save=tmp_path)
    (finding,) = report.findings
    assert (finding.title, finding.pairs, finding.harmful) == ("WAR race, next call", 30, True)
    assert "; the replay shows the same race at P = 2: " in finding.shown
    assert "-P2-" in finding.trace
    usual = check(no_post_barrier, ranks=5).findings[0]
    assert (finding.kind, finding.hazard, finding.scope) == (usual.kind, usual.hazard, usual.scope)


@pytest.mark.usefixtures("many")
def test_what_few_ranks_do_not_show_is_shown_by_the_many():
    @kernel(memory=[x, c], inputs=lambda ranks, call, rng: rng.standard_normal((ranks, 1)))
    async def sixth(rank, value, x, c):
        if rank.size < 6:
            return None
        if rank.id == 5:
            await rank.store(x.at(0)[0], np.float32(value[0]))
        return await rank.load(x[0]) if rank.id == 0 else None

    report = check(sixth, ranks=6)
    assert report.verdict == "REFUTED"
    assert "the replay shows it" not in report.findings[0].shown
    small = check(sixth, ranks=3)
    assert small.verdict == "PROVED"


@pytest.mark.usefixtures("many")
def test_a_kernel_that_few_ranks_cannot_run_is_shown_by_the_many():
    def inputs(ranks, call, rng):
        if ranks < 6:
            raise ValueError("made for six")
        return rng.standard_normal((ranks, 1))

    @kernel(memory=[x, c], inputs=inputs)
    async def six(rank, value, x, c):
        await rank.store(x.at(0)[0], np.float32(value[0]))
        return await rank.load(x[0]) if rank.id == 0 else None

    assert check(six, ranks=6).verdict == "REFUTED"


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("ranks", [3, 7])
def test_hidden_state_is_noticed_in_columns_as_in_events(ranks):
    seen = []

    @kernel(memory=[x, c])
    async def remembers(rank, x, c):
        seen.append(rank.id)
        await rank.store(x[min(len(seen) // (4 * rank.size), 1)], 1.0)

    report = check(remembers, ranks=ranks, samples=1)
    (finding,) = (finding for finding in report.findings if finding.kind == "hidden-state")
    assert "differs in actor" in finding.why
    assert "(store to x[" in finding.why


def test_a_kernel_that_needs_a_plain_number_is_judged_for_its_calls_only():
    @kernel(memory=[x, c])
    async def plain_one(rank, x, c):
        assert isinstance(rank.call, int)
        await rank.load(x[0])

    @kernel(memory=[x, c])
    async def other_one(rank, x, c):
        await rank.load(x[0 if isinstance(rank.call, int) else 1])

    for given in (plain_one, other_one):
        report = check(given, ranks=2)
        assert (report.verdict, report.findings, report.later_calls) == ("PROVED", [], "")


def test_a_threshold_that_grows_by_more_and_more_is_no_promise():
    @kernel(memory=[x, c])
    async def square(rank, x, c):
        if rank.id == 0:
            await rank.notify(c.at(1)[0], 1)
        else:
            await rank.wait(c[0] >= rank.call * rank.call)

    assert check(square, ranks=2).later_calls == ""


def test_a_cell_that_wraps_leaves_its_range_too():
    small = Signal("small", (1,), dtype=np.int8, wrap=True)

    @kernel(memory=[small])
    async def wraps(rank, small):
        await rank.notify(small[0], 1)

    assert check(wraps, ranks=2).later_calls.startswith("and for up to 127 calls")


@pytest.mark.usefixtures("many")
def test_harm_among_few_is_no_harm_among_many():
    @kernel(memory=[x, c], inputs=lambda ranks, call, rng: rng.standard_normal((ranks, 1)))
    async def benign_at_many(rank, value, x, c):
        own = np.float32(value[0]) if rank.size < 6 else np.float32(7)
        if rank.id < 2:
            await rank.store(x.at(0)[0], own)
        return await rank.load(x[0]) if rank.id == 0 and rank.size < 6 else None

    few, many = check(benign_at_many, ranks=3, calls=1), check(benign_at_many, ranks=6, calls=1)
    assert few.verdict == "REFUTED"
    assert many.verdict != "REFUTED"
    assert not any(finding.harmful for finding in many.findings)


def test_a_hidden_state_is_never_explored_exhaustively():
    seen = []

    @kernel(memory=[x, c])
    async def remembers(rank, x, c):
        seen.append(rank.id)
        await rank.store(x[min(len(seen) // (4 * rank.size), 1)], 1.0)

    assert check(remembers, ranks=2, samples=5).verdict in ("SURVIVED", "REFUTED")


def test_a_kernel_has_the_source_that_it_was_made_of(tmp_path):
    file = tmp_path / "own.py"
    text = "from asyncsim import Window, kernel\n\n"
    text += "@kernel(memory=[Window('w', (1,))])\nasync def own(rank, w):\n    pass\n"
    file.write_text(text)
    made = locate(f"{file}:own")
    before = made.source
    file.write_text(text + "# edited\n")
    assert made.source == before


@pytest.mark.parametrize("raises", [True, False])
def test_what_only_the_second_run_shows_is_hidden_state_all_the_same(raises):
    seen = []

    @kernel(memory=[x, c])
    async def once(rank, x, c):
        seen.append(rank.id)
        second = 4 < len(seen) <= 8  # of two ranks and two calls: in the second run, and in no other
        if raises and second:
            raise ValueError("now and then")
        await rank.load(x[1 if second else 0])

    report = check(once, ranks=2, samples=1)
    assert report.verdict != "PROVED"
    assert "hidden-state" in {finding.kind for finding in report.findings}


@pytest.mark.parametrize(
    "is_late",
    [
        lambda call: isinstance(call, int) and call == 6,
        lambda call: copy.deepcopy(call) == 6,
        lambda call: copy.copy([call])[0] == 6,
        lambda call: pickle.loads(pickle.dumps(call)) == 6,  # noqa: S301 - written here
    ],
    ids=["isinstance", "deepcopy", "copy", "pickle"],
)
def test_who_asks_whether_the_number_is_one_may_do_otherwise(is_late):
    @kernel(memory=[Window("box", (1,), np.int32, initialised=True)])
    async def program(rank, box):
        await rank.load(box[0])
        if is_late(rank.call):
            await rank.store(box.at((rank.id + 1) % rank.size)[0], 1)

    report = check(program, ranks=2)
    assert (report.verdict, report.later_calls) == ("PROVED", "")
