"""The report again, from a trace alone: the findings of its footer, and the analysis made anew from its events.

No kernel is run and no source is read, so this is safe with any file. It also means that
nothing is PROVED here: that a kernel depends on nothing but its inputs and its memory is tested by
running it again. A finding comes from the footer, the analysis or both, and the report names its source.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asyncsim.analysis.analyse import FLAGS, ORDER_FINDINGS, analyse
from asyncsim.analysis.linear import NoOrderError, in_fair_order, in_given_order
from asyncsim.analysis.reads import unexplained_reads
from asyncsim.trace.errors import TraceError
from asyncsim.trace.event import COMPLETE
from asyncsim.trace.finding import REFUTED, Finding
from asyncsim.trace.jsonl_read import Survey, survey_trace
from asyncsim.trace.strict import BadFieldError

if TYPE_CHECKING:
    import os
    from typing import TextIO

    from asyncsim.analysis.analyse import Analysis
    from asyncsim.trace.event import Header, Trace

FOOTER, ANALYSIS, BOTH = "the footer", "the analysis", "the footer and the analysis"
"""Where a finding comes from."""


_NAMING = 1000
"""How many orders are tried for the names of races; where none is found, the run's own order serves."""


@dataclass(slots=True)
class Explanation:
    """What a trace says of its kernel.

    Args:
        header: of the trace.
        steps: how many it has, made landings included.
        ending: how the run ended; None if the trace does not say.
        verdict: REFUTED, if the footer says so or the run itself shows something harmful; else None.
        scope: what is known, as a sentence.
        findings: the footer's and the analysis's.
        said_by: for each finding, where it comes from.
        notes: remarks.
        explanation: the class of each cell.

    """

    header: Header
    steps: int
    ending: str | None
    verdict: str | None
    scope: str
    findings: list[Finding] = field(default_factory=list)
    said_by: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    explanation: list[str] = field(default_factory=list)

    @property
    def suspicious(self) -> bool:
        """Whether something is wrong, or may be: undecided harm counts."""
        return self.verdict == REFUTED or any(finding.harmful is not False for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of this explanation."""
        header = self.header
        return {
            "kernel": header.kernel, "ranks": header.world.ranks, "calls": header.calls, "memory": header.memory,
            "recorded": header.recorded or f"asyncsim {header.version}", "steps": self.steps, "ending": self.ending,
            "verdict": self.verdict, "scope": self.scope,
            "findings": [
                {**finding.to_json(), "said_by": source}
                for finding, source in zip(self.findings, self.said_by, strict=True)
            ],
            "notes": self.notes,
        }  # fmt: skip


def read_run(source: TextIO | str | os.PathLike[str], *, name: str | None = None) -> Survey:
    """Read any trace: of asyncsim or recorded elsewhere, whole or broken off; its steps have an order.

    Args:
        source: a path, or a text stream.
        name: of a stream, for messages; None: "trace".

    Raises:
        TraceError: it is no trace, or a damaged one, or its operations are possible in no order.
        MisuseError: it ends in ``.zst``, and zstandard is not installed.
        OSError: the file cannot be opened.

    """
    survey = survey_trace(source, partial=True, elsewhere=True, name=name)
    if not survey.trace.header.recorded:
        return survey
    try:
        return Survey(_ordered(survey.trace), survey.lines, survey.cut)
    except NoOrderError as error:
        raise TraceError(str(error), source=name or (str(source) if not hasattr(source, "read") else "trace")) from None


def explain(survey: Survey) -> Explanation:
    """Return what a trace, as `read_run` gives it, shows of its kernel."""
    trace, footer = survey.trace, survey.trace.footer
    notes = [f"the trace is not whole: {survey.cut}; {_extent(len(trace.events))}"] * bool(survey.cut)
    analysis = analyse(trace, fair=_fair_order(trace, notes))
    found = _merged_findings(analysis, _footer_findings(trace, notes), notes)
    reasons = [reason for reason in analysis.reasons if not survey.cut or "no footer" not in reason]  # was said above
    notes += [f"outside the theory: {reason}" for reason in reasons]
    if analysis.clean:
        notes += unexplained_reads(trace)
    findings = [finding for finding, _ in found]
    said = None if footer is None else footer.verdict
    if said not in (None, REFUTED):
        notes.append(f"the footer says {said}; a trace alone cannot show that, so it is not repeated as a verdict")
    verdict = REFUTED if said == REFUTED or any(finding.harmful for finding in findings) else None
    return Explanation(
        trace.header, len(trace.events), None if footer is None else footer.ending, verdict,
        _scope(trace, analysis, findings), findings, [source for _, source in found], notes,
        list(map(str, analysis.cells)),
    )  # fmt: skip


def _extent(steps: int) -> str:
    """Return how far a trace that is not whole is explained; steps are numbered from 0."""
    return f"it is explained up to step {steps - 1}" if steps else "it has no step that could be explained"


def _merged_findings(analysis: Analysis, of_footer: list[Finding], notes: list[str]) -> list[tuple[Finding, str]]:
    """Return all findings, each with where it comes from: the harmful ones first."""
    found: list[tuple[Finding, str]] = []
    unsure = 0
    own = [each if each.kind in ORDER_FINDINGS else each.with_(harmful=True) for each in analysis.findings]
    both = _matched(own, of_footer)
    for number, finding in enumerate(own):
        same = both.get(number)
        if same is not None:
            found.append((finding.with_(harmful=same.harmful, shown=same.shown or finding.shown), BOTH))
        elif finding.kind in ORDER_FINDINGS and finding.kind not in FLAGS and not analysis.exact:
            unsure += finding.pairs
        else:
            found.append((finding, ANALYSIS))
    if unsure:
        notes.append(
            f"{unsure} further pairs may race, but beside such a finding, or outside the theory, frontiers are "
            "approximate: without a run that shows them they are not reported"
        )
    found += [(finding, FOOTER) for finding in of_footer if not any(finding is each for each in both.values())]
    return sorted(found, key=lambda each: each[0].harmful is not True)


def _ordered(trace: Trace) -> Trace:
    if trace.events and trace.events[0].step is not None:
        return in_given_order(trace)
    return in_fair_order(trace)


def _fair_order(trace: Trace, notes: list[str]) -> Trace | None:
    """Return the run in turn, by which races are named as a check names them."""
    try:
        return in_fair_order(trace, budget=_NAMING)
    except NoOrderError:
        notes.append("races are named by the order of this run: its operations do not fit into a fair one")
        return None


def _footer_findings(trace: Trace, notes: list[str]) -> list[Finding]:
    footer = trace.footer
    of_footer = []
    for number, item in enumerate([] if footer is None else footer.findings, 1):
        try:
            of_footer.append(Finding.of_json(item))
        except BadFieldError as error:
            notes.append(f"finding {number} of the footer is none that asyncsim writes: {error}")
    return of_footer


def _matched(own: list[Finding], of_footer: list[Finding]) -> dict[int, Finding]:
    """Return which finding of the footer is which of the analysis: at the same lines, if there are several."""
    both: dict[int, Finding] = {}
    for finding in of_footer:
        like = [n for n, each in enumerate(own) if n not in both and _key(each) == _key(finding)]
        if like:
            places = [side.at[:1] for side in finding.sides]
            both[next((n for n in like if [side.at[:1] for side in own[n].sides] == places), like[0])] = finding
    return both


def _key(finding: Finding) -> tuple[str | None, ...]:
    return finding.kind, finding.hazard, finding.scope, finding.window


def _scope(trace: Trace, analysis: Analysis, findings: list[Finding]) -> str:
    how = "recorded elsewhere" if trace.header.recorded else f"under {trace.header.scheduler}"
    read = f"read from {len(trace.events)} steps {how}; no kernel was run"
    if findings:
        return read
    if not analysis.clean or trace.footer is None or trace.footer.ending != COMPLETE:
        return f"{read}; nothing was found, and nothing is proved"
    return (
        f"{read}; no race in any schedule of these operations. This is not a proof for the kernel: a trace does "
        "not show that it depends on nothing else, nor that its results are right"
    )
