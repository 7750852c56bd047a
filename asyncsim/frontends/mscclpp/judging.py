"""Judging launches of plans under each memory model, and saying of each finding where in the plan it is."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from asyncsim.checking.verdict.check import check
from asyncsim.frontends.mscclpp.layout import Layout
from asyncsim.frontends.mscclpp.pairing import MEANT, Remark, remarks
from asyncsim.frontends.mscclpp.plan import INPUT, OUTPUT, PLAIN, Operation
from asyncsim.trace.finding import NEXT_CALL, PROVED, SAME_CALL, VERDICTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.checking.verdict.report import Report
    from asyncsim.frontends.mscclpp.launch import Launches
    from asyncsim.frontends.mscclpp.plan import Plan
    from asyncsim.trace.finding import Finding, Side

MODELS = ("sc", "gpu")
"""The memory models of an executor whose threads are a GPU's."""
SHRINKING = 2000
"""How many steps it may cost to shrink a witness: a report names the plan's operations, and needs no short run."""
_PLACE = re.compile(r"launch (\d+).*?gpu (\d+), thread block (\d+), op (\d+)(?:\.(\d+))?")
_WRONG = re.compile(r"output (\d+): [^;]*?\[(\d+), ")
_LAUNCH = re.compile(r"launch (\d+)")


@dataclass(frozen=True, slots=True)
class Judged:
    """Launches of plans, the reports up to the first model that refutes, and what was known before anything ran."""

    launches: Launches
    reports: tuple[Report, ...]
    remarks: tuple[Remark, ...]

    @property
    def report(self) -> Report:
        """The report that decides: the one with the weakest verdict."""
        return max(self.reports, key=lambda report: VERDICTS.index(report.verdict))

    @property
    def verdict(self) -> str:
        """PROVED, EXHAUSTED, SURVIVED or REFUTED: the weakest of all models."""
        return self.report.verdict

    @property
    def models(self) -> tuple[str, ...]:
        """The memory models under which that is so."""
        refuting = [report.case.memory for report in self.reports if report.refuted]
        return tuple(refuting or [report.case.memory for report in self.reports])

    def operations(self, finding: Finding) -> list[tuple[Plan, Operation]]:
        """Return the plan's operations that a finding is about, each with its plan, in the order of its sides.

        Of a wrong result: those that the chunk comes from, the last one first.
        """
        if finding.kind == "wrong-result":
            return list(_origins(self.launches, finding))
        return list(dict.fromkeys(filter(None, (_operation(self.launches, side) for side in finding.sides))))


def judge(
    launches: Launches, *, memory: Sequence[str] = MODELS, shrinking: int = SHRINKING, **options: Any  # noqa: ANN401
) -> Judged:  # fmt: skip
    """Judge launches of plans under memory models; the first that refutes ends it.

    Args:
        launches: of plans.
        memory: the models.
        shrinking: as of `check`.
        options: further ones of `check`.

    Raises:
        MisuseError: a plan cannot be run, or not be judged; the message has the place in its JSON.

    """
    kernel = launches.kernel()
    known = (remark for plan in launches.plans for remark in remarks(plan, launches.rounds(plan)))
    reports: list[Report] = []
    how = {"ranks": launches.plans[0].ranks, "calls": 1, "shrinking": shrinking, **options}
    for model in memory:
        alone = _without_twins(launches, {**how, "memory": model}) if model in MODELS else None
        report = alone or check(kernel, memory=model, **how)
        report.later_calls = ""  # all launches are one call of the kernel
        report.notes = [note for note in report.notes if not note.startswith("what this kernel says of when things")]
        report.findings = [_scoped(finding) for finding in report.findings]
        reports.append(report)
        if report.refuted or report.interrupted:
            break
    return Judged(launches, tuple(reports), tuple(dict.fromkeys(known)))


def _without_twins(launches: Launches, how: dict[str, Any]) -> Report | None:
    """Return the proof of a plan in which operations of a gpu store the same bytes to the same places.

    Two plain copies of the input, which no operation writes, with the same targets: which of them is the last to store
    makes no difference, and what reads there has to come after both. So it is enough that the plan is proved with each
    of them while the others store nothing: every other pair of accesses is in one of these runs. Launches of a gpu are
    in order, so that copies of two launches do not meet. None: there are none, or that is not proved.
    """
    plan, plain = launches.plans[0], len({*launches.plans}) == 1 and launches.mode == MEANT
    classes: dict[tuple[Any, ...], list[Operation]] = {}
    for op in plan.operations() if plain and plan.fifos is None and not plan.in_place else ():
        if INPUT in {span.buffer for span in op.targets}:
            return None
        inputs = {(span.buffer, span.rank) for span in op.sources} == {(INPUT, op.gpu)}
        if op.is_data and inputs and not op.row.folds and op.row.writes == PLAIN and op.inside < 0:
            classes.setdefault((op.gpu, op.sources, op.targets, op.slice_of), []).append(op)
    twins = [listed for listed in classes.values() if len(listed) > 1]
    chunks = [{(r, s.buffer, n) for s in each[0].targets for r in s.ranks for n in range(s.index, s.index + s.size)}
              for each in twins]  # fmt: skip
    if not twins or len(set().union(*chunks)) < sum(map(len, chunks)):
        return None
    for kept in range(max(map(len, twins))):
        omitted = {op.path for each in twins for op in each if op is not each[min(kept, len(each) - 1)]}
        report = check(replace(launches, omitted=frozenset(omitted)).kernel(), **how)
        if report.verdict != PROVED:
            return None
    report.notes.append(
        f"{twins[0][0].path} and {twins[0][1].path} store the same bytes: proved with each of them alone"
    )
    return report


def _scoped(finding: Finding) -> Finding:
    """Return a finding that speaks of launches, each of which is a call of the plan's."""
    if finding.scope is None or len(finding.sides) < 2:  # noqa: PLR2004 - a pair
        return finding
    numbers = {found[1] for side in finding.sides if (found := _LAUNCH.search(side.phase))}
    return replace(finding, scope=NEXT_CALL if len(numbers) > 1 else SAME_CALL)


def _operation(launches: Launches, side: Side) -> tuple[Plan, Operation] | None:
    """Return the plan's operation that a side of a finding is, with its plan; None: it is the caller's."""
    place = _PLACE.search(side.phase)
    if place is None:
        return None
    launch, gpu, block, index = map(int, place.group(1, 2, 3, 4))
    plan = launches.plans[launch - 1]
    op = plan.gpus[gpu].blocks[block][index]
    return plan, op if place[5] is None else op.body[int(place[5])]


def _origins(launches: Launches, finding: Finding) -> Iterator[tuple[Plan, Operation]]:
    """Yield the operations that the first chunk that is wrong comes from, with its plan."""
    wrong = _WRONG.search(finding.shown or "")
    plan = launches.plans[int(wrong[1]) if wrong else 0]
    if wrong is None or plan.fifos is not None:
        return
    context = launches.context(plan)
    rows = Layout([launches.context(each) for each in dict.fromkeys(launches.plans)]).rows
    held = {}
    for op in plan.operations():
        for span, _, written in op.accesses():
            places = ((rank, *context.place(rank, span.buffer)) for rank in span.ranks)
            held[op, span, written] = {
                (rank, name, first + index)
                for rank, name, first in places for index in range(span.index, span.index + span.size)
            }  # fmt: skip
    name, first = context.place(finding.sides[0].rank, OUTPUT)
    wanted, found = [(finding.sides[0].rank, name, first + int(wrong[2]) // rows)], dict.fromkeys(list[Operation]())
    for chunk in wanted:  # which grows
        for op in [op for (op, _, written), chunks in held.items() if written and chunk in chunks and op not in found]:
            found[op] = None
            wanted += [place for span in op.sources for place in held[op, span, False]]
    yield from ((plan, op) for op in found)


def neighbours(plan: Plan, op: Operation) -> Iterator[tuple[bool, Operation]]:
    """Yield an operation and those before and after it, and of each whether it is the one.

    Args:
        plan: that it stands in.
        op: the operation.

    """
    listed, at = plan.gpus[op.gpu].blocks[op.block], op.index
    if op.inside >= 0:
        listed, at = listed[op.index].body, op.inside
    for number in range(max(at - 1, 0), min(at + 2, len(listed))):
        yield number == at, listed[number]
