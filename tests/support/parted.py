"""Exhaustive explorations in parts, all of them here, and what must be the same however they are cut."""

from __future__ import annotations

from functools import partial

import numpy as np
from executors import Here
from programs import kernel_of
from toy import parse

from asyncsim import Case, Window, kernel
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.workers.exhaust_parallel import ParallelSearch
from asyncsim.checking.workers.pool import WorkerPool
from asyncsim.checking.workers.subtree import search_subtree

SIZES = (1, 2, 5, 20)
"""Into how many parts the tree is cut."""
BUDGET = 20_000

data = Window("data", (1,), np.int64, initialised=True)


async def divided(case, parts, *, budget=BUDGET, jobs=1, on_run=None, **more):
    """Explore a case in so many parts, all of them here."""
    judge = Judge(case)
    pool = WorkerPool(jobs, Here(), run=partial(search_subtree, judge, on_run=on_run))
    return await ParallelSearch(case, judge, pool, parts=parts, first=1, **more).run(budget)


def facts(explored):
    """Return what must be the same whoever explores; where an overflow ended runs, that there was one is all."""
    kinds = {failure.finding.kind for failure in explored.failures}
    if "overflow" in kinds:
        return explored.complete, "overflow"
    return explored.complete, explored.ends, explored.results, explored.behaviours, set(explored.races), kinds


@kernel(memory=[data])
async def storing(rank, data):
    """Store to one place twice, and look at nothing."""
    await rank.store(data.at(0)[0], rank.id)
    await rank.store(data.at(0)[0], rank.id)


def storing_case(ranks=3):
    return Case(storing, ranks, 1)


def case_of_text(text, **more):
    program = parse(text, **more)
    return Case(kernel_of(program), ranks=len(program.actors), calls=1)
