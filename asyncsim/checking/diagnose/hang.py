"""Runs that hang or do not end, in words: each is run again with its lines, and once beyond where it hangs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from asyncsim.analysis.deadlock import Beyond, deadlock
from asyncsim.analysis.spin import endless
from asyncsim.analysis.streams import Streams
from asyncsim.machine.direct import drive
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.replay import Replay
from asyncsim.trace.errors import DivergenceError, KernelError
from asyncsim.trace.event import COMPLETE, DEADLOCK, STEP_LIMIT
from asyncsim.trace.op import POLL, WAIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.case import Case
    from asyncsim.trace.event import Event, Trace
    from asyncsim.trace.finding import Finding
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor

HANGS = (DEADLOCK, STEP_LIMIT)
"""The kinds of findings that are told here; each is an ending, too."""
LONG = 1_000_000
"""A run of so many steps is not made again for the sake of its words."""


def told(case: Case, finding: Finding, choices: Sequence[str], trace: Trace | None = None) -> Finding:
    """Return the finding of a run that hangs, or does not end, in words; any other as it is.

    Args:
        case: what was run.
        finding: of that run.
        choices: of that run.
        trace: of that run, if it was recorded.

    """
    if finding.kind not in HANGS or len(choices) > LONG:
        return finding
    if trace is None:
        try:
            trace = drive(case, Replay(choices), record="replay").trace
        except (DivergenceError, KernelError):
            return finding  # another finding tells that the kernel does not do the same again
    if trace is None or trace.footer is None or trace.footer.ending != finding.kind:
        return finding
    streams = Streams(trace)
    words = endless(streams) if finding.kind == STEP_LIMIT else deadlock(streams, beyond(case, trace))
    return finding.with_(why=words.why, sides=words.sides, window=words.window, pairs=words.pairs, shown=words.shown)


def beyond(case: Case, trace: Trace) -> Beyond:
    """Look beyond a hang: run on from there as if no wait and no poll had to wait.

    Args:
        case: what was run.
        trace: of the run, which ended in a deadlock.

    """
    steps = len(trace.events)
    passed = Counter(event.op.actor.name for event in trace.events if event.op.kind in (WAIT, POLL))
    longer = replace(case, max_steps=2 * steps + 1000)
    try:
        run = drive(longer, _Thereafter(trace.choices), record="onward", onward=passed)
        seen, whole = run.trace, run.ending == COMPLETE
    except KernelError as error:  # it computes with what it should have waited for
        seen, whole = error.trace, False
    return Beyond(() if seen is None else seen.events[steps:], whole, _accepts)


class _Thereafter:
    """A recorded schedule, and when that is over everybody in turn."""

    def __init__(self, choices: Sequence[str]) -> None:
        self._choices = choices
        self._step = 0
        self._fair = Fifo()

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start a run."""
        self._step = 0
        self._fair.begin(actors)

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return what was chosen then, or whose turn it is."""
        step = self._step
        self._step = step + 1
        if step >= len(self._choices):
            return self._fair.choose(ready)
        return next(op for op in ready if op.actor.name == self._choices[step])


def _accepts(poll: Event, data: bytes) -> bool:
    """Say whether the predicate of a poll holds for these bytes; one that raises does not."""
    region = poll.op.accesses[0].region
    try:
        tile = np.frombuffer(data, region.dtype).reshape(region.shape).copy()
        return bool(poll.op.payload(tile))
    except (Exception, SystemExit):  # noqa: BLE001 - it is the author's, and this is nobody's turn
        return False
