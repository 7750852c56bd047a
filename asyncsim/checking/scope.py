"""What a verdict rests on, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncsim.analysis.analyse import Analysis
    from asyncsim.checking.exhaust import Exhausted
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
    return f"one run of {len(reference.choices)} steps decides for every schedule of {_limits(reference.case)}"


def exhaustion_scope(explored: Exhausted, case: Case) -> str:
    """Say what was run, where everything was."""
    number = explored.executions
    runs = (
        "one execution, to which all schedules are equivalent,"
        if number == 1
        else f"all {number} inequivalent executions"
    )
    differ = "" if len(explored.results) == 1 else f" ({len(explored.results)} different results, none of them wrong)"
    return f"one run does not decide; {runs} of {_limits(case)} were run, and none fails{differ}"


def _limits(case: Case) -> str:
    ranks = f"these {case.ranks} ranks" if case.ranks > 1 else "this one rank"
    return f"{ranks}, {case.calls} call{'s' if case.calls > 1 else ''} and these inputs"
