"""Kernels with several right results: whichever schedule gives which, and none that is not among them."""

from itertools import permutations

import numpy as np
import pytest

from asyncsim import AnyOf, Case, MisuseError, Predicate, Signal, Window, check, explore, kernel, replay
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.diagnose.symptoms import Symptoms
from asyncsim.machine.case import MISSING, Run
from asyncsim.machine.direct import drive
from asyncsim.schedulers.table import make
from asyncsim.testing.asserting import assert_same_result
from asyncsim.testing.kernels import check_kernel
from asyncsim.trace.token import decode
from asyncsim.views.report import report_text
from asyncsim.views.run import run_text

BOX = Window("box", (1,), np.int32, initialised=True)
SUM = Window("sum", (1,), np.float32, initialised=True)
DONE = Signal("done", ("P", 1))


def numbers(P, call, rng):
    return [rng.integers(1, 1000, 1, np.int32) for _ in range(P)]


async def last_writer(rank, x, box, done, *, spoil=False):
    """Everybody writes into rank 0's box; the last one stays."""
    await rank.store(box.at(0)[:], x if not spoil or rank.id else x + 1)
    for peer in rank.peers:
        await rank.notify(done.at(peer)[rank.id], 1)
    for peer in rank.peers:
        await rank.wait(done[peer] >= 2 * rank.call + 1)
    y = await rank.load(box.at(0)[:])
    for peer in rank.peers:
        await rank.notify(done.at(peer)[rank.id], 1)
    for peer in rank.peers:
        await rank.wait(done[peer] >= 2 * rank.call + 2)
    return y


def one_of_them(xs):
    return ([x] * len(xs) for x in xs)


def of_rank(rank):
    return lambda xs: [xs[rank]] * len(xs)


def all_have_one(xs, ys):
    return all(y == ys[0] for y in ys) and any(ys[0] == x for x in xs)


def writers(golden, **params):
    made = kernel(memory=[BOX, DONE], inputs=numbers, golden=golden, same_on_all_ranks=True)(last_writer)
    return made.variant(about="The last one stays.", **params) if params else made


RIGHT = {
    "goldens": AnyOf(of_rank(0), of_rank(1)),
    "several": AnyOf(several=one_of_them),
    "predicate": Predicate(all_have_one),
}


@pytest.mark.parametrize("golden", RIGHT.values(), ids=RIGHT)
def test_a_race_that_only_chooses_among_right_results_is_benign(golden):
    report = check(writers(golden), ranks=2, calls=2, memory="sc")
    assert report.verdict == "EXHAUSTED"
    assert {finding.title: finding.harmful for finding in report.findings} == {"WAW race, same call": False}
    assert "a right result in all" in report.findings[0].shown
    assert "different results, each of them right" in report.scope
    assert f"a right result: {golden.rule}"[:40] in report_text(report)
    assert report.to_json()["right"] == golden.rule


def test_with_one_golden_alone_the_same_race_is_harmful():
    report = check(writers(of_rank(1)), ranks=2, calls=1, memory="sc")
    assert report.verdict == "REFUTED"
    assert report.to_json()["right"] is None


@pytest.mark.parametrize("golden", RIGHT.values(), ids=RIGHT)
def test_a_result_that_is_not_among_them_refutes_where_a_schedule_gives_it(golden):
    report = check(writers(golden, spoil=True), ranks=2, calls=1, memory="sc")
    assert report.verdict == "REFUTED"
    shown = " ".join(f"{finding.why} {finding.shown}" for finding in report.findings)
    if isinstance(golden, Predicate):
        assert f"the predicate all_have_one ({__file__.rpartition('/')[2]}:" in shown
        assert "refuses what the ranks return together" in shown
    else:
        assert "is not among the 2 right results; beside the nearest, number" in shown
    refuted = next(finding for finding in report.findings if finding.token)
    again = replay(decode(refuted.token), writers(golden, spoil=True))
    assert Symptoms(again.run.case).findings(again.run)


@pytest.mark.parametrize("golden", RIGHT.values(), ids=RIGHT)
def test_exploration_sampling_and_replay_take_every_right_result(golden):
    made = writers(golden)
    sampled = explore(made, ranks=2, calls=1, runs=30)
    assert (sampled.verdict, sampled.findings) == ("SURVIVED", [])
    assert any("each of them right" in note for note in sampled.notes)
    everything = explore(made, ranks=2, calls=1, exhaustive=True)
    assert everything.verdict == "EXHAUSTED"
    case = Case(made, 2, 1)
    other = drive(case, make("starve:rank=0"))
    assert other.outputs != drive(case, make("fifo")).outputs
    assert (Symptoms(case).findings(other), Symptoms(case).differences(other)) == ([], [])
    assert_same_result(made, ranks=2, schedules=5)


def test_both_orders_are_followed_where_there_is_no_exhaustive_exploration():
    report = check(writers(RIGHT["predicate"]), ranks=2, calls=1, memory="sc", budget=0)
    assert not report.refuted
    race = next(finding for finding in report.findings if finding.kind == "race")
    assert not race.harmful


def test_sums_in_an_order_left_to_atomics_are_right_in_other_bits():
    def one_and_crumbs(P, call, rng):
        return [np.full(1, 1 if rank == 0 else 2.0**-24, np.float32) for rank in range(P)]

    def sums(xs):
        return [np.asarray(sum(xs))] * len(xs)

    async def added(rank, x, total, done):
        """Everybody adds to rank 0's sum, atomically."""
        await rank.store(total.at(0)[:], x, atomic="add")
        for peer in rank.peers:
            await rank.notify(done.at(peer)[rank.id], 1)
        for peer in rank.peers:
            await rank.wait(done[peer] >= 1)
        return await rank.load(total.at(0)[:])

    one, several = (kernel(memory=[SUM, DONE], inputs=one_and_crumbs, golden=g)(added) for g in (sums, AnyOf(sums)))
    strict, free = (check(each, ranks=3, calls=1, memory="sc") for each in (one, several))
    assert (strict.verdict, free.verdict) == ("REFUTED", "EXHAUSTED")
    assert [(found.kind, found.harmful) for found in free.findings] == [("order-dependent-sum", False)]


# ---- one result, made up


def judged(golden, outputs, *, same=False, xs=(1, 2), ending="complete"):
    async def program(rank, x, box):
        """Return it."""
        return x

    made = kernel(
        memory=[BOX],
        inputs=lambda P, call, rng: [np.array(x, np.float64) for x in xs],
        golden=golden,
        same_on_all_ranks=same,
    )(program)
    case = Case(made, len(xs), 1)
    run = Run(case, ["0", "1"], [list(outputs)], ending)
    return Judge(case), run


def why(*args, **kwargs):
    judge, run = judged(*args, **kwargs)
    return [finding.why for finding in judge.findings(run) if finding.kind != "deadlock"]


def orders(xs):
    return [list(order) for order in permutations(xs)]


def test_a_result_is_that_of_all_ranks_together():
    assert why(AnyOf(several=orders), (2.0, 1.0)) == []
    (said,) = why(AnyOf(several=orders), (2.0, 2.0))
    assert "is not among the 2 right results" in said
    assert "every rank's result is in one of them, but none of them has all" in said


def test_the_nearest_right_result_is_the_one_that_is_shown():
    far, near = (lambda xs: [8.0, 9.0]), (lambda xs: [3.0, 4.0])
    (said,) = why(AnyOf(far, near), (3.0, 5.0))
    assert said.startswith("rank 1's result of call 0 is not among the 2 right results; beside the nearest, number 2: ")
    assert "5.0 instead of 4.0" in said
    assert "every rank's" not in said


def test_a_wrong_result_is_explained_by_the_right_result_it_comes_from():
    def either(xs):
        return [[xs[0], xs[0]], [xs[0] + 10 * xs[1]] * 2]

    one, other = (np.array([value]) for value in (21.0, 20.0))
    (said,) = why(AnyOf(several=either), (one, other), xs=([1.0], [2.0]))
    assert "it is short of the contribution of rank 0" in said
    assert said.endswith("(it equals right result 2 of inputs in which that one is zero, exactly)")


def test_a_refusal_says_for_which_inputs_it_would_accept():
    def swaps(xs, ys):
        return ys[0] == xs[1] and ys[1] == xs[0]

    (said,) = why(Predicate(swaps), (2.0, 2.0))
    assert said.startswith("in call 0 the predicate swaps (test_free_goldens.py:")
    assert "rank 0: 2.0; rank 1: 2.0" in said
    assert said.endswith("it accepts this if rank 0's input is that of rank 1")


def test_a_refused_result_is_one_finding_with_all_ranks_and_its_run_in_words():
    judge, run = judged(Predicate(lambda xs, ys: False), (1.0, 2.0))
    (finding,) = judge.findings(run)
    assert (finding.kind, finding.pairs, [side.rank for side in finding.sides]) == ("wrong-result", 1, [0, 1])
    text = run_text(run, [finding], judge.differences(run))
    assert text.startswith("wrong-result: the results of 1 of 1 calls are refused\n  call 0: the predicate lambda (")


def test_a_predicate_is_asked_of_complete_calls_only():
    assert why(Predicate(lambda xs, ys: False), (1.0, MISSING), ending="deadlock") == []


def test_only_some_ranks_promise_the_same_bits():
    def there(ys):
        return [rank for rank, y in enumerate(ys) if y is not None]

    anything = Predicate(lambda xs, ys: True)
    assert why(anything, (1.0, None, 1.0), same=there, xs=(1, 2, 3)) == []
    (said,) = why(anything, (None, 1.0, 2.0), same=there, xs=(1, 2, 3))
    assert said.startswith(
        "rank 2's result of call 0 differs from rank 1's, and the kernel promises equal ones on ranks 1, 2: "
    )
    assert why(anything, (1.0, MISSING, None), same=there, xs=(1, 2, 3), ending="deadlock") == []


class Coin:
    """A predicate that answers otherwise each time."""

    def __init__(self):
        self.side = False

    def __call__(self, xs, ys):
        self.side = not self.side
        return self.side


def mutates(xs, ys):
    ys.clear()
    xs[0] += 1
    return True


@pytest.mark.parametrize(
    ("golden", "said"),
    [
        (Predicate(lambda xs, ys: xs[9]), r"the predicate lambda \(test_free_goldens.py:\d+\) raised IndexError at"),
        (Predicate(lambda xs, ys: 1), r"gave int 1; it must give True or False"),
        (Predicate(lambda xs, ys: np.ones(2) > 0), r"gave ndarray \[ True  True\]; .* \(of an array: its .all\(\)\)"),
        (Predicate(lambda xs, ys: None), "gave NoneType None"),
        (Predicate(Coin()), "the predicate Coin gave True and then False for the same inputs and results"),
        (AnyOf(several=lambda xs: []), r"several=lambda \(test_free_goldens.py:\d+\) gave no right result for call 0"),
        (AnyOf(several=lambda xs: 3), "for call 0, raised TypeError"),
        (AnyOf(several=lambda xs: [[1]]), "gave 1 outputs for 2 ranks; give one a rank"),
        (AnyOf(several=lambda xs: ([n, n] for n in range(20_000))), "more than 10000 right results; .*Predicate"),
        (AnyOf(lambda xs: [1, 1], lambda xs: [1]), r"golden lambda \(.*\) gave 1 outputs for 2 ranks"),
        (AnyOf(lambda xs: [1, 1], lambda xs: xs[7]), r"golden lambda \(.*\), for call 0, raised IndexError"),
    ],
)  # fmt: skip
def test_a_golden_that_cannot_be_right_is_refused_at_its_line(golden, said):
    judge, run = judged(golden, (1.0, 2.0))
    with pytest.raises(MisuseError, match=said):
        judge.findings(run)


def test_a_predicate_may_change_what_it_is_given():
    judge, run = judged(Predicate(mutates), (1.0, 2.0))
    assert judge.findings(run) == []
    assert run.outputs == [[1.0, 2.0]]


@pytest.mark.parametrize("ranks", [lambda ys: [7], lambda ys: ["a"], lambda ys: 3, lambda ys: ys[9]])
def test_ranks_that_are_none_are_refused(ranks):
    judge, run = judged(None, (1.0, 2.0), same=ranks)
    with pytest.raises(MisuseError, match=r"same_on_all_ranks, for call 0, (gave .*; it must give ranks|raised)"):
        judge.findings(run)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (AnyOf, "it goldens, or several="),
        (lambda: AnyOf(3), "AnyOf: 3 is not a function"),
        (lambda: Predicate(accepts=True), r"Predicate\(True\): give a function"),
        (lambda: writers(3), "golden=3; give a function of the inputs of all ranks, AnyOf or Predicate"),
        (lambda: writers(one_of_them, same_on_all_ranks=[0]), r"same_on_all_ranks=\[0\]; give True, False, or a"),
    ],
)
def test_what_is_not_a_function_is_refused_at_once(make, said):
    with pytest.raises(MisuseError, match=said):
        make()


def test_the_rules_for_kernels_ask_all_right_results():
    def proved(golden):
        async def shift(rank, x, box, done):
            """Each passes its own to the right."""
            peer = (rank.id + 1) % rank.size
            await rank.store(box.at(peer)[:], x)
            await rank.notify(done.at(peer)[rank.id], 1)
            await rank.wait(done[(rank.id - 1) % rank.size] >= 1)
            return await rank.load(box[:])

        return kernel(memory=[BOX, DONE], inputs=numbers, golden=golden)(shift)

    def shifted(xs):
        return np.roll(xs, 1, axis=0)

    def in_place(xs, ys):
        xs[0] += 1
        return True

    right = AnyOf(lambda xs: [x * 0 for x in xs], shifted)
    (report,) = check_kernel(proved(right), ranks=2, calls=1)
    assert report.verdict == "PROVED"
    with pytest.raises(AssertionError, match="it changes the inputs"):
        check_kernel(proved(Predicate(in_place)), ranks=2, calls=1)
    with pytest.raises(AssertionError, match=r"of rank 0 it has shape \(3,\), and the result has \(1,\)"):
        check_kernel(proved(AnyOf(lambda xs: [np.zeros(3)] * len(xs))), ranks=2, calls=1)


def test_hidden_state_that_chooses_among_right_results_is_no_proof_and_no_harm():
    flips = []

    async def moody(rank, x, box, done):
        """Return one of two right results, whichever the last run did not."""
        flips.append(rank.id)
        return x * 0 + (len(flips) // rank.size) % 2

    right = AnyOf(lambda xs: [x * 0 for x in xs], lambda xs: [x * 0 + 1 for x in xs])
    made = kernel(memory=[BOX, DONE], inputs=numbers, golden=right)(moody)
    report = check(made, ranks=1, calls=1, memory="sc")
    assert report.verdict != "PROVED"
    assert [(found.kind, found.harmful) for found in report.findings] == [("hidden-state", None)]
