"""An exhaustive exploration of one case in one piece."""

from __future__ import annotations

from asyncsim.checking.search.exhaust import ExhaustiveSearch
from asyncsim.machine.simulate import Blocking


@Blocking
async def exhaust(case, *, budget, judge, on_run=None, progress=None):
    """Run every inequivalent execution of a case, or as many as the budget allows."""
    return await ExhaustiveSearch(case, judge, on_run, progress).run(budget)
