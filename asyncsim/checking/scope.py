"""What a verdict rests on, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.checking.later import stream_plan
from asyncsim.trace.late import model_of

if TYPE_CHECKING:
    from asyncsim.analysis.analyse import Analysis
    from asyncsim.checking.exhaust import Exhausted
    from asyncsim.checking.report import Report
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
    """Say what was run, where everything was."""
    number = explored.executions
    were = "was" if number == 1 else "were"
    runs = (
        "one execution, to which all schedules are equivalent,"
        if number == 1
        else f"all {number} inequivalent executions"
        if explored.distinct
        else f"{number} executions, among them all inequivalent ones,"
    )
    differ = "" if len(explored.results) == 1 else f" ({len(explored.results)} different results, none of them wrong)"
    return f"{runs} of {_limits(case)} {were} run, and none fails{differ}"


def exploration_scope(explored: Exhausted, case: Case) -> str:
    """Say how far an exhaustive exploration came that found a failure, or did not come to its end."""
    limits = _limits(case)
    made = explored.executions - explored.redundant
    if explored.complete and not explored.distinct:
        return f"{made} executions of {limits} were run, among them all inequivalent ones"
    if explored.complete:
        runs = (
            f"all {made} inequivalent executions"
            if made > 1
            else "one execution, to which all schedules are equivalent,"
        )
        return f"{runs} of {limits} {'were' if made > 1 else 'was'} run"
    end = " before it was interrupted" if explored.interrupted else ""
    return (
        f"{explored.executions} executions of {limits} were run{end}, of about {max(explored.estimate, made)} "
        "inequivalent ones; nothing is said of the others"
    )


def _limits(case: Case) -> str:
    ranks = f"these {case.ranks} ranks" if case.ranks > 1 else "this one rank"
    return f"{ranks}, {case.calls} call{'s' if case.calls > 1 else ''} and these inputs"
