"""What a verdict rests on, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.checking.verdict.induction import stream_plan
from asyncsim.trace.late import model_of

UNKNOWN = 1000
"""An estimate of so many times what was run is no number to give as a budget."""

if TYPE_CHECKING:
    from asyncsim.analysis.analyse import Analysis
    from asyncsim.checking.search.exhaust import Exhausted
    from asyncsim.checking.verdict.report import Report
    from asyncsim.machine.case import Case, Run


def explanation(analysis: Analysis) -> list[str]:
    """Say how the order of a run was found, and why counting the credits of its cells was enough."""
    how = (
        "vector clocks: every awaited cell has one remote producer"
        if analysis.fast
        else "the frontiers of one rank, which speak for all: the ranks are rotations of one another"
        if analysis.rotated
        else "frontiers"
    )
    return [f"must-happen-before by {how}", *map(str, analysis.cells)]


def proof_scope(reference: Run) -> str:
    """Say what a proof rests on, and for what it holds."""
    steps = f"one run of {len(reference.choices)} steps"
    return f"{steps} decides for every schedule of {_limits(reference.case)}{apart(len(stream_plan(reference)))}"


def apart(runs: int) -> str:
    """Say what is taken for granted of streams, and how many schedules were run to see it; empty without streams."""
    return f", if the streams of a rank share no Python object (none shows in {runs} further schedules)" if runs else ""


def unheard(report: Report) -> list[str]:
    """Say, in a note, that the kernel's words of what lands when mean nothing under ``sc``; none if it has none."""
    if model_of(report.case.memory).late or not report.late_words:
        return []
    words = "put, non-blocking, relaxed, fence and quiet"
    return [f"what this kernel says of when things land ({words}) means nothing under sc; try --memory ldst"]


def exhaustion_scope(explored: Exhausted, case: Case) -> str:
    """Say what was run, where everything was.

    Args:
        explored: an exploration that came to its end and found no failure.
        case: what was explored.

    """
    were = "was" if explored.inequivalent == 1 else "were"
    differ = "" if len(explored.results) == 1 else f" ({len(explored.results)} different results, none of them wrong)"
    return f"{_everything(explored)} of {_limits(case)} {were} run, and none fails{differ}"


def exploration_scope(explored: Exhausted, case: Case) -> str:
    """Say how far an exhaustive exploration came that found a failure, or did not come to its end.

    Args:
        explored: how far it came.
        case: what was explored.

    """
    limits = _limits(case)
    if explored.complete:
        return f"{_everything(explored)} of {limits} {'was' if explored.inequivalent == 1 else 'were'} run"
    end = " before it was interrupted" if explored.interrupted else ""
    made = "1 execution" if explored.executions == 1 else f"{explored.executions} executions"
    return f"{made} of {limits} {'was' if explored.executions == 1 else 'were'} run{end}{_rest(explored)}"


def _everything(explored: Exhausted) -> str:
    number = explored.inequivalent
    if number == 1:
        return "one execution, to which all schedules are equivalent,"
    return f"all {number} inequivalent executions"


def _rest(explored: Exhausted) -> str:
    """Say what is left of an exploration that did not come to its end, and what would finish it."""
    different = "all inequivalent" if not explored.redundant else f"{explored.inequivalent} of them inequivalent"
    if explored.endless:
        return (
            f" ({different}); {explored.endless} of them ask again and again for what another would write, and were "
            "cut short: no budget finishes such an exploration; nothing is said of the others"
        )
    estimate = max(explored.estimate, explored.executions + 1)
    if estimate > UNKNOWN * explored.executions:
        left = f"how many there are nobody knows, by the branches seen so far more than {rounded(estimate // 2)}"
    else:
        left = (
            f"by the branches seen so far there are about {rounded(estimate)}, and often more than such an estimate "
            f"says: try `--budget {rounded(2 * estimate)}`"
        )
    return f" ({different}); {left}; nothing is said of the others"


def rounded(number: int) -> int:
    """Return a number with its two leading digits, rounded up: more than that no estimate knows."""
    unit: int = 10 ** max(len(str(number)) - 2, 0)
    return -(-number // unit) * unit


def _limits(case: Case) -> str:
    ranks = f"these {case.ranks} ranks" if case.ranks > 1 else "this one rank"
    return f"{ranks}, {case.calls} call{'s' if case.calls > 1 else ''} and these inputs"
