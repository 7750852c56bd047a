"""What a run itself shows: wrong results, ranks that differ, hangs; told from the outputs alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.checking.diagnose.compare import Difference, compare
from asyncsim.checking.diagnose.right import RightResults, wrong_results
from asyncsim.machine.case import MISSING
from asyncsim.machine.goldens import Predicate
from asyncsim.trace.digest import digest_value
from asyncsim.trace.event import COMPLETE
from asyncsim.trace.finding import Finding, Side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.case import Case, Run

_WHY = {
    "deadlock": "every actor that is left waits",
    "step-limit": "the run did not end within its limit of steps",
    "overflow": "a cell left its integer range, and its signal is not declared wrap=True",
}


RIGHT = "a right result"
"""The key of every end that is right, where several results are."""


class Judge:
    """Says of each run of a case what is wrong with it.

    Args:
        case: the case. A run with the same bits as one that was found right needs no second look.

    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self._right_results = RightResults(case)
        self._right: list[list[str | None]] | None = None
        self._reference: list[list[Any]] | None = None
        self._reference_digests: list[list[str | None]] = []
        self.steps = 0
        """How long the reference is."""
        self.fair: Sequence[str] = ()
        """The choices of the reference, once they are asked for: they weigh."""
        self.usual: frozenset[str] = frozenset()
        """What fails in the reference itself."""

    def digests(self, run: Run) -> list[list[str | None]]:
        """Return a digest of every output, None where there is none."""
        return [[None if y is MISSING else digest_value(y) for y in ys] for ys in run.outputs]

    def set_reference(self, run: Run) -> None:
        """Let a complete run stand for the golden where the kernel has none."""
        self.steps = len(run.choices)
        if run.ending == COMPLETE:
            self._reference = run.outputs
            self._reference_digests = self.digests(run)

    def set_fair_run(self, fair: Run) -> None:
        """Set the fair run that witnesses are compared with; it is large, so only where there are any."""
        self.fair = fair.choices
        self.usual = self.failures(fair)

    @property
    def silent(self) -> bool:
        """Whether the reference returned nothing, so that what it left in the windows is all that it made."""
        return self._reference is not None and all(y is None for ys in self._reference for y in ys)

    def is_reference(self, run: Run) -> bool:
        """Return whether a run gave the bits of the reference."""
        return self._reference is not None and self.digests(run) == self._reference_digests

    def differs_from_reference(self, run: Run) -> bool:
        """Return whether a run gave other bits than the reference; its numbers may be the same within tolerance."""
        return self._reference is not None and self.digests(run) != self._reference_digests

    def differences(self, run: Run) -> list[tuple[int, int, Difference]]:
        """Return (call, rank, difference) for every output that is wrong."""
        if self.case.kernel.golden is not None:
            wrong = [self._right_results.wrong(call, outputs) for call, outputs in enumerate(run.outputs)]
        elif self._reference is not None:
            pairs = zip(run.outputs, self._reference, strict=True)
            wrong = [wrong_results(outputs, wants, rtol=0.0, atol=0.0) for outputs, wants in pairs]
        else:
            wrong = []
        return [(call, rank, difference) for call, found in enumerate(wrong) for rank, difference in found]

    def another_right_result(self, run: Run, other: Run) -> bool:
        """Return whether two runs are both right, if several results are: then which one it is does not matter.

        Args:
            run: one of them.
            other: the other one; it may be the same.

        """
        return self.case.kernel.any_right and all(
            each.ending == COMPLETE and not self.failures(each) for each in (run, other)
        )

    def end_key(self, run: Run) -> str:
        """Return what two runs have in common that end alike; where several results are right, these are alike."""
        alike = self.case.kernel.any_right and self.another_right_result(run, run)
        return RIGHT if alike else f"{run.ending} {self.digests(run)}"

    def failures(self, run: Run) -> frozenset[str]:
        """Return all that fails in a run, each thing by itself, to compare runs by; nothing for one that is right."""
        if self._is_right(run):
            return frozenset()
        found = [f"{call} {rank} {difference.text}" for call, rank, difference in self.differences(run)]
        found += [finding.why for finding in self._ranks_differ(run)]
        if run.ending != COMPLETE:
            found.append(_ended(run))
        return frozenset([*found, *run.unwritten])

    def _is_right(self, run: Run) -> bool:
        """Return whether a run has the bits of one that was found right."""
        whole = run.ending == COMPLETE and not run.unwritten
        return whole and self._right is not None and self.digests(run) == self._right

    def findings(self, run: Run, beside: frozenset[str] = frozenset()) -> list[Finding]:
        """Return what is wrong with the run; nothing for a run with the reference's bits.

        Args:
            run: to be judged.
            beside: wrong results and endings, as `failures` names them, that are not told.

        """
        if self._is_right(run):
            return []
        findings = []
        if run.ending != COMPLETE and _ended(run) not in beside:
            steps = f"after {len(run.choices)} steps"
            findings.append(Finding(run.ending, _WHY[run.ending], harmful=True, shown=steps))
        if unwritten := [region for region in run.unwritten if region not in beside]:
            findings.append(_unwritten(run, unwritten))
        findings += self._wrong(run, beside)
        findings += self._ranks_differ(run)
        if not findings and not beside and run.ending == COMPLETE:
            self._right = self.digests(run)
        return findings

    def notes(self, run: Run) -> list[str]:
        """Return remarks on a right result: whether it is the golden to the bit."""
        goldens = self.case.goldens
        if goldens is None or self.differences(run):
            return []
        off = [
            rank
            for outputs, wants in zip(run.outputs, goldens, strict=True)
            for rank, (got, want) in enumerate(zip(outputs, wants, strict=True))
            if got is not MISSING and not _same_bits(got, want)
        ]
        if not off:
            return []
        ranks = ", ".join(map(str, sorted(set(off))))
        return [f"equal to the golden within tolerance, not bit for bit (rank {ranks}): another order of operations"]

    def _wrong(self, run: Run, beside: frozenset[str]) -> list[Finding]:
        wrong = [each for each in self.differences(run) if f"{each[0]} {each[1]} {each[2].text}" not in beside]
        if not wrong:
            return []
        call, rank, difference = wrong[0]
        sides = tuple(_result(run, call, rank) for call, rank, _ in wrong[:4])
        if isinstance(self.case.kernel.golden, Predicate):  # it refuses them together
            sides = tuple(_result(run, call, rank) for rank in range(self.case.ranks))
        if self.case.kernel.golden is None:
            why = f"rank {rank}'s result of call {call} is not the result of the fair schedule: {difference.text}"
        else:
            why = self._right_results.why(call, rank, difference, run.outputs[call])
        return [Finding("wrong-result", why, pairs=len(wrong), harmful=True, sides=sides, shown=difference.text)]

    def _ranks_differ(self, run: Run) -> list[Finding]:
        kernel = self.case.kernel
        if not kernel.same_on_all_ranks:
            return []
        for call, outputs in enumerate(run.outputs):
            if callable(kernel.same_on_all_ranks):  # it is asked of all results
                whole = all(y is not MISSING for y in outputs)
                known = [(rank, outputs[rank]) for rank in kernel.alike(outputs, call)] if whole else []
            else:
                known = [(rank, y) for rank, y in enumerate(outputs) if y is not MISSING]
            different = [(rank, y) for rank, y in known if digest_value(y) != digest_value(known[0][1])]
            if different:
                (first, want), (other, got) = known[0], different[0]
                difference = compare(got, want, rtol=0.0, atol=0.0)
                text = difference.text if difference is not None else "they differ in sign of zero, NaN bits or dtype"
                why = (
                    f"rank {other}'s result of call {call} differs from rank {first}'s, "
                    f"and the kernel promises equal ones{_among(known, outputs)}: {text}"
                )
                sides = (_result(run, call, first), _result(run, call, other))
                return [Finding("ranks-differ", why, pairs=len(different), harmful=True, sides=sides, shown=text)]
        return []


def _among(known: Sequence[tuple[int, Any]], outputs: Sequence[Any]) -> str:
    """Return on which ranks the results must be equal, if not on all that have one."""
    if len(known) == sum(y is not MISSING for y in outputs):
        return ""
    return f" on ranks {', '.join(str(rank) for rank, _ in known)}"


def _ended(run: Run) -> str:
    """Return how a run ended, and which results it lacks."""
    left = [(call, rank) for call, ys in enumerate(run.outputs) for rank, y in enumerate(ys) if y is MISSING]
    return f"{run.ending} {left}"


def _same_bits(got: Any, want: Any) -> bool:  # noqa: ANN401 - any two outputs that are equal within tolerance
    """Return whether an output is the golden bit for bit, in the output's own dtype."""
    if isinstance(got, list | tuple):
        return all(_same_bits(a, b) for a, b in zip(got, want, strict=True))
    array = np.asarray(got)  # None and a text, which are equal by now, have the same bytes, too
    with np.errstate(all="ignore"):  # a golden may be wider than what it is compared with
        return array.tobytes() == np.asarray(want).astype(array.dtype).tobytes()


def _result(run: Run, call: int, rank: int) -> Side:
    actor = run.case.world.actors[rank]
    return Side(actor.name, -1, rank, call, "", "return", f"the result of {run.case.kernel.name}", ())


def _unwritten(run: Run, regions: list[str]) -> Finding:
    return Finding(
        "unwritten-read",
        f"elements of {regions[0]} were read that nobody had written",
        window=run.case.world.memory_of(regions[0].partition("[")[0]),
        pairs=len(regions),
        harmful=True,
        shown=f"{len(regions)} such reads",
    )
