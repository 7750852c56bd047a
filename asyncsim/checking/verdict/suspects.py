"""Suspects: what an analysis suspects is run in both orders, shrunk, and kept; of many ranks, it is shown by few."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from asyncsim.checking.witness.overflow import LeavesRange, overflow_in_run, overflow_witness
from asyncsim.checking.witness.shrink import shrink
from asyncsim.checking.witness.swapped import FailsByPair, Swap
from asyncsim.checking.witness.witness import failures_in_words, race_witness
from asyncsim.machine.direct import drive
from asyncsim.schedulers.replay import Replay
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.event import OVERFLOW

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from asyncsim.analysis.analyse import Analysis
    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.search.keep import WitnessWriter
    from asyncsim.checking.verdict.account import Account
    from asyncsim.checking.verdict.report import Report
    from asyncsim.checking.witness.witness import Witness
    from asyncsim.machine.case import Case, Run
    from asyncsim.trace.finding import Finding

MANY_RANKS, FEW_RANKS = 32, (2, 3, 4)
"""Of findings at so many ranks the witness is looked for at a few first."""
SHRINK_STEPS = 60_000
"""How many steps shrinking one witness may cost; 20 runs are made in any case (5 if less was asked for), unless ..."""
LONG = 1_000_000
"""... a run is so long: then the witness is left as it is."""


class Suspects:
    """Makes the witness of each suspect.

    Args:
        judge: of the runs of the case that is judged.
        writer: keeps the witnesses.
        account: takes the findings.
        again: judges the case at fewer ranks.
        shrinking: how many steps it may cost to shrink one witness.

    """

    def __init__(
        self,
        judge: Judge,
        writer: WitnessWriter,
        account: Account,
        again: Callable[[Case], Awaitable[Report]],
        *,
        shrinking: int = SHRINK_STEPS,
    ) -> None:
        self._case = judge.case
        self._judge = judge
        self._writer = writer
        self._account = account
        self._again = again
        self._shrinking = shrinking
        self._fewer: list[tuple[int, Finding]] | None = None

    async def look(self, suspect: Finding, analysis: Analysis, *, steps: int) -> None:
        """Make the witness of a suspect, shrink it, keep it.

        Args:
            suspect: of the analysis, with examples.
            analysis: says what else is suspected, and whether it suspects only what some schedule shows.
            steps: of the reference run.

        """
        account = self._account
        if suspect.kind == OVERFLOW and any(_is_shown(finding, suspect) for finding in account.findings):
            return  # the run itself has shown it
        begun = account.run("run of a witness", total=steps)
        if suspect.kind == OVERFLOW:
            seen = await overflow_witness(self._judge, suspect, analysis.disputed, begun)
        else:
            seen = await race_witness(self._judge, suspect, exact=analysis.exact, begun=begun)
        account.schedules += seen.schedules
        if not seen.confirmed and not analysis.exact:
            return  # frontiers are approximate then: what no run shows is not reported
        finding = _told(suspect, seen)
        account.findings.append(finding)  # before its witness is shrunk: Ctrl-C must not lose it
        if seen.harmful and (small := await self._at_fewer_ranks(finding)) is not None:
            account.findings[-1] = small
            return
        if seen.choices:
            account.findings[-1] = await self._kept(finding, seen, analysis, steps)
        account.tell()

    def leave(self, suspects: Sequence[Finding], *, exact: bool) -> None:
        """Tell of the suspects that nobody will look at any more, the first of which may have been begun.

        Args:
            suspects: in the order in which they would have been looked at.
            exact: whether the analysis is exact: then each becomes a finding, of which it is not known whether it
                does harm; else they are counted in a note.

        """
        told = {(finding.kind, finding.examples) for finding in self._account.findings}
        left = [suspect for suspect in suspects if (suspect.kind, suspect.examples) not in told]
        if exact:
            shown = "not shown: the check was interrupted before"
            self._account.findings += [suspect.with_(harmful=None, shown=shown) for suspect in left]
        elif left:
            self._account.notes.append(f"the analysis suspects {len(left)} more, which were not looked at")

    async def _kept(self, finding: Finding, seen: Witness, analysis: Analysis, steps: int) -> Finding:
        """Return the finding with its witness, shrunk; if Ctrl-C comes meanwhile, it gets the one there is."""
        choices: Sequence[str] = seen.choices
        told = finding
        try:
            if seen.harmful and seen.failure and steps <= LONG:
                self._account.begin("shrinking of a witness")
                short = await self._shrunk(finding, seen, analysis, steps)
                told, choices = await self._retold(finding, short), short
            self._account.begin("writing of a witness")
            return await self._writer.write_witness(told, choices, ending=seen.ending)
        except KeyboardInterrupt:
            if steps <= LONG:  # else it would take too long, with nobody heard
                self._account.interrupt()
                self._account.findings[-1] = await self._writer.write_witness(told, choices, ending=seen.ending)
            raise

    async def _shrunk(self, finding: Finding, seen: Witness, analysis: Analysis, steps: int) -> list[str]:
        """Return the witness in the fewest task switches that still fail in the same way, and by the same order."""
        least = 20 if self._shrinking >= SHRINK_STEPS else 5
        budget = min(max(self._shrinking // max(steps, 1), least), 400)
        fails = self._fails(finding, seen, analysis)
        return await shrink.aio(self._case, seen.choices, fails, budget=budget)

    def _fails(self, finding: Finding, seen: Witness, analysis: Analysis) -> Callable[[Run], bool]:
        """Return what says of a run that it shows what the witness shows."""
        if finding.kind == OVERFLOW:
            return LeavesRange(self._judge, finding.sides[0].region, seen.ending, analysis.disputed)
        return FailsByPair(
            self._judge, Swap(*finding.sides),
            known=seen.choices, kinds=seen.failure, ending=seen.ending, right=seen.right,
            disputed=analysis.disputed, doubted=not analysis.exact,
        )  # fmt: skip

    async def _retold(self, finding: Finding, choices: Sequence[str]) -> Finding:
        """Return the finding with what its shrunk witness shows."""
        if finding.kind == OVERFLOW:
            return await overflow_in_run(self._judge, finding, choices)
        run = drive(self._case, Replay(choices))
        return finding.with_(shown=await failures_in_words(self._judge, run))

    async def _at_fewer_ranks(self, suspect: Finding) -> Finding | None:
        """Return a harmful finding with the witness of the same one among a few ranks, where many are judged.

        A race of a thousand ranks is mostly one of two: that schedule is short, and can be looked at. That it
        does harm among the many was seen before; among a few it might do where among many it does not.
        """
        if self._case.ranks < MANY_RANKS:
            return None
        if self._fewer is None:
            self._fewer = await self._judge_fewer()
        for ranks, finding in self._fewer:
            if finding.harmful and _place(finding) == _place(suspect):
                text = f"{suspect.shown}; the replay shows the same race at P = {ranks}: {finding.shown}"
                return suspect.with_(shown=text, token=finding.token, trace=finding.trace)
        return None

    async def _judge_fewer(self) -> list[tuple[int, Finding]]:
        found = []
        for ranks in FEW_RANKS:
            self._account.begin(f"check at P = {ranks}")
            try:
                report = await self._again(replace(self._case, ranks=ranks))
            except (KernelError, MisuseError):
                continue  # the kernel is not made for so few
            self._account.schedules += report.schedules
            if report.interrupted:
                raise KeyboardInterrupt
            found += [(ranks, finding) for finding in report.findings]
        return found


def _told(suspect: Finding, seen: Witness) -> Finding:
    """Return a suspect with what its witness showed, about the operations that it showed it of."""
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


def _place(finding: Finding) -> tuple[object, ...]:
    """Return what two findings have in common that differ in their ranks only."""
    return finding.kind, finding.hazard, finding.scope, finding.window, tuple(side.at for side in finding.sides)
