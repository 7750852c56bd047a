"""Who arrives last decides what happens: one run for each that can be last, if no one run decides.

See `asyncsim.analysis.arrivals` for why these runs decide together. What the last one does is in its own stream, and
may differ from one to the other; so all runs must end with the same results, windows and cells.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from asyncsim.analysis.analyse import analyse
from asyncsim.analysis.arrivals import meetings_of
from asyncsim.analysis.streams import Streams
from asyncsim.checking.verdict.probe import stream_difference
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.table import make
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.event import COMPLETE
from asyncsim.trace.kinds import ARRIVE
from asyncsim.trace.late import model_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.verdict.state import CheckState
    from asyncsim.machine.case import Run
    from asyncsim.machine.pick import Scheduler
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor

_BASES = ("fifo", "random:seed=0")
"""Each case is run twice: a kernel that shows nothing must do the same under another schedule."""

MOST_STEPS = 400_000
"""More steps are not run, over all cases."""

_Key = tuple[int, int]
"""A cell, by its slot, and what the last one finds there; there may be several meetings, one after the other."""


class ByCases:
    """The runs of one kernel, one for each combination of those who can arrive last.

    Args:
        judge: of the runs of a case.
        state: takes how many runs there were.

    """

    def __init__(self, judge: Judge, state: CheckState) -> None:
        """Run nothing yet."""
        self._case = judge.case
        self._judge = judge
        self._state = state

    async def prove(self, reference: Run) -> int:
        """Return how many runs decide together that all schedules end alike; 0: they do not.

        Args:
            reference: a run that does not decide by itself.

        """
        trace = reference.recorded
        model = model_of(self._case.memory)
        if model.late or model.scoped or reference.ending != COMPLETE:
            return 0
        if not any(event.op.kind == ARRIVE for event in trace.events):
            return 0
        streams = Streams(trace)
        meetings = meetings_of(streams)
        members = [sorted(streams.actors[actor].name for actor, _ in meeting.places) for meeting in meetings]
        keys = [(meeting.slot, meeting.amount) for meeting in meetings]
        cases = prod(map(len, members))
        if not meetings or cases * len(reference.choices) > MOST_STEPS:
            return 0
        end = self._end(reference, streams)
        for lasts in product(*members):
            wanted = list(zip(keys, lasts, map(tuple, members), strict=True))
            if not await self._is_clean(wanted, end, len(reference.choices)):
                return 0
        return cases

    async def _is_clean(
        self, wanted: Sequence[tuple[_Key, str, tuple[str, ...]]], end: list[object], steps: int
    ) -> bool:
        """Run with these as the last ones; say whether that decides for all schedules with these, and the end."""
        state = self._state
        runs = []
        for base in _BASES:
            state.schedules += 1
            begun = state.begin_run("run for who arrives last", total=steps)
            scheduler = _Lasts(wanted, make(base))
            try:
                runs.append(await simulate.aio(self._case, scheduler, record=base, engine="direct", begun=begun))
            except (KernelError, MisuseError):
                return False
            if runs[-1].ending != COMPLETE or scheduler.failed:
                return False
        run, again = runs
        if stream_difference(run.recorded, again.recorded) or self._judge.digests(run) != self._judge.digests(again):
            return False  # the kernel depends on something outside its memory
        streams = Streams(run.recorded)
        found = sorted(
            (
                (meeting.slot, meeting.amount), streams.actors[meeting.last[0]].name,
                tuple(sorted(streams.actors[actor].name for actor, _ in meeting.places)),
            )
            for meeting in meetings_of(streams)
        )  # fmt: skip
        if found != sorted(wanted) or self._end(run, streams) != end:
            return False
        state.begin_stage("analysis of who arrives last", total=steps)
        analysis = analyse(run.recorded, same_last=True)
        return analysis.clean and not analysis.findings

    def _end(self, run: Run, streams: Streams) -> list[object]:
        """Return all that a run leaves."""
        cells = {slot: history.final for slot, history in streams.histories.items()}
        windows = [None if window is None else np.asarray(window).tobytes() for window in run.windows]
        return [self._judge.digests(run), windows, cells]


class _Lasts:
    """Another scheduler, but that certain actors arrive last."""

    def __init__(self, wanted: Sequence[tuple[_Key, str, tuple[str, ...]]], base: Scheduler) -> None:
        self._base = base
        self._meetings: dict[_Key, list[tuple[str, int]]] = {}
        for key, last, members in wanted:
            self._meetings.setdefault(key, []).append((last, len(members)))
        self._come: Counter[_Key] = Counter()
        self.failed = False

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start a run."""
        self._base.begin(actors)

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return the next one whose turn it may be."""
        free = [op for op in ready if not self._is_early(op)]
        self.failed |= not free
        op = self._base.choose(free or ready)
        if op.kind == ARRIVE and op.cell is not None:
            self._come[op.cell.slot, op.amount] += 1
        return op

    def _is_early(self, op: Op) -> bool:
        """Say whether it is about to arrive in the wrong place: the last one too early, or another one as the last."""
        if op.kind != ARRIVE or op.cell is None:
            return False
        key = (op.cell.slot, op.amount)
        come = self._come[key]
        for last, members in self._meetings.get(key, ()):
            if come < members:
                return (come == members - 1) != (op.actor.name == last)
            come -= members
        return False
