"""Repair: the cheapest change of a refuted kernel's source that makes it right, found by trying changes.

Each changed file is loaded, and its kernel run and analysed once, on few ranks; what the analysis lets
pass is judged in full. The kinds of changes are tried in the order of `asyncsim.study.proposals`, so
that the first kind with a repair has the cheapest: among its repairs those are taken that add the fewest
operations. Where no one change is enough, pairs of those that help are tried.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from asyncsim.analysis.analyse import ORDER_FINDINGS, analyse
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.verdict.check import check
from asyncsim.checking.verdict.models import AUTO
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.study.additions import additions, barriers
from asyncsim.study.proposals import ADDING, BARRIER, CREDIT, KINDS, SYNC, RepairContext, proposals
from asyncsim.study.siblings import Siblings
from asyncsim.study.source import Source, UnreadableError, overlap, visited
from asyncsim.trace.errors import AsyncsimError
from asyncsim.trace.event import COMPLETE
from asyncsim.trace.finding import PROVED, SAME_CALL
from asyncsim.trace.kinds import FETCHING, LANDING, SIGNALLING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.checking.verdict.report import Report
    from asyncsim.machine.case import Case, Run
    from asyncsim.study.proposals import Proposal
    from asyncsim.study.source import Change
    from asyncsim.trace.finding import Finding, Side

TRIES = 240
"""How many changes of each kind, and how many pairs, are run and analysed at most."""
CONFIRMED = 5
"""How many equally cheap repairs are judged in full."""
HELPFUL = 2
"""How many changes of each kind are paired, of those that help in the same way."""
FEW = 4
"""On how many ranks a change is tried first; where so few do not show what is wrong, on as many as were asked for."""
PATIENCE = 8
"""How many times longer than before the run of a changed kernel may be."""
OTHERS = (2, 3, 4)
"""On how many ranks a repair should be right, too, if the kernel can be run on so many."""

FINDINGS = 3
"""For how many findings a wait between their two sides is tried."""
_NAMES = {CREDIT: "credit", BARRIER: "met", SYNC: "both"}
"""What a signal or a stream barrier that is added is called, where nothing else is."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Changes of the source that make a kernel right.

    Args:
        kind: the dearest of them, one of `asyncsim.study.proposals.KINDS`.
        words: what they are, as the end of "PROVED with ...".
        operations: how many operations they add to a run of all ranks and calls.
        between: between what and what an order is missing, in words.
        diff: of the file, as `patch -p0` takes it.
        report: on the repaired kernel: PROVED.
        fails: on how many other ranks it does not make the kernel right.
        siblings: the names of other kernels of the file that are changed with it, and are as good as before.
        unjudged: of those that are changed with it, too, but were not judged.

    """

    kind: str
    words: str
    operations: int
    between: str
    diff: str
    report: Report
    fails: tuple[int, ...] = ()
    siblings: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of this repair."""
        return {
            "kind": self.kind, "change": self.words, "operations": self.operations, "between": self.between,
            "diff": self.diff, "fails": list(self.fails), "siblings": list(self.siblings),
            "unjudged": list(self.unjudged), "verdict": self.report.verdict, "scope": self.report.scope,
        }  # fmt: skip


@dataclass(slots=True)
class Repairs:
    """What a search for repairs came to.

    Args:
        found: the cheapest repairs, the likeliest first.
        note: why there is none, or what was not tried; as the end of a sentence.

    """

    found: list[Repair] = field(default_factory=list)
    note: str = ""


async def repair(report: Report, *, memory: str = "") -> Repairs:
    """Return the cheapest repairs of a refuted kernel.

    Args:
        report: on the kernel as it stands.
        memory: the memory model under which a repair must be proved, or "auto": every one under which the kernel as it
            stands is judged; by default the report's.

    """
    kinds = (*ORDER_FINDINGS, "deadlock")
    ordered = [finding for finding in report.findings if finding.kind in kinds and finding.sides]
    if not report.refuted:
        return Repairs()
    timing = (*kinds, "unwritten-read")
    if not ordered or not any(finding.harmful and finding.kind in timing for finding in report.findings):
        return Repairs(note="what is wrong is not the order of operations, which is all that is looked at")
    try:
        source = Source(report.case.kernel)
        models = ("sc", *report.models_said) if memory == AUTO else (report.case.memory,)
        return await _Search(report.case, source, ordered, models).run()
    except UnreadableError as error:
        return Repairs(note=f"none was looked for: {error}")


@dataclass(frozen=True, slots=True)
class _Attempt:
    """What one run of a changed kernel says.

    Args:
        changes: what was changed.
        run: on few ranks.
        wrong: what is wrong still; empty: the analysis let it pass.

    """

    changes: tuple[Proposal, ...]
    run: Run
    wrong: frozenset[object]


class _Search:
    """One search for a repair."""

    def __init__(self, case: Case, source: Source, findings: Sequence[Finding], models: Sequence[str]) -> None:
        self._case = case
        self._models = models
        self._source = source
        self._findings = findings
        self._baselines: dict[int, _Attempt | None] = {}
        self._cut_kinds: list[str] = []
        self._siblings = Siblings(source, case, models)

    async def run(self) -> Repairs:
        """Try single changes kind by kind; then, of those that help, pairs."""
        for ranks in {self._case.ranks, FEW, *OTHERS}:
            self._baselines[ranks] = await self._attempt(ranks, (), max_steps=self._case.max_steps)
        few = self._baselines[FEW]
        ranks = FEW if self._case.ranks > FEW and few is not None and few.wrong else self._case.ranks
        helpful: list[_Attempt] = []
        here: list[Repair] = []
        for kind, made in (await self._proposals()).items():
            tries = [(proposal,) for proposal in sorted(made, key=lambda proposal: proposal.distance)]
            right, better = await self._attempt_each(kind, ranks, tries)
            found = await self._confirm(right)
            if found and not found[0].fails:
                return Repairs(found)
            here += found
            helpful += better
        pairs = [(*one.changes, *other.changes) for one, other in combinations(helpful, 2)]
        right, _ = await self._attempt_each("pair", ranks, pairs)
        found = await self._confirm(right)
        found = [] if found and found[0].fails and here else found
        return Repairs(found or here[:1], "" if found or here else self._note())

    def _note(self) -> str:
        if not self._cut_kinds:
            return ""
        return f"of these kinds only {TRIES} changes each were tried: {', '.join(self._cut_kinds)}"

    async def _proposals(self) -> dict[str, list[Proposal]]:
        """Return what may be tried, by kind, in the order of cost.

        Without a golden nothing says what a kernel is for: then only what adds order can be a repair.
        """
        source, seen = self._source, await visited(self._source, self._case)
        contexts = [RepairContext(self._case, source, seen, finding) for finding in self._findings[:FINDINGS]]
        added = (proposal for context in contexts for proposal in additions(context))
        made = [*proposals(contexts[0]), *added, *barriers(contexts[0])]
        kinds = KINDS if self._case.kernel.golden is not None else ADDING
        return {kind: list(dict.fromkeys(proposal for proposal in made if proposal.kind == kind)) for kind in kinds}

    async def _attempt_each(
        self, kind: str, ranks: int, tries: Sequence[tuple[Proposal, ...]]
    ) -> tuple[list[_Attempt], list[_Attempt]]:
        """Return the changes with which nothing is wrong, and those with which less is wrong than without."""
        right: list[_Attempt] = []
        helpful: list[_Attempt] = []
        before = self._baselines[ranks]
        for changes in tries[:TRIES]:
            attempt = await self._attempt(ranks, changes)
            if attempt is not None and not attempt.wrong:
                adds = all(proposal.kind in ADDING for proposal in changes)
                right += [attempt] if adds or before is None or _keeps_operations(attempt.run, before.run) else []
            elif attempt is not None and before is not None and attempt.wrong < before.wrong:
                alike = sum(other.wrong == attempt.wrong for other in helpful)
                helpful += [attempt] if alike < HELPFUL else []
        if len(tries) > TRIES:
            self._cut_kinds.append(kind)
        return right, helpful

    async def _attempt(
        self, ranks: int, proposed: Sequence[Proposal], *, max_steps: int | None = None
    ) -> _Attempt | None:
        """Return what one run of the changed kernel says; None: it cannot be run."""
        changes = _changes(self._named(proposed))
        if overlap(changes):
            return None
        baseline = self._baselines.get(ranks)
        if baseline is not None:
            max_steps = PATIENCE * len(baseline.run.choices) + PATIENCE
        try:
            case = replace(self._case, kernel=self._source.load(changes), ranks=ranks, max_steps=max_steps)
            run = await simulate.aio(case, Fifo(), record="fifo", engine="direct")
            return _Attempt(tuple(proposed), run, self._remaining_failures(case, run, self._source.changed(changes)))
        except (AsyncsimError, UnreadableError):
            return None

    def _named(self, proposed: Sequence[Proposal]) -> list[Proposal]:
        """Return some proposals with a name for all that they add."""
        names: list[str] = []
        for proposal in proposed:
            names.append(self._source.unused_name(_NAMES.get(proposal.kind, "unused"), names))
        return [proposal.named(name) for proposal, name in zip(proposed, names, strict=True)]

    def _remaining_failures(self, case: Case, run: Run, text: str) -> frozenset[object]:
        """Return what one run says is wrong, by the lines where it is."""
        if run.ending != COMPLETE or run.trace is None:
            return frozenset({run.ending})
        analysis = analyse(run.trace)
        lines = text.splitlines()
        judge = Judge(case)
        baseline = self._baselines.get(case.ranks)
        if baseline is not None:
            judge.set_reference(baseline.run)
        # Only the lines count: with one wait more, fewer pairs of the same lines are not less wrong.
        wrong: set[object] = {
            (finding.kind, finding.hazard, finding.scope, tuple(self._line(lines, side) for side in finding.sides))
            for finding in analysis.findings
        }
        wrong |= {finding.kind for finding in judge.findings(run)}
        return frozenset(wrong | ({"not decided"} if not analysis.clean and not wrong else set()))

    def _line(self, lines: Sequence[str], side: Side) -> str:
        """Return the text of the line of a side: its number may be another once something is changed."""
        file, _, number = side.at[0].rpartition(":") if side.at else ("", "", "")
        return lines[int(number) - 1].strip() if file == self._source.shown else file + number

    async def _confirm(self, right: Sequence[_Attempt]) -> list[Repair]:
        """Judge in full, on as many ranks as were asked for, what one run found right; return the cheapest."""
        found: list[Repair] = []
        least = (0, 0)
        for attempt in sorted(right, key=_cost):
            good = [repair for repair in found if not repair.fails]
            if len(found) == CONFIRMED or (good and _cost(attempt) > least):
                break
            made = await self._confirmed(attempt.changes)
            if made is not None and made.words not in [repair.words for repair in found]:
                found.append(made)
                least = _cost(attempt)
        return [repair for repair in found if not repair.fails] or found[:1]

    async def _confirmed(self, proposed: Sequence[Proposal]) -> Repair | None:
        """Return the repair, if the changed kernel is proved, and no other kernel of the file is worse with it."""
        named, case = self._named(proposed), self._case
        changes = _changes(named)
        kernel = self._source.load(changes)
        for model in sorted(self._models, key=lambda model: model == case.memory):  # the last one's report is kept
            report = await check.aio(
                kernel, ranks=case.ranks, calls=case.calls, memory=model, seed=case.seed,
                max_steps=case.max_steps, budget=0, samples=1,
            )  # fmt: skip
            if report.interrupted:
                raise KeyboardInterrupt
            if report.verdict != PROVED:
                return None
        attempt = await self._attempt(case.ranks, proposed)
        siblings = None if attempt is None else await self._siblings.after(changes)
        if attempt is None or siblings is None:
            return None
        baseline = self._baselines[case.ranks]
        return Repair(
            _kind(proposed), " and ".join(one.words for one in named),
            len(attempt.run.choices) - (0 if baseline is None else len(baseline.run.choices)),
            _missing_orders(self._findings),
            self._source.diff(changes), replace(report, models=tuple(self._models)), await self._fails(proposed),
            *siblings,
        )  # fmt: skip

    async def _fails(self, proposed: Sequence[Proposal]) -> tuple[int, ...]:
        """Return on how many other ranks, on which the kernel runs as it stands, the changed one is not right."""
        fails = []
        for ranks in OTHERS:
            baseline = self._baselines[ranks]
            if ranks != self._case.ranks and baseline is not None:
                attempt = await self._attempt(ranks, proposed)
                if attempt is None or attempt.wrong:
                    fails.append(ranks)
        return tuple(fails)


def _keeps_operations(run: Run, before: Run) -> bool:
    """Return whether a run has as many steps as before, and notifies no more cells of its own ranks.

    What does less is not repaired, but left out: a notify to oneself instead of a peer, a test that never passes.
    """
    if before.ending != COMPLETE:
        return True
    return len(run.choices) == len(before.choices) and _own_cell_notifies(run) == _own_cell_notifies(before)


def _own_cell_notifies(run: Run) -> int:
    events = run.trace.events if run.trace is not None else ()
    cells = [(event.op.cell, event.op.actor.rank) for event in events if event.op.kind in SIGNALLING]
    return sum(cell is not None and cell.owner == rank for cell, rank in cells)


def _changes(named: Sequence[Proposal]) -> list[Change]:
    return [change for proposal in named for change in proposal.changes]


def _kind(proposed: Sequence[Proposal]) -> str:
    return max((proposal.kind for proposal in proposed), key=KINDS.index)


def _cost(attempt: _Attempt) -> tuple[int, int]:
    """Order repairs: the cheapest kind, then the fewest operations."""
    return KINDS.index(_kind(attempt.changes)), len(attempt.run.choices)


def _missing_orders(findings: Sequence[Finding]) -> str:
    """Return between which operations an order is missing, in words."""
    return "; ".join(dict.fromkeys(_missing_order(finding) for finding in findings if finding.hazard))


def _missing_order(finding: Finding) -> str:
    first, second = (f"{_side_text(side)}" for side in (finding.sides[0], finding.sides[-1]))
    later = "" if finding.scope in (None, SAME_CALL) else "next call's "
    return f"between the {first} and the {later}{second}"


def _side_text(side: Side) -> str:
    """Name what happens there: the phase, or the operation."""
    operation = "landing" if side.op in LANDING else "late read" if side.op in FETCHING else side.op
    return side.phase or f"{operation} at {side.at[0] if side.at else 'an unknown line'}"
