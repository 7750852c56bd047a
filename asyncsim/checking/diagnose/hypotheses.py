"""What a wrong result is instead: named hypotheses, tried against the numbers.

A hypothesis says what the result would be if a certain thing had gone wrong. It is told if the result
is that, everywhere or where it is wrong; nothing is inferred from what the kernel looks like, and
where no hypothesis gives the numbers nothing is said.
"""

from __future__ import annotations

from functools import partial
from itertools import chain, combinations, islice, permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.checking.diagnose.narrow import sixteen_bits
from asyncsim.checking.diagnose.oracle import Numbers, Oracle, WrongResult, each, leaves, numbers_of
from asyncsim.machine.case import MISSING
from asyncsim.trace.digest import digest_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


# The hypotheses, one a function.


def every_rank_has_the_same(wrong: WrongResult) -> str | None:
    """All ranks returned one rank's result, where each should have its own."""
    if not all(wrong.equal_everywhere(numbers_of(wrong.outputs[peer])) for peer in wrong.peers):
        return None
    return wrong.first(
        ("every rank has the same chunk", wrong.oracle.golden(wrong.call, peer), f"what rank {peer} must get")
        for peer in wrong.peers
    )


def another_rank(wrong: WrongResult) -> str | None:
    """The result is another rank's."""
    return wrong.first(
        (f"it is rank {peer}'s result", wrong.oracle.golden(wrong.call, peer), f"what rank {peer} must get")
        for peer in wrong.peers
    )


def another_call(wrong: WrongResult) -> str | None:
    """The result is that of another call."""
    return wrong.first(
        (
            f"it is the result of {_call(wrong, call)}",
            wrong.oracle.golden(call, wrong.rank),
            f"what call {call} must give",
        )
        for call in wrong.other_calls()
    )


def an_input(wrong: WrongResult) -> str | None:
    """It is an input as it was, of this call or another: nothing was added to it yet."""
    inputs = wrong.case.inputs
    return wrong.first(
        (
            f"it is rank {rank}'s input of {_call(wrong, call)}, as it was",
            numbers_of(inputs[call][rank]),
            "that input",
        )
        for call in [wrong.call, *wrong.other_calls()]
        for rank in [wrong.rank, *wrong.peers]
    )


def short_of_contributions(wrong: WrongResult) -> str | None:
    """Some ranks' inputs are not in it: the own one first, for that is what is forgotten."""
    own = (wrong.rank,)
    others = (ranks for ranks in wrong.subsets() if ranks != own)
    return wrong.first(
        (
            f"it is short of exactly the own contribution, rank {wrong.rank}'s"
            if ranks == own
            else f"it is short of the contribution of {_ranks(ranks)}",
            wrong.given(("zero", ranks), partial(zeroed, ranks)),
            f"the golden of inputs in which {'that one is' if len(ranks) == 1 else 'these are'} zero",
        )
        for ranks in chain([own], others)
    )


def contribution_of_another_call(wrong: WrongResult) -> str | None:
    """Some ranks' inputs are those of another call: a stale read, or one that came too late."""
    return wrong.first(
        (
            f"{_possessive(ranks)} contribution is that of {_call(wrong, call)}",
            wrong.given(("call", call, ranks), partial(taken_from, wrong.case.inputs[call], ranks)),
            f"the golden with {'that one' if len(ranks) == 1 else 'those'}",
        )
        for call in wrong.other_calls()
        for ranks in wrong.subsets()
        if len(ranks) < wrong.case.ranks
    )


def contribution_of_another_rank(wrong: WrongResult) -> str | None:
    """One rank's input was taken for that of another: a wrong peer, or a buffer that was used again too early."""
    return wrong.first(
        (
            f"rank {rank}'s contribution is that of rank {other}",
            wrong.given(("rank", rank, other), partial(swapped, rank, other)),
            "the golden with that one",
        )
        for rank, other in islice(permutations(range(wrong.case.ranks), 2), wrong.oracle.limit)
    )


def total_for_an_input(wrong: WrongResult) -> str | None:
    """A peer's finished result was reduced where its input should have been: this call's, or an earlier one's."""
    calls = range(wrong.call, -1, -1)
    return wrong.first(
        (
            _taken_for_inputs(ranks, when),
            wrong.given(("total", call, ranks), partial(_finished, wrong.oracle.results(call), ranks)),
            f"the golden with {'that total' if len(ranks) == 1 else 'those totals'} as input",
        )
        for call in calls
        for when in ["" if call == wrong.call else f" of {_call(wrong, call)}"]
        for ranks in wrong.subsets()
    )


def several_at_once(wrong: WrongResult) -> str | None:
    """Some inputs are those of another call, and finished totals were taken for others."""
    ranks = range(wrong.case.ranks)
    combined = (
        (call, stale, done)
        for call in wrong.other_calls()
        for size in range(2, len(ranks) + 1)
        for both in combinations(ranks, size)
        for part in range(1, size)
        for stale in combinations(both, part)
        for done in [tuple(rank for rank in both if rank not in stale)]
    )
    totals = wrong.oracle.results(wrong.call)
    return wrong.first(
        (
            f"{_possessive(stale)} contribution is that of {_call(wrong, call)}, and {_taken_for_inputs(done)}",
            wrong.given(("both", call, stale, done), partial(_mixed, wrong.case.inputs[call], stale, totals, done)),
            "the golden with these",
        )
        for call, stale, done in islice(combined, wrong.oracle.limit)
    )


def shifted(wrong: WrongResult) -> str | None:
    """The boundaries of the chunks lie a few elements too early, or too late; asked of a whole result only."""
    if not wrong.whole:
        return None
    sizes = {leaf.size for x in wrong.case.inputs[wrong.call] for leaf in leaves(x) or ()}
    furthest = min(max(sizes, default=0) - 1, wrong.oracle.limit // 2)  # both ways
    return wrong.first(
        (
            f"the chunk boundaries are shifted by {-by:+d} element{'s' if abs(by) > 1 else ''}",
            wrong.given(("shift", by), partial(_rolled, by)),
            f"the golden of inputs rotated by {by:+d}",
        )
        for distance in range(1, furthest + 1)
        for by in (distance, -distance)
    )


def divided(wrong: WrongResult) -> str | None:
    """An average was not divided by P, or a sum was."""
    size, want = wrong.case.ranks, wrong.want
    if size == 1 or want is None or want.dtype == np.bool_:
        return None
    with np.errstate(all="ignore"):
        times = Numbers(want.flat * size, want.shapes, want.dtype)
        parts = Numbers(want.flat // size if want.exact else want.flat / size, want.shapes, want.dtype)
    return wrong.first(
        [
            (f"it is not divided by P = {size}", times, f"{size} times the golden"),
            (f"it is divided by P = {size}", parts, f"the golden divided by {size}"),
        ]
    )


def narrow(wrong: WrongResult) -> str | None:
    """It was rounded to 16 bits, or added up in them."""
    return sixteen_bits(wrong.case, wrong.call, wrong.rank, wrong.outputs[wrong.rank], wrong.oracle.number)


def tail_dropped(wrong: WrongResult) -> str | None:
    """All is right but the end: elements that are zero, or missing."""
    got, want, off = wrong.got, wrong.want, wrong.off
    if got is None or want is None:
        return None
    size, whole = len(got.flat), len(want.flat)
    if off is not None:
        right = int(off[0])
        dropped = 0 < right == size - len(off) and not got.flat[right:].any()
        return (
            f"the tail is dropped (the first {right} of {size} elements are right, the rest is zero)"
            if dropped
            else None
        )
    if size >= whole or not wrong.equal_everywhere(Numbers(want.flat[:size], got.shapes, want.dtype)):
        return None
    return f"the tail is dropped (the first {size} of {whole} elements are right, the rest is missing)"


def zero(wrong: WrongResult) -> str | None:
    """Nothing was ever written, or added up."""
    return "it is zero everywhere" if wrong.got is not None and not wrong.got.flat.any() else None


HYPOTHESES: dict[str, Callable[[WrongResult], str | None]] = {
    "zero": zero,
    "16 bits": narrow,
    "every rank has the same chunk": every_rank_has_the_same,
    "short of a contribution": short_of_contributions,
    "a contribution of another call": contribution_of_another_call,
    "another rank's result": another_rank,
    "the result of another call": another_call,
    "an input that was not reduced": an_input,
    "a contribution of another rank": contribution_of_another_rank,
    "a finished total instead of an input": total_for_an_input,
    "several of these": several_at_once,
    "divided or not divided by P": divided,
    "a tail dropped": tail_dropped,
    "chunk boundaries shifted": shifted,
}
"""Name -> what tries it, the more particular ones first."""


def diagnose(oracle: Oracle, call: int, rank: int, outputs: Sequence[Any]) -> str | None:
    """Return what a wrong result is instead, as a clause; None if no hypothesis gives the numbers.

    Args:
        oracle: of the case.
        call: which call gave the result.
        rank: which rank gave it.
        outputs: the results of all ranks in that call.

    """
    if not oracle.case.right_results[call]:
        return None
    key = (call, rank, *(None if y is MISSING else digest_value(y) for y in outputs))
    if key not in oracle.explained:  # shrinking a witness meets the same wrong results again and again
        oracle.explained[key] = _tried(WrongResult(oracle, call, rank, outputs))
    return oracle.explained[key]


def _tried(wrong: WrongResult) -> str | None:
    for whole in (True, False):  # what explains all of it says more than what explains the part that is wrong
        wrong.whole = whole
        for hypothesis in HYPOTHESES.values():
            claim = hypothesis(wrong)
            if claim is not None:
                return claim
    return None


# Words.


def _call(wrong: WrongResult, call: int) -> str:
    near = {-1: "the previous call, ", 0: "this call, ", 1: "the next call, "}
    return f"{near.get(call - wrong.call, '')}call {call}"


def _ranks(ranks: Sequence[int]) -> str:
    *others, last = map(str, ranks)
    return f"ranks {', '.join(others)} and {last}" if others else f"rank {last}"


def _taken_for_inputs(ranks: Sequence[int], when: str = "") -> str:
    """``rank 1's finished total was taken for an input``, in singular or plural."""
    if len(ranks) == 1:
        return f"{_possessive(ranks)} finished total{when} was taken for an input"
    return f"the finished totals{when} of {_ranks(ranks)} were taken for inputs"


def _possessive(ranks: Sequence[int]) -> str:
    return f"{_ranks(ranks)}'s"


def zeroed(ranks: Sequence[int], xs: list[Any]) -> list[Any]:
    """Make the inputs of some ranks zero; the given ones are left as they are, here and below.

    Args:
        ranks: whose.
        xs: the input of each rank.

    """
    return [each(x, np.zeros_like) if rank in ranks else x for rank, x in enumerate(xs)]


def taken_from(others: Sequence[Any], ranks: Sequence[int], xs: list[Any]) -> list[Any]:
    """Replace the inputs of some ranks.

    Args:
        others: one for each rank.
        ranks: whose are replaced.
        xs: the input of each rank.

    """
    return [others[rank] if rank in ranks else x for rank, x in enumerate(xs)]


def swapped(rank: int, other: int, xs: list[Any]) -> list[Any]:
    """Replace a rank's input by that of another.

    Args:
        rank: whose is replaced.
        other: whose it becomes.
        xs: the input of each rank.

    """
    return taken_from([xs[other]] * len(xs), [rank], xs)


def _rolled(by: int, xs: list[Any]) -> list[Any]:
    """Rotate all inputs by so many elements, in row-major order."""
    return [each(x, lambda array: np.roll(array, by)) for x in xs]


def _finished(totals: Sequence[Any], ranks: Sequence[int], xs: list[Any]) -> list[Any] | None:
    """Replace the inputs of some ranks by their totals, one a chunk; None unless a whole number of totals fits each."""
    changed = list(xs)
    for rank in ranks:
        x, total = xs[rank], totals[rank]
        if not isinstance(x, np.ndarray) or not isinstance(total, np.ndarray) or not total.size or x.size % total.size:
            return None
        changed[rank] = np.resize(total, x.shape).astype(x.dtype)
    return changed


def _mixed(
    others: Sequence[Any], stale: Sequence[int], totals: Sequence[Any], done: Sequence[int], xs: list[Any]
) -> list[Any] | None:
    """Replace the inputs of the `stale` ranks by others, and those of the ranks that are done by their totals."""
    return _finished(totals, done, taken_from(others, stale, xs))
