"""Which results of a call are right: those of the golden, of one of several, or all that a predicate accepts."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

from asyncsim.checking.diagnose.compare import Difference, compare
from asyncsim.checking.diagnose.hypotheses import diagnose, swapped, taken_from, zeroed
from asyncsim.checking.diagnose.oracle import Oracle
from asyncsim.machine.case import MISSING, copied
from asyncsim.machine.goldens import Predicate
from asyncsim.trace.digest import digest_value
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.machine.case import Case

    Wrong = list[tuple[int, Difference]]
    """The wrong results of a call: the rank, and how it differs."""

NEAR = 4
"""Against so many right results, the nearest ones, a wrong one is explained."""
KNOWN = 4096
"""So many answers of a predicate are kept."""


class RightResults:
    """Says of the results of a call which are wrong, and what they are instead.

    Args:
        case: of the runs that are judged.

    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self._oracles: dict[int, Oracle] = {}
        self._answers: dict[tuple[Any, ...], bool] = {}

    def wrong(self, call: int, outputs: Sequence[Any]) -> Wrong:
        """Return the wrong results of a call; what a predicate refuses is told once, at rank 0.

        Args:
            call: from 0.
            outputs: the result of each rank, `MISSING` where there is none.

        Raises:
            MisuseError: a predicate raised, or gave something else than a truth value, or not the same twice.

        """
        golden = self._case.kernel.golden
        if not isinstance(golden, Predicate):
            return self._nearest(call, outputs)[0][1]
        if any(y is MISSING for y in outputs) or self._accepts(golden, call, outputs):
            return []
        shown = "; ".join(f"rank {rank}: {_short(y)}" for rank, y in enumerate(outputs))
        return [(0, Difference(1, f"the predicate {golden} refuses what the ranks return together: {shown}"))]

    def why(self, call: int, rank: int, difference: Difference, outputs: Sequence[Any]) -> str:
        """Return in words how a wrong result of a call is wrong, and what it is instead.

        Args:
            call: from 0.
            rank: of `wrong`, as the difference.
            difference: how it differs.
            outputs: the result of each rank.

        """
        golden = self._case.kernel.golden
        if isinstance(golden, Predicate):
            reason = self._accepted_instead(golden, call, outputs)
            return f"in call {call} {difference.text}" + (f"; {reason}" if reason else "")
        nearest = self._nearest(call, outputs)
        number, several = nearest[0][0], len(nearest) > 1
        against = f"among the {len(nearest)} right results; beside the nearest, number {number + 1}" if several else (
            "the golden"
        )  # fmt: skip
        why = f"rank {rank}'s result of call {call} is not {against}: {difference.text}"
        each = set.intersection(*({rank for rank, _ in off} for _, off in nearest))
        if several and not each:
            why = f"{why}; every rank's result is in one of them, but none of them has all"
        for number, off in nearest[:NEAR]:
            if any(other == rank for other, _ in off):
                oracle = self._oracles.setdefault(number, Oracle(self._case, number))
                if (reason := diagnose(oracle, call, rank, outputs)) is not None:
                    reason = reason.replace("the golden", f"right result {number + 1}") if several else reason
                    return f"{why}; {reason}"
        return why

    def _nearest(self, call: int, outputs: Sequence[Any]) -> list[tuple[int, Wrong]]:
        """Return the right results by number, each with what differs from it, the nearest first."""
        kernel = self._case.kernel
        found: list[tuple[int, Wrong]] = []
        for number, wants in enumerate(self._case.right_results[call]):
            wrong = wrong_results(outputs, wants, rtol=kernel.rtol, atol=kernel.atol)
            if not wrong:
                return [(number, wrong)]
            found.append((number, wrong))
        return sorted(found, key=lambda one: (len(one[1]), sum(off.elements for _, off in one[1])))

    def _accepts(self, golden: Predicate, call: int, outputs: Sequence[Any]) -> bool:
        """Return whether the results of a call are right; asked twice, the predicate must agree with itself."""
        key = (call, *map(digest_value, outputs))
        known = self._answers.get(key)
        if known is None:
            if len(self._answers) >= KNOWN:
                self._answers.clear()
            what = f"{self._case.kernel.ref}: golden, for call {call}"
            first, second = (
                golden.holds(what, copied(self._case.inputs[call]), copied(list(outputs))) for _ in range(2)
            )
            if first != second:
                raise MisuseError(
                    f"{what}: the predicate {golden} gave {first} and then {second} for the same inputs and results; "
                    "it must depend on these alone"
                )
            known = self._answers[key] = first
        return known

    def _accepted_instead(self, golden: Predicate, call: int, outputs: Sequence[Any]) -> str | None:
        """Return for which other inputs the predicate accepts what it refuses, in words; None if none is found."""
        what = f"{self._case.kernel.ref}: golden, for call {call}"
        for words, xs in self._other_inputs(call):
            try:
                if golden.holds(what, copied(xs), copied(list(outputs))):
                    return f"it accepts this {words}"
            except MisuseError:
                continue  # it need not take inputs that its author did not think of
        return None

    def _other_inputs(self, call: int) -> Iterator[tuple[str, list[Any]]]:
        """Yield changed inputs of all ranks, and the change in words."""
        inputs, ranks = self._case.inputs, range(self._case.ranks)
        own = inputs[call]
        for other in sorted(set(range(self._case.calls)) - {call}, key=lambda other: (abs(other - call), other)):
            yield f"for the inputs of call {other}", inputs[other]
            for rank in ranks:
                yield f"if rank {rank}'s input is that of call {other}", taken_from(inputs[other], [rank], own)
        for rank in ranks:
            yield f"if rank {rank}'s input is zero", zeroed([rank], own)
        for rank, peer in permutations(ranks, 2):
            yield f"if rank {rank}'s input is that of rank {peer}", swapped(rank, peer, own)


def wrong_results(outputs: Sequence[Any], wants: Sequence[Any], *, rtol: float, atol: float) -> Wrong:
    """Return how the results of a call differ from others, rank by rank; what either lacks is not compared.

    Args:
        outputs: the result of each rank, or `MISSING`.
        wants: what is right, likewise.
        rtol: relative to what is right.
        atol: absolute, in addition.

    """
    found = []
    for rank, (got, want) in enumerate(zip(outputs, wants, strict=True)):
        if got is MISSING or want is MISSING:
            continue
        difference = compare(got, want, rtol=rtol, atol=atol)
        if difference is not None:
            found.append((rank, difference))
    return found


def _short(value: Any) -> str:  # noqa: ANN401 - a result
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:59]}…"  # noqa: PLR2004 - a line has room for a few of them
