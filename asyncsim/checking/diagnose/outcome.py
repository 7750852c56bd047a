"""What a run itself shows: wrong results, ranks that differ, hangs; told from the outputs alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.checking.diagnose.hypotheses import diagnose
from asyncsim.checking.diagnose.oracle import Oracle
from asyncsim.machine.case import MISSING
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


@dataclass(frozen=True, slots=True)
class Difference:
    """Where an output is not what it should be.

    Args:
        elements: how many differ, of how many.
        text: the first few, in words.

    """

    elements: int
    text: str


def compare(got: Any, want: Any, *, rtol: float, atol: float) -> Difference | None:  # noqa: ANN401 - any output
    """Return how an output differs from its golden, beyond the tolerance; None if it does not.

    Floating and complex numbers are compared in double precision, NaN equal to NaN; integers and
    booleans must be equal. The dtype is the kernel's own choice, the shape is not.

    Args:
        got: the output: an array, a number, a text, None, or a list or tuple of such.
        want: the golden.
        rtol: relative to the golden.
        atol: absolute, in addition.

    """
    if isinstance(got, list | tuple) or isinstance(want, list | tuple):
        return _compare_parts(got, want, rtol=rtol, atol=atol)
    if got is None or want is None or isinstance(got, str) or isinstance(want, str):
        same = type(got) is type(want) and got == want
        return None if same else Difference(1, f"got {_short(got)}, expected {_short(want)}")
    a, b = np.asarray(got), np.asarray(want)
    if a.shape != b.shape:
        return Difference(max(a.size, 1), f"got shape {a.shape}, expected {b.shape}")
    if a.dtype.kind in "biu" and b.dtype.kind in "biu":
        off = a != b
    else:
        wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
        with np.errstate(all="ignore"):
            off = ~np.isclose(a.astype(wide), b.astype(wide), rtol=rtol, atol=atol, equal_nan=True)
    count = int(np.count_nonzero(off))
    if not count:
        return None
    places = np.argwhere(off)[:3]
    shown = ", ".join(f"{_index(place)}{a[tuple(place)]!s} instead of {b[tuple(place)]!s}" for place in places)
    return Difference(count, f"{count} of {a.size} elements differ: {shown}{', …' if count > len(places) else ''}")


def _compare_parts(got: Any, want: Any, *, rtol: float, atol: float) -> Difference | None:  # noqa: ANN401
    try:
        parts = list(zip(got, want, strict=True))
    except (TypeError, ValueError):
        return Difference(1, f"got {_short(got)}, expected {_short(want)}")
    differences = [compare(a, b, rtol=rtol, atol=atol) for a, b in parts]
    bad = [(n, difference) for n, difference in enumerate(differences) if difference is not None]
    if not bad:
        return None
    return Difference(sum(d.elements for _, d in bad), "; ".join(f"output {n}: {d.text}" for n, d in bad))


def _short(value: Any) -> str:  # noqa: ANN401
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, list | tuple) else repr(value)[:60]


def _index(place: Any) -> str:  # noqa: ANN401 - a row of argwhere
    return f"[{', '.join(str(int(n)) for n in place)}] is " if len(place) else ""


class Judge:
    """Says of each run of a case what is wrong with it.

    Args:
        case: the case. A run with the same bits as one that was found right needs no second look.

    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self._oracle = Oracle(case)
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
        wanted = self.case.goldens if self.case.goldens is not None else self._reference
        if wanted is None:
            return []
        kernel = self.case.kernel
        exact = self.case.goldens is None
        found = []
        for call, (outputs, wants) in enumerate(zip(run.outputs, wanted, strict=True)):
            for rank, (got, want) in enumerate(zip(outputs, wants, strict=True)):
                if got is MISSING or want is MISSING:
                    continue
                tolerance = (0.0, 0.0) if exact else (kernel.rtol, kernel.atol)
                difference = compare(got, want, rtol=tolerance[0], atol=tolerance[1])
                if difference is not None:
                    found.append((call, rank, difference))
        return found

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
        against = "the golden" if self.case.goldens is not None else "the result of the fair schedule"
        why = f"rank {rank}'s result of call {call} is not {against}: {difference.text}"
        reason = diagnose(self._oracle, call, rank, run.outputs[call])
        if reason is not None:
            why = f"{why}; {reason}"
        return [Finding("wrong-result", why, pairs=len(wrong), harmful=True, sides=sides, shown=difference.text)]

    def _ranks_differ(self, run: Run) -> list[Finding]:
        if not self.case.kernel.same_on_all_ranks:
            return []
        for call, outputs in enumerate(run.outputs):
            known = [(rank, y) for rank, y in enumerate(outputs) if y is not MISSING]
            different = [(rank, y) for rank, y in known if digest_value(y) != digest_value(known[0][1])]
            if different:
                (first, want), (other, got) = known[0], different[0]
                difference = compare(got, want, rtol=0.0, atol=0.0)
                text = difference.text if difference is not None else "they differ in sign of zero, NaN bits or dtype"
                why = (
                    f"rank {other}'s result of call {call} differs from rank {first}'s, "
                    f"and the kernel promises equal ones: {text}"
                )
                sides = (_result(run, call, first), _result(run, call, other))
                return [Finding("ranks-differ", why, pairs=len(different), harmful=True, sides=sides, shown=text)]
        return []


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
