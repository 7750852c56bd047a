"""Witnesses of suspects: what an analysis suspects is run in both orders, shrunk and kept; for many ranks, at few."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING

from asyncsim.checking.witness.older import older_witness
from asyncsim.checking.witness.overflow import LeavesRange, overflow_in_run, overflow_witness
from asyncsim.checking.witness.shrink import shrink
from asyncsim.checking.witness.swapped import FailsByPair, Swap
from asyncsim.checking.witness.witness import Witness, failures_in_words, race_witness
from asyncsim.machine.direct import drive
from asyncsim.schedulers.replay import Replay
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.event import OVERFLOW
from asyncsim.trace.late import model_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from asyncsim.analysis.analyse import Analysis
    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.search.witness_writer import WitnessWriter
    from asyncsim.checking.verdict.report import Report
    from asyncsim.checking.verdict.state import CheckState
    from asyncsim.machine.case import Case, Run
    from asyncsim.machine.course import Begun
    from asyncsim.trace.finding import Finding

MANY_RANKS, FEW_RANKS = 32, (2, 3, 4)
"""Of findings at so many ranks the witness is looked for at a few first."""
SHRINK_STEPS = 60_000
"""How many steps shrinking one witness may cost; 20 runs are made in any case (5 if less was asked for), unless ..."""
LONG = 1_000_000
"""... a run is so long: then the witness is left as it is."""


@dataclass(slots=True)
class SuspectWitnesses:
    """Makes the witness of each suspect.

    Args:
        judge: of the runs of the case that is checked.
        writer: keeps the witnesses.
        state: of the check; gets the findings.
        check_fewer: checks the case at fewer ranks.
        shrinking: how many steps it may cost to shrink one witness.

    """

    judge: Judge
    writer: WitnessWriter
    state: CheckState
    check_fewer: Callable[[Case], Awaitable[Report]]
    _: KW_ONLY
    shrinking: int = SHRINK_STEPS
    _few_rank_findings: list[tuple[int, Finding]] | None = field(default=None, init=False)

    async def confirm(self, suspect: Finding, analysis: Analysis, *, steps: int) -> None:
        """Make the witness of a suspect, shrink and keep it, and add the finding.

        Args:
            suspect: of the analysis, with examples.
            analysis: says what else is suspected, and whether it suspects only what some schedule shows.
            steps: of the reference run.

        """
        state = self.state
        if suspect.kind == OVERFLOW and any(_is_shown(finding, suspect) for finding in state.findings):
            return  # the run itself has shown it
        begun = state.begin_run("run of a witness", total=steps)
        if suspect.kind == OVERFLOW:
            seen = await overflow_witness(self.judge, suspect, analysis.disputed, begun)
        else:
            seen = await self._race_witness(suspect, begun, exact=analysis.exact)
        state.schedules += seen.schedules
        if not seen.confirmed and not analysis.exact:
            return  # frontiers are approximate then: what no run shows is not reported
        finding = _as_finding(suspect, seen)
        state.findings.append(finding)  # before its witness is shrunk: Ctrl-C must not lose it
        if seen.harmful and (small := await self._at_fewer_ranks(finding)) is not None:
            state.findings[-1] = small
            return
        if seen.choices:
            state.findings[-1] = await self._with_witness(finding, seen, analysis, steps)
        state.report_progress()

    async def _race_witness(self, suspect: Finding, begun: Begun, *, exact: bool) -> Witness:
        """Return what shows a race: under ``gpu`` a read of what was there before, else the other order of the two."""
        seen = Witness()
        if model_of(self.judge.case.memory).scoped:
            seen = await older_witness(self.judge, suspect, begun=begun)
        if seen.harmful:
            return seen
        turned = await race_witness(self.judge, suspect, exact=exact, begun=begun)
        best = turned if turned.confirmed or not seen.confirmed else seen
        return replace(best, schedules=seen.schedules + turned.schedules)

    def add_unconfirmed(self, suspects: Sequence[Finding], *, exact: bool) -> None:
        """Report the suspects that are not confirmed because Ctrl-C came; the first may have been begun.

        Args:
            suspects: in their order.
            exact: whether the analysis is exact: then each becomes a finding that is not known to be harmful; else
                they are counted in a note.

        """
        known = {(finding.kind, finding.examples) for finding in self.state.findings}
        left = [suspect for suspect in suspects if (suspect.kind, suspect.examples) not in known]
        if exact:
            shown = "not shown: the check was interrupted before"
            self.state.findings += [suspect.with_(harmful=None, shown=shown) for suspect in left]
        elif left:
            self.state.notes.append(f"the analysis suspects {len(left)} more, which were not looked at")

    async def _with_witness(self, finding: Finding, seen: Witness, analysis: Analysis, steps: int) -> Finding:
        """Return the finding with its shrunk witness; if Ctrl-C comes meanwhile, with the one there is."""
        choices: Sequence[str] = seen.choices
        described = finding
        try:
            if seen.harmful and seen.failure and steps <= LONG and not seen.memory:
                self.state.begin_stage("shrinking of a witness")
                short = await self._shrunk(finding, seen, analysis, steps)
                described, choices = await self._described(finding, short), short
            self.state.begin_stage("writing of a witness")
            return await self.writer.write_witness(described, choices, ending=seen.ending, memory=seen.memory)
        except KeyboardInterrupt:
            if steps <= LONG:  # else it would take too long, deaf to Ctrl-C
                self.state.interrupt()
                self.state.findings[-1] = await self.writer.write_witness(
                    described, choices, ending=seen.ending, memory=seen.memory
                )
            raise

    async def _shrunk(self, finding: Finding, seen: Witness, analysis: Analysis, steps: int) -> list[str]:
        """Return the witness in the fewest task switches that still fail in the same way, and by the same order."""
        least = 20 if self.shrinking >= SHRINK_STEPS else 5
        budget = min(max(self.shrinking // max(steps, 1), least), 400)
        fails = self._fails(finding, seen, analysis)
        return await shrink.aio(self.judge.case, seen.choices, fails, budget=budget)

    def _fails(self, finding: Finding, seen: Witness, analysis: Analysis) -> Callable[[Run], bool]:
        """Return a predicate: whether a run fails as the witness does."""
        if finding.kind == OVERFLOW:
            return LeavesRange(self.judge, finding.sides[0].region, seen.ending, analysis.disputed)
        return FailsByPair(
            self.judge, Swap(*finding.sides),
            known=seen.choices, kinds=seen.failure, ending=seen.ending, right=seen.right,
            disputed=analysis.disputed, doubted=not analysis.exact,
        )  # fmt: skip

    async def _described(self, finding: Finding, choices: Sequence[str]) -> Finding:
        if finding.kind == OVERFLOW:
            return await overflow_in_run(self.judge, finding, choices)
        run = drive(self.judge.case, Replay(choices))
        return finding.with_(shown=await failures_in_words(self.judge, run))

    async def _at_fewer_ranks(self, suspect: Finding) -> Finding | None:
        """Return a harmful finding with the witness of the same one among a few ranks, where many are judged.

        A race of a thousand ranks is mostly one of two: that schedule is short enough to be read. That it is harmful
        among the many was seen before; among a few it may be where among many it is not.
        """
        if self.judge.case.ranks < MANY_RANKS:
            return None
        if self._few_rank_findings is None:
            self._few_rank_findings = await self._judge_fewer()
        for ranks, finding in self._few_rank_findings:
            if finding.harmful and _kind_and_lines(finding) == _kind_and_lines(suspect):
                text = f"{suspect.shown}; the replay shows the same race at P = {ranks}: {finding.shown}"
                return suspect.with_(shown=text, token=finding.token, trace=finding.trace)
        return None

    async def _judge_fewer(self) -> list[tuple[int, Finding]]:
        found = []
        for ranks in FEW_RANKS:
            self.state.begin_stage(f"check at P = {ranks}")
            try:
                report = await self.check_fewer(replace(self.judge.case, ranks=ranks))
            except (KernelError, MisuseError):
                continue  # the kernel is not made for so few
            self.state.schedules += report.schedules
            if report.interrupted:
                raise KeyboardInterrupt
            found += [(ranks, finding) for finding in report.findings]
        return found


def _as_finding(suspect: Finding, seen: Witness) -> Finding:
    """Return a suspect as a finding, with what its witness showed and the operations that it showed it of."""
    finding = suspect.with_(harmful=seen.harmful if seen.confirmed else None, shown=seen.shown)
    if not seen.confirmed:
        return finding
    why, rest = suspect.whys[seen.example], suspect.pairs - len(suspect.examples)
    if seen.pairs < suspect.pairs and rest > 0:
        why = f"{why} (counted are the pairs that were brought together; {rest} more were not tried)"
    sides = seen.sides or suspect.examples[seen.example]
    return finding.with_(sides=sides, why=why, pairs=seen.pairs)


def _is_shown(finding: Finding, suspect: Finding) -> bool:
    return finding.kind == OVERFLOW and finding.window in (None, suspect.window)


def _kind_and_lines(finding: Finding) -> tuple[object, ...]:
    """Return what two findings have in common that differ in their ranks only."""
    return finding.kind, finding.hazard, finding.scope, finding.window, tuple(side.at for side in finding.sides)
