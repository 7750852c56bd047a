"""Executors that stand for pools of processes, and what an exploration reports that nothing disturbs."""

from __future__ import annotations

import json
import pickle
from concurrent.futures import BrokenExecutor, Executor, Future
from functools import cache

from asyncsim import MisuseError, explore
from asyncsim.checking.workers.batch import CaseSpec
from asyncsim.checking.workers.pool import WorkerPool
from kernels.reduce_scatter import hand_no_epilogue

RUNS = 60
EXPLORE = ("explore", "reduce_scatter:hand_no_epilogue", "-P", "3", "--json")


def text_of(report):
    """Return all that a report says, but for the seconds."""
    facts = report.to_json()
    del facts["seconds"]
    return json.dumps(facts)


@cache
def undisturbed():
    """Return what one process reports."""
    return text_of(explore(hand_no_epilogue, ranks=3, runs=RUNS))


def spec_of(found, ranks=3, **more):
    """Return what batches of an exploration share."""
    return CaseSpec(
        **{"kernel": found.ref, "source": found.source, "ranks": ranks, "calls": 2, "memory": "sc", "seed": 0}
        | {"behaviours": True, **more}
    )


class Here(Executor):
    """Runs each batch at once; pickles it and its part, as a process would; may lose some."""

    def __init__(self, lose=lambda _: False):
        self.lose = lose
        self.given = []

    def submit(self, function, /, batch):
        self.given.append(batch)
        future = Future()
        if self.lose(batch):
            future.set_exception(BrokenExecutor("a worker died"))
        else:
            try:
                future.set_result(pickle.loads(pickle.dumps(function(pickle.loads(pickle.dumps(batch))))))  # noqa: S301
            except MisuseError as error:
                future.set_exception(error)
        return future


class Late(Here):
    """Holds every future back until there are some, and then finishes the last first."""

    def submit(self, function, /, batch):
        future = super().submit(function, batch)
        late = Future()
        self.held = [(late, future), *getattr(self, "held", [])]
        if len(self.held) == 2 or batch.start + len(batch.texts) == RUNS:
            for late_one, done in self.held:
                late_one.set_result(done.result())
            self.held = []
        return late


class Renewed(WorkerPool):
    """A pool whose pool can be lost without a process."""

    def __init__(self, lose):
        super().__init__(2, Here(lose))
        self.renewals = 0

    def renew(self):
        self.renewals += 1
