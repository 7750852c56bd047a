"""What one run shows by itself, beside the fair run of the same case. Replaying and shrinking ask this."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.analysis.contracts import leftover_credits
from asyncsim.analysis.group import FairOrder, findings_of
from asyncsim.analysis.mismatch import call_mismatches
from asyncsim.analysis.streams import Streams
from asyncsim.checking.diagnose.hang import told
from asyncsim.checking.diagnose.outcome import Difference, Judge, compare
from asyncsim.machine.case import MISSING, Case
from asyncsim.machine.direct import drive
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.digest import digest_value
from asyncsim.trace.errors import KernelError
from asyncsim.trace.finding import Finding

if TYPE_CHECKING:
    from asyncsim.machine.case import Run

_BITS = "the same numbers in other bits (a sign of zero, a NaN, or a dtype)"


class Symptoms:
    """Says of runs what fails in them: what a judge finds, a result that no fair run gives, left credits.

    Args:
        case: what the runs are runs of; makes one fair run.

    """

    def __init__(self, case: Case) -> None:
        """Make the fair run; a kernel that raises in it has none."""
        self._judge = Judge(case)
        self._fair: Run | None = None
        try:
            self._fair = drive(case, Fifo())
        except KernelError:
            return
        self._judge.take_as_reference(self._fair)

    def findings(self, run: Run) -> list[Finding]:
        """Return what fails in a run; left credits and collectives that do not match only if the run was recorded."""
        found = self._judge.findings(run)
        if run.trace is not None:
            found = [told(run.case, finding, run.choices, run.trace) for finding in found]
            found = [*call_mismatches(run.trace), *found]
            streams = Streams(run.trace)
            left = findings_of(streams, leftover_credits(streams), FairOrder(streams, None))
            found += [finding.with_(harmful=True) for finding in left]
        if not found and (others := self._other_bits(run)):
            call, rank, difference = others[0]
            why = f"rank {rank}'s result of call {call} is not that of the fair schedule: {difference.text}"
            found = [Finding("wrong-result", why, pairs=len(others), harmful=True, shown=difference.text)]
        return found

    def differences(self, run: Run) -> list[tuple[int, int, Difference]]:
        """Return (call, rank, difference) for every wrong result; else for all that the fair run does not give."""
        return self._judge.differences(run) or self._other_bits(run)

    def _other_bits(self, run: Run) -> list[tuple[int, int, Difference]]:
        if self._fair is None:
            return []
        return [
            (call, rank, compare(got, want, rtol=0.0, atol=0.0) or Difference(1, _BITS))
            for call, (outputs, wants) in enumerate(zip(run.outputs, self._fair.outputs, strict=True))
            for rank, (got, want) in enumerate(zip(outputs, wants, strict=True))
            if got is not MISSING and want is not MISSING and digest_value(got) != digest_value(want)
        ]
