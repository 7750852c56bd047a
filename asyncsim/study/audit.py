"""The audit: what each barrier, wait and notify of a kernel is for, found by taking it away.

A verdict is one run, so synchronisation can be mutation-tested: each part is taken away in turn, and
the kernel judged again, over one call and over several. What then goes wrong is what the part guards.
Where nothing does, and that is proved, the part is redundant. For a kernel that is refuted there is
the reverse too: the change that repairs it (`asyncsim.study.repair`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from asyncsim.checking.verdict.check import check
from asyncsim.checking.verdict.explore import Progress
from asyncsim.checking.verdict.models import AUTO
from asyncsim.checking.verdict.report import Report
from asyncsim.collectives.barrier import barrier, settle
from asyncsim.machine.case import Case
from asyncsim.machine.edit import weakened
from asyncsim.machine.simulate import Blocking, simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.study.repair import Repair, repair
from asyncsim.trace.cells import SET
from asyncsim.trace.edit import DROP, NARROW, RELAX, SKIP, Edit
from asyncsim.trace.errors import KernelError
from asyncsim.trace.event import STOPPED
from asyncsim.trace.finding import PROVED, REFUTED, SAME_CALL, Finding
from asyncsim.trace.kinds import CARRYING, FENCING, NOTIFY, NOTIFYING, QUIETING, WAITING
from asyncsim.trace.late import model_of
from asyncsim.trace.op import order_of
from asyncsim.trace.token import Token, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from asyncsim.machine.kernel import Kernel
    from asyncsim.machine.site import Frame
    from asyncsim.trace.op import Op


BUDGET, SAMPLES = 300, 60
"""Where one run does not decide: how many executions are explored for a part, how many schedules sampled."""
SHRINKING = 8_000
"""How many steps shrinking one witness may cost: an audit has many witnesses."""

_CONSEQUENCES = ("wrong-result", "ranks-differ", "unwritten-read")
"""What a run shows by itself, and says nothing new where a race or a hang explains it."""


@dataclass(frozen=True, slots=True)
class Protection:
    """One thing that goes wrong without a part.

    Args:
        what: "RAW", "WAR", "WAW", "credits", "deadlock", or another kind of finding.
        when: "within the call", "against the next call", "within a later call"; empty if it has no two sides.
        calls: over how many calls it was found.
        findings: what was found, the one with the witness first.

    """

    what: str
    when: str
    calls: int
    findings: tuple[Finding, ...]

    @property
    def pairs(self) -> int:
        """How many pairs of operations, or places, it is about."""
        return sum(finding.pairs for finding in self.findings)

    @property
    def finding(self) -> Finding:
        """The finding whose witness stands for all."""
        return self.findings[0]


@dataclass(slots=True)
class PartAudit:
    """What one part of the synchronisation is for.

    Args:
        part: what was taken away.
        kernel_refuted: the kernel as it stands is refuted, so that a proof without the part names the culprit.
        reports: on what was left, over one call and over several.
        tokens: of the fair run of each, which replays it and shows that nothing goes wrong.
        guards: what goes wrong without it and does not with it; empty: nothing.

    """

    part: SyncPart
    kernel_refuted: bool = False
    reports: list[Report] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    guards: list[Protection] = field(default_factory=list)

    @property
    def redundant(self) -> bool:
        """Whether it is proved that nothing goes wrong without it, nor with it."""
        return not self.kernel_refuted and self.proved

    @property
    def proved(self) -> bool:
        """Whether what is left without it is proved."""
        return all(report.verdict == PROVED for report in self.reports)


@dataclass(slots=True)
class AuditReport:
    """What the synchronisation of a kernel is for.

    Args:
        report: on the kernel as it stands, over all calls.
        once: the same over one call.
        rows: a part each, in the order in which a run comes to them.
        repairs: the cheapest changes of its source that would repair it, if it is refuted.
        unrepaired: why there are none, where more is known than that none of those tried does.
        seconds: the whole audit took.
        interrupted: Ctrl-C ended it early; what is there is true.

    """

    report: Report
    once: Report
    rows: list[PartAudit] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    unrepaired: str = ""
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def refuted(self) -> bool:
        """Whether the kernel as it stands is refuted."""
        return self.report.refuted

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of this audit."""
        return {
            **self.report.to_json(),
            "one_call": self.once.verdict,
            "parts": [_part_json(row) for row in self.rows],
            "repairs": [made.to_json() for made in self.repairs],
            "unrepaired": self.unrepaired or None,
            "seconds": round(self.seconds, 6),
            "interrupted": self.interrupted,
        }


def _part_json(row: PartAudit) -> dict[str, Any]:
    return {
        "kind": row.part.kind,
        "site": list(row.part.site),
        "edit": str(row.part.edit),
        "redundant": row.redundant,
        "judged": [
            {"calls": report.case.calls, "verdict": report.verdict, "token": token}
            for report, token in zip(row.reports, row.tokens, strict=True)
        ],
        "guards": [
            {
                "what": guard.what, "when": guard.when or None, "calls": guard.calls, "pairs": guard.pairs,
                "findings": [finding.to_json() for finding in guard.findings],
            }
            for guard in row.guards
        ],
    }  # fmt: skip


@Blocking
async def audit(  # noqa: PLR0913 - each is a choice of the user's
    kernel: Kernel,
    *,
    ranks: int = 4,
    calls: int = 2,
    memory: str = AUTO,
    seed: int = 0,
    fine: bool = False,
    save: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> AuditReport:
    """Find what each barrier, wait and notify of a kernel guards; and how to repair the kernel if it is refuted.

    Args:
        kernel: what to audit.
        ranks: P.
        calls: back to back on the same memory; each part is judged over one call, too.
        memory: the memory model; "auto": of those under which `check` judges the kernel, that of its verdict; ``gpu``,
            if it holds under that and all others.
        seed: of the inputs.
        fine: go through the notifies and waits inside each barrier, too.
        save: a directory; the witnesses of each part are written to a folder of their own in it.
        progress: called after every part.

    Returns:
        The audit. Ctrl-C ends it early, with what was found until then.

    Raises:
        KernelError: the kernel raised as it stands.
        MisuseError: an argument, or the kernel's declarations, cannot be right.

    """
    started = time.perf_counter()
    wanted = memory
    if memory == AUTO:
        first = await _check(Case(kernel, ranks, calls, seed=seed), None, memory=AUTO)
        if first.interrupted:
            return AuditReport(first, first, interrupted=True, seconds=time.perf_counter() - started)
        # Under gpu parts of operations can be taken away, too; and what is proved there is proved under sc.
        memory = "gpu" if "gpu" in first.models and not first.refuted else first.case.memory
    call_counts = tuple(dict.fromkeys((1, calls)))
    cases = [Case(kernel, ranks, number, memory, seed) for number in call_counts]
    unedited = [await _check_or_refute(case, None if save is None else save / "as-it-stands") for case in cases]
    audited = AuditReport(unedited[-1], unedited[0], interrupted=any(report.interrupted for report in unedited))
    try:
        if not audited.interrupted:
            await _audit_parts(audited, unedited, fine=fine, save=save, progress=progress)
            repairs = await repair(audited.report, memory=wanted)
            audited.repairs, audited.unrepaired = repairs.found, repairs.note
    except KeyboardInterrupt:
        audited.interrupted = True
    audited.seconds = time.perf_counter() - started
    return audited


async def _audit_parts(
    audited: AuditReport,
    unedited: Sequence[Report],
    *,
    fine: bool,
    save: Path | None,
    progress: Callable[[Progress], None] | None,
) -> None:
    """Remove every part in turn, and check what is left."""
    parts = await parts_of(audited.report.case, fine=fine)
    for part in parts:
        row = PartAudit(part, kernel_refuted=audited.refuted)
        for before in unedited:
            case = replace(before.case, edits=(str(part.edit),))
            report = await _check_or_refute(case, None if save is None else save / _folder(part))
            if report.interrupted:
                raise KeyboardInterrupt
            row.reports.append(report)
            row.tokens.append(await _fair_token(case))
            row.guards += _protections(part, report, before, row.guards)
        audited.rows.append(row)
        if progress is not None:
            progress(Progress(len(audited.rows), len(parts), sum(bool(row.guards) for row in audited.rows)))


async def _check_or_refute(case: Case, save: Path | None) -> Report:
    """Judge a case. A kernel that raises only when edited is refuted, with the schedule that shows it."""
    try:
        return await _check(case, save, memory=case.memory)
    except KernelError as error:
        if not case.edits:
            raise
        token = Token.of(case.header("witness"), error.trace.choices, ending=STOPPED)
        finding = Finding("wrong-result", f"the kernel raises: {error}", harmful=True, token=encode(token))
        return Report(case, REFUTED, "a schedule that shows it was run", [finding])


async def _check(case: Case, save: Path | None, *, memory: str) -> Report:
    return await check.aio(
        case.kernel, ranks=case.ranks, calls=case.calls, memory=memory, seed=case.seed, edits=case.edits,
        engine="direct" if case.edits else "trio", budget=BUDGET, samples=SAMPLES, shrinking=SHRINKING, save=save,
    )  # fmt: skip


async def _fair_token(case: Case) -> str:
    try:
        run = await simulate.aio(case, Fifo(), record="fifo", engine="direct")
    except KernelError as error:
        return encode(Token.of(case.header("fifo"), error.trace.choices, ending=STOPPED))
    return encode(Token.of(case.header("fifo"), run.choices, ending=run.ending))


def _protections(part: SyncPart, report: Report, before: Report, known: Sequence[Protection]) -> list[Protection]:
    """Return what a report finds without a part that was not found with it, and not over fewer calls either."""
    pairs = {_key(finding): finding.pairs for finding in before.findings}
    new = [finding for finding in report.findings if finding.pairs > pairs.get(_key(finding), 0)]
    known_keys = {_key(finding) for guard in known for finding in guard.findings}
    causes = [finding for finding in new if finding.kind not in _CONSEQUENCES] or new
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in causes:
        if _key(finding) not in known_keys:
            groups.setdefault((_kind_of_failure(finding), _call_of_failure(finding, report)), []).append(finding)
    guards = [
        Protection(what, when, report.case.calls, tuple(sorted(findings, key=lambda finding: not finding.harmful)))
        for (what, when), findings in groups.items()
    ]
    # Of the epilogue the credits come first: what else goes wrong follows from them.
    return sorted(guards, key=lambda guard: part.kind == CREDITS and guard.what != CREDITS)


def _key(finding: Finding) -> tuple[object, ...]:
    """Name a finding by all but its count: what it is, and between which lines.

    What a run shows by itself has lines that depend on the run, and is named by its kind alone.
    """
    lines = () if finding.hazard is None else tuple(side.at for side in finding.sides)
    return (finding.kind, finding.hazard, finding.scope, lines)


def _kind_of_failure(finding: Finding) -> str:
    return finding.hazard or (CREDITS if finding.kind == "leftover-credit" else finding.kind)


def _call_of_failure(finding: Finding, report: Report) -> str:
    if finding.scope is None:
        return ""
    if finding.scope != SAME_CALL:
        return "against the next call"
    return "within the call" if report.case.calls == 1 else "within a later call"


def _folder(part: SyncPart) -> str:
    return "".join(sign if sign.isalnum() or sign in "._" else "-" for sign in str(part.edit))


BARRIER, CREDITS = "barrier", "credits"
_SKIPPED = WAITING | QUIETING | FENCING


@dataclass(frozen=True, slots=True)
class SyncPart:
    """One part of a kernel's synchronisation.

    Args:
        kind: "barrier", "wait", "notify", "credits", "quiet" or "fence"; of an operation under ``gpu`` also its order
            ("release", "acquire", "acq_rel") and its "scope".
        edit: takes it away; of an order or a scope, makes it weaker.

    """

    kind: str
    edit: Edit

    @property
    def site(self) -> tuple[str, ...]:
        """Where it stands: the kernel's own line first, then the lines inside what that line calls."""
        return self.edit.site


async def parts_of(case: Case, *, fine: bool = False) -> list[SyncPart]:
    """Return the parts that the fair run of a case comes to, in that order.

    Args:
        case: the case, as a rule without edits.
        fine: list also the notifies and waits inside a barrier.

    """
    found: dict[SyncPart, None] = {}
    scoped = model_of(case.memory).scoped

    def watch(op: Op, frames: Sequence[Frame]) -> None:
        kind = _kind(op)
        if kind is not None:
            found.update(dict.fromkeys(_parts(kind, frames, fine=fine)))
        if scoped and (fine or barrier.__code__ not in [frame.code for frame in frames[1:]]):
            lines = tuple(frame.text for frame in frames)
            weaker = {RELAX: order_of(op), NARROW: "scope"}
            found.update(
                (SyncPart(what, Edit(edit, lines)), None) for edit, what in weaker.items() if weakened(op, edit)
            )

    await simulate.aio(case, Fifo(), watch=watch, engine="direct")
    return list(found)


def _kind(op: Op) -> str | None:
    """Return what an operation is to synchronisation; None: nothing that can be taken away."""
    if op.kind in NOTIFYING:
        cell = op.cell
        own = cell is not None and cell.owner == op.actor.rank
        return CREDITS if own and (op.amount < 0 or op.how == SET) else NOTIFY
    if op.kind in CARRYING:
        return NOTIFY
    return op.kind if op.kind in _SKIPPED else None


def _parts(kind: str, frames: Sequence[Frame], *, fine: bool) -> list[SyncPart]:
    """Return the parts that an operation of this kind belongs to: one, or with `fine` also the barrier around it."""
    lines = tuple(frame.text for frame in frames)
    codes = [frame.code for frame in frames]
    what = SKIP if kind in _SKIPPED else DROP
    own = SyncPart(kind, Edit(what, lines))
    if settle.__code__ in codes[1:]:
        return [SyncPart(CREDITS, Edit(DROP, lines[: codes.index(settle.__code__)]))]
    if barrier.__code__ in codes[1:]:
        whole = SyncPart(BARRIER, Edit(SKIP, lines[: codes.index(barrier.__code__)]))
        return [whole, own] if fine else [whole]
    return [own]
