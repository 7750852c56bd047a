"""What one run shows by itself, beside the fair run of the same case: failures, hangs in words, unawaited signals."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from asyncsim.analysis.contracts import leftover_credits
from asyncsim.analysis.deadlock import Beyond, deadlock
from asyncsim.analysis.group import FairOrder, findings_of
from asyncsim.analysis.mismatch import call_mismatches
from asyncsim.analysis.spin import endless
from asyncsim.analysis.streams import Streams
from asyncsim.checking.diagnose.compare import Difference, compare
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.machine.case import MISSING, Case
from asyncsim.machine.direct import drive
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.replay import Replay
from asyncsim.trace.columns import Columns, among
from asyncsim.trace.digest import digest_value
from asyncsim.trace.errors import DivergenceError, KernelError
from asyncsim.trace.event import COMPLETE, DEADLOCK, STEP_LIMIT
from asyncsim.trace.finding import Finding
from asyncsim.trace.kinds import EXCHANGING, POLLING, SEEING, SIGNALLING, WAITING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.case import Case, Run
    from asyncsim.trace.event import Event, Trace
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


HANGS = (DEADLOCK, STEP_LIMIT)
"""The kinds of findings that are told here; each is an ending, too."""
LONG = 1_000_000
"""A run of so many steps is not made again for the sake of its words."""


def describe_hang(case: Case, finding: Finding, choices: Sequence[str], trace: Trace | None = None) -> Finding:
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
    words = endless(streams) if finding.kind == STEP_LIMIT else deadlock(streams, _beyond_hang(case, trace))
    return finding.with_(why=words.why, sides=words.sides, window=words.window, pairs=words.pairs, shown=words.shown)


def _beyond_hang(case: Case, trace: Trace) -> Beyond:
    """Run on from a hang as if no wait and no poll had to wait."""
    steps = len(trace.events)
    passed = Counter(event.op.actor.name for event in trace.events if event.op.kind in WAITING | POLLING)
    longer = replace(case, max_steps=2 * steps + 1000)
    try:
        run = drive(longer, _ReplayThenFair(trace.choices), record="onward", onward=passed)
        seen, whole = run.trace, run.ending == COMPLETE
    except KernelError as error:  # it computes with what it should have waited for
        seen, whole = error.trace, False
    return Beyond(() if seen is None else seen.events[steps:], whole, _accepts)


class _ReplayThenFair:
    """A recorded schedule, and after its end every actor in turn."""

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
    """Return whether the predicate of a poll holds for these bytes; one that raises does not."""
    region = poll.op.accesses[0].region
    try:
        tile = np.frombuffer(data, region.dtype).reshape(region.shape).copy()
        return bool(poll.op.payload(tile))
    except (Exception, SystemExit):  # noqa: BLE001 - it is the author's predicate, and no operation of the run
        return False


_BITS = "the same numbers in other bits (a sign of zero, a NaN, or a dtype)"


class Symptoms:
    """Says of runs what fails in them: what a judge finds, a result that no fair run gives, left credits.

    Args:
        case: what the runs are runs of; makes one fair run.

    """

    def __init__(self, case: Case) -> None:
        """Make the fair run; a kernel that raises in it has none."""
        self._judge = Judge(case)
        self._fair: Run | None = None
        try:
            self._fair = drive(case, Fifo())
        except KernelError:
            return
        self._judge.set_reference(self._fair)

    def findings(self, run: Run) -> list[Finding]:
        """Return what fails in a run; left credits and collectives that do not match only if the run was recorded."""
        found = self._judge.findings(run)
        if run.trace is not None:
            found = [describe_hang(run.case, finding, run.choices, run.trace) for finding in found]
            found = [*call_mismatches(run.trace), *found]
            streams = Streams(run.trace)
            left = findings_of(streams, leftover_credits(streams), FairOrder(streams, None))
            found += [finding.with_(harmful=True) for finding in left]
        if not found and (others := self._other_bits(run)):
            call, rank, difference = others[0]
            why = f"rank {rank}'s result of call {call} is not that of the fair schedule: {difference.text}"
            found = [Finding("wrong-result", why, pairs=len(others), harmful=True, shown=difference.text)]
        return found

    def differences(self, run: Run) -> list[tuple[int, int, Difference]]:
        """Return (call, rank, difference) for every wrong result; else for all that the fair run does not give."""
        return self._judge.differences(run) or self._other_bits(run)

    def _other_bits(self, run: Run) -> list[tuple[int, int, Difference]]:
        if self._fair is None or self._judge.another_right_result(run, self._fair):
            return []
        return [
            (call, rank, compare(got, want, rtol=0.0, atol=0.0) or Difference(1, _BITS))
            for call, (outputs, wants) in enumerate(zip(run.outputs, self._fair.outputs, strict=True))
            for rank, (got, want) in enumerate(zip(outputs, wants, strict=True))
            if got is not MISSING and want is not MISSING and digest_value(got) != digest_value(want)
        ]


def unawaited_signals(run: Run) -> list[str]:
    """Return a note for each signal that ranks notify at peers, and whose cells no rank waits for or tests.

    Args:
        run: recorded; one that did not come to its end gives no notes.

    """
    if run.ending != COMPLETE or run.trace is None:
        return []
    events = run.trace.events
    describe_hang, awaited = _signals_by_column(events) if isinstance(events, Columns) else _signals_by_event(events)
    return [
        f"signal {signal} is notified, first at {at}, and no rank waits for it or tests it"
        for signal, at in describe_hang.items()
        if signal not in awaited
    ]


_ASKING = SEEING | EXCHANGING
"""What tells its actor something of a cell: an atomic returns what it held."""


def _signals_by_event(events: Sequence[Event]) -> tuple[dict[str, str], set[str]]:
    """Return the signals that are notified at peers, each with the first line, and those that are asked."""
    describe_hang: dict[str, str] = {}
    awaited = set()
    for event in events:
        cell = event.op.cell
        if cell is not None and event.op.kind in SIGNALLING and cell.owner != event.op.actor.rank:
            describe_hang.setdefault(cell.signal, event.at[0])
        if cell is not None and event.op.kind in _ASKING:
            awaited.add(cell.signal)
    return describe_hang, awaited


def _signals_by_column(events: Columns) -> tuple[dict[str, str], set[str]]:
    steps = events.steps
    notifies = np.flatnonzero(among(SIGNALLING)[steps.kind])
    slots, numbers = np.unique(steps.cell[notifies], return_inverse=True)
    owners = np.array([events.cells[int(slot)].owner for slot in slots], int)[numbers]
    ranks = np.array([actor.rank for actor in events.actors], int)[steps.actor[notifies]]
    notifies = notifies[owners != ranks]
    describe_hang: dict[str, str] = {}
    for first in sorted(np.unique(steps.cell[notifies], return_index=True)[1]):
        step = int(notifies[first])
        at = events.wheres[int(steps.where[step])][1]
        describe_hang.setdefault(events.cells[int(steps.cell[step])].signal, at[0])
    waits = among(_ASKING)[steps.kind]
    return describe_hang, {events.cells[int(slot)].signal for slot in np.unique(steps.cell[waits])}
