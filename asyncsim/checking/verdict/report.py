"""The report of a check, as data: verdict, its scope, findings, notes; and what the verdict rests on, in words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from asyncsim.checking.verdict.induction import stream_plan
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.finding import ATOMIC, PROVED, RACE, REFUTED, SUM
from asyncsim.trace.late import model_of

if TYPE_CHECKING:
    from asyncsim.analysis.analyse import Analysis
    from asyncsim.checking.search.exhaust import ExhaustiveResult
    from asyncsim.machine.case import Case, Run
    from asyncsim.trace.event import Trace
    from asyncsim.trace.finding import Finding


GRANTED = "the kernel depends on nothing but its inputs, its windows and its signals"
"""What every proof takes for granted."""
WHOLE = "what one operation writes lands whole (ldst:atom=1 or nic:atom=1 lets it land in pieces)"
"""What a proof under a model that is late takes for granted besides, if no atom is named."""


SCOPED = (
    "what synchronises takes effect at one moment for all, a Set behind all that its cell held, and nothing before "
    "what its actor read earlier (plain loads and stores may be done early or late: happens-before covers that)"
)
"""What a proof under ``gpu`` takes for granted besides."""
UNMOVED = "in which updates and loads are done no later than they stand"
"""What the executions of an exploration under ``gpu`` have in common."""


HARMFUL, ALL = "harmful", "all"
RACES = (HARMFUL, ALL)
"""Which races refute: those that are shown to be harmful, or all that some schedule has."""
RACING = (RACE, "signal-race", "unstable-wait", SUM, ATOMIC)
"""The kinds of findings that count as races there."""


def validate_races(races: object) -> None:
    """Raise a `MisuseError` unless this is one of `RACES`."""
    if races not in RACES:
        raise MisuseError(f"races={races!r}; give 'harmful', or 'all': then benign races refute, too")


def count_benign_races(report: Report, races: str) -> Report:
    """Return a report in which so many races refute; the scope says so where it makes the verdict another one.

    Args:
        report: left as it is.
        races: "harmful": those that are shown to be so; or "all".

    """
    others = sum(finding.kind in RACING and not finding.harmful for finding in report.findings)
    if races == HARMFUL or not others or report.refuted:
        return report
    which = (
        "a race that is not shown to be harmful counts"
        if others == 1
        else (f"{others} races that are not shown to be harmful count")
    )
    return replace(report, verdict=REFUTED, scope=f"{which} all the same (races: all); {report.scope}")


@dataclass(slots=True, repr=False)
class Report:
    """What `check` or `explore` says of a case.

    Args:
        case: what was judged.
        verdict: one of `VERDICTS`.
        scope: what the verdict rests on, as a sentence: "one run of 200 steps; holds for every schedule".
        findings: the harmful ones first.
        notes: remarks that are no findings ("equal within tolerance, not bit for bit").
        schedules: how many runs were made, the reference run included.
        steps: of the reference run.
        seconds: the whole check took.
        interrupted: Ctrl-C ended it early; the verdict is of what was done.
        explanation: the class of each cell, and how the order was found.
        one_run: one run and its analysis decided, with witnesses but without exploring other schedules.
        later_calls: of PROVED, how far it reaches beyond these calls, as the end of a sentence; else empty.
        proof: of PROVED, the run and what the analysis said of it: what a certificate is made of; None if it was
            judged under several memory models.
        models: the memory models that the verdict is of; by default the case's.
        models_said: the memory models besides ``sc`` that the words of the kernel belong to.

    """

    case: Case
    verdict: str
    scope: str
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    schedules: int = 1
    steps: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    one_run: bool = False
    explanation: list[str] = field(default_factory=list)
    later_calls: str = ""
    proof: tuple[Trace, Analysis] | None = field(default=None, repr=False, compare=False)
    models: tuple[str, ...] = ()
    models_said: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Fill in the memory model of the case, if none is named."""
        self.models = self.models or (self.case.memory,)

    def __repr__(self) -> str:
        found = ", ".join(finding.title for finding in self.findings) or "no findings"
        return f"<Report {self.verdict} {self.case.kernel.ref}, P = {self.case.ranks}: {found}>"

    def __str__(self) -> str:
        # The views stand above this room, so they are named rather than imported; only who wants the words loads them.
        return str(import_module("asyncsim.views.report").report_text(self)).rstrip("\n")

    def _repr_html_(self) -> str:
        """Return what a notebook shows of it."""
        return str(import_module("asyncsim.views.notebook").report_html(self))

    def rows(self) -> list[dict[str, Any]]:
        """Return a row a finding, of plain values, as a table takes them: ``pandas.DataFrame(report.rows())``.

        Each has the title, kind, harmful (True, False or None), memory, first and second (source lines, empty if there
        are none), why, shown and token (None if there is no witness).
        """
        rows = []
        for found in self.findings:
            first, second, *_ = [*("".join(side.at[:1]) for side in found.sides), "", ""]
            rows.append({
                "title": found.title, "kind": found.kind, "harmful": found.harmful, "memory": found.window,
                "first": first, "second": second, "why": found.why, "shown": found.shown, "token": found.token,
            })  # fmt: skip
        return rows

    @property
    def granted(self) -> str:
        """What a proof takes for granted, under the models that it is of."""
        more = [WHOLE] if {"ldst", "nic"} & set(self.models) else []
        return "; ".join([GRANTED, *more, *([SCOPED] if "gpu" in self.models else [])])

    @property
    def refuted(self) -> bool:
        """Whether something harmful was found."""
        return self.verdict == REFUTED

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of this report."""
        case = self.case
        return {
            "kernel": case.kernel.ref, "ranks": case.ranks, "calls": case.calls, "memory": case.memory,
            "models": list(self.models),
            "verdict": self.verdict, "steps": self.steps, "seconds": round(self.seconds, 6),
            "findings": [finding.to_json() for finding in self.findings],
            "scope": self.scope, "notes": self.notes, "schedules": self.schedules, "one_run": self.one_run,
            "interrupted": self.interrupted, "later_calls": self.later_calls or None,
            "granted": self.granted if self.verdict == PROVED else None,
            "right": case.kernel.right_rule or None,
        }  # fmt: skip


UNKNOWN = 1000
"""An estimate of so many times what was run is no number to give as a budget."""


def explanation(analysis: Analysis) -> list[str]:
    """Return how the order of a run was found, and why counting the credits of its cells was enough."""
    how = (
        "vector clocks: every awaited cell has one remote producer"
        if analysis.fast
        else "the frontiers of one rank, which speak for all: the ranks are rotations of one another"
        if analysis.rotated
        else "frontiers"
    )
    return [f"must-happen-before by {how}", *map(str, analysis.cells)]


def proof_scope(reference: Run, cases: int = 0) -> str:
    """Return what a proof rests on, and for what it holds.

    Args:
        reference: the run.
        cases: how many runs decide together, one for each of those who can arrive last; 0: one run decides.

    """
    decides = f"one run of {len(reference.choices)} steps decides"
    if cases:
        decides = f"{cases} runs, one for each that can arrive last, decide"
    streams = stream_condition(len(stream_plan(reference)))
    return f"{decides} for every schedule of {_case_limits(reference.case)}{streams}"


def stream_condition(runs: int) -> str:
    """Return the assumption about streams, and how many schedules were run to test it; empty without streams."""
    return f", if the streams of a rank share no Python object (none shows in {runs} further schedules)" if runs else ""


def models_note(report: Report) -> list[str]:
    """Return a note that words of the kernel mean nothing under ``sc``; none if it says none of them."""
    if report.case.memory != "sc" or not report.models_said:
        return []
    late, scoped = [model for model in report.models_said if model != "gpu"], "gpu" in report.models_said
    notes = []
    if late:
        words = "put, non-blocking, relaxed, fence and quiet"
        notes.append(f"what this kernel says of when things land ({words}) means nothing under sc; try --memory ldst")
    if scoped:
        notes.append("the orders and scopes that this kernel says mean nothing under sc; try --memory gpu")
    return notes


def exhaustion_scope(explored: ExhaustiveResult, case: Case) -> str:
    """Return the scope of an exploration that ran everything.

    Args:
        explored: complete, and without a failure.
        case: what was explored.

    """
    were = "was" if explored.inequivalent == 1 else "were"
    which = "each of them right" if case.kernel.any_right else "none of them wrong"
    differ = "" if len(explored.results) == 1 else f" ({len(explored.results)} different results, {which})"
    unmoved = f", {UNMOVED}," if model_of(case.memory).scoped else ""
    return f"{_all_executions(explored)} of {_case_limits(case)}{unmoved} {were} run, and none fails{differ}"


def exploration_scope(explored: ExhaustiveResult, case: Case) -> str:
    """Return the scope of an exhaustive exploration that found a failure, or did not come to its end.

    Args:
        explored: how far it came.
        case: what was explored.

    """
    limits = _case_limits(case)
    if explored.complete:
        return f"{_all_executions(explored)} of {limits} {'was' if explored.inequivalent == 1 else 'were'} run"
    end = " before it was interrupted" if explored.interrupted else ""
    made = "1 execution" if explored.executions == 1 else f"{explored.executions} executions"
    return f"{made} of {limits} {'was' if explored.executions == 1 else 'were'} run{end}{_remaining(explored)}"


def _all_executions(explored: ExhaustiveResult) -> str:
    number = explored.inequivalent
    if number == 1:
        return "one execution, to which all schedules are equivalent,"
    return f"all {number} inequivalent executions"


def _remaining(explored: ExhaustiveResult) -> str:
    """Return what is left of an exploration that did not come to its end, and what would finish it."""
    different = "all inequivalent" if not explored.redundant else f"{explored.inequivalent} of them inequivalent"
    if explored.endless:
        return (
            f" ({different}); {explored.endless} of them ask again and again for what another would write, and were "
            "cut short: no budget finishes such an exploration; nothing is said of the others"
        )
    estimate = max(explored.estimate, explored.executions + 1)
    if estimate > UNKNOWN * explored.executions:
        left = f"how many there are is not known; by the branches seen so far more than {rounded(estimate // 2)}"
    else:
        left = (
            f"by the branches seen so far there are about {rounded(estimate)}, and often more than such an estimate "
            f"says: try `--budget {rounded(2 * estimate)}`"
        )
    return f" ({different}); {left}; nothing is said of the others"


def rounded(number: int) -> int:
    """Return a number rounded up to two digits: no estimate is better than that."""
    unit: int = 10 ** max(len(str(number)) - 2, 0)
    return -(-number // unit) * unit


def _case_limits(case: Case) -> str:
    ranks = f"these {case.ranks} ranks" if case.ranks > 1 else "this one rank"
    return f"{ranks}, {case.calls} call{'s' if case.calls > 1 else ''} and these inputs"
