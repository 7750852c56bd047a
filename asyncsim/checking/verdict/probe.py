"""The determinism probe: a kernel without findings is run again under another schedule, and must do the same.

Where ranks have streams, under several more: streams of a rank can share Python objects, which are not memory of the
machine. What they do to each other there is in no trace, so no theory sees it; other schedules may show it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING

from asyncsim.analysis.scopes import less_ordering
from asyncsim.checking.verdict.induction import plain_run, run_under, scope_of_later_calls, second_run, stream_plan
from asyncsim.machine.calluse import CallUse
from asyncsim.trace.columns import Columns
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.finding import Finding

if TYPE_CHECKING:
    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.record.outside import OutsideState
    from asyncsim.checking.verdict.induction import Rerun
    from asyncsim.checking.verdict.state import CheckState
    from asyncsim.machine.case import Run
    from asyncsim.trace.event import Digest, Trace

    Step = tuple[str, bytes | Digest | None]
    """An operation as text, and its data."""


@dataclass(slots=True)
class DeterminismProbe:
    """Repeats a run in which nothing was found.

    Args:
        judge: of its runs.
        state: of the check; gets the finding, if there is one.
        outside: the state outside the kernel's memory; compared during the second run.

    """

    judge: Judge
    state: CheckState
    outside: OutsideState

    def probe(self, reference: Run) -> str:
        """Run again under another schedule: without findings, every actor must do the same.

        Returns:
            How far a proof reaches beyond the calls that were judged, as the end of a sentence; empty if no farther.

        """
        call_by_call = partial(second_run, outside=self.outside)
        why, second, use = self._rerun(reference, call_by_call)
        if why:
            # The numbers of the calls were not plain ones. If these are the reason, it is the same reason each time,
            # and plain numbers give none; whatever else comes and goes is hidden state.
            plain, second, use = self._rerun(reference, plain_run)
            if not plain and _without_addresses(self._rerun(reference, call_by_call)[0]) == _without_addresses(why):
                why = ""
            why = plain or why
        if not why and (shared := self._shared_object(reference)) is not None:
            why, second = shared
        if why:
            outputs = second is None or (
                self.judge.digests(reference) != self.judge.digests(second)
                and not self.judge.another_right_result(reference, second)
            )
            self.state.findings.append(Finding("hidden-state", why, harmful=True if outputs else None))
        elif second is not None and not less_ordering(reference.recorded):  # of knowledge nothing is said call by call
            self.state.begin_stage("look at later calls")
            try:
                return scope_of_later_calls(self.judge.case, second, use)
            except KeyboardInterrupt:
                self.state.interrupt()  # what was asked for is proved already
        return ""

    def _shared_object(self, reference: Run) -> tuple[str, Run | None] | None:
        """Return how a further run shows that streams share more than memory, and that run; None if none does."""
        for scheduler in stream_plan(reference):
            why, run, _ = self._rerun(reference, partial(run_under, scheduler=scheduler))
            if why:
                return f"{why}, or streams of a rank share a Python object ({scheduler})", run
        return None

    def _rerun(self, reference: Run, rerun: Rerun) -> tuple[str, Run | None, CallUse]:
        """Run once more; return how that run differs from the reference, if it does, and the run."""
        state = self.state
        state.schedules += 1
        try:
            begun = state.begin_run("second run", total=len(reference.choices))
            second, use = rerun(self.judge.case, begun=begun)
        except (KernelError, MisuseError) as error:
            return f"under a second schedule the kernel raises: {error}", None, CallUse()
        state.begin_stage("comparison of two runs", total=len(reference.choices))
        return self._difference(reference, second), second, use

    def _difference(self, reference: Run, second: Run) -> str:
        difference = stream_difference(reference.recorded, second.recorded)
        if difference is None and self.judge.digests(reference) == self.judge.digests(second):
            return ""
        return (
            f"no operation of another rank explains that a second schedule {difference or 'gives other outputs'}: "
            "the kernel depends on something outside its inputs and its memory"
        )


def stream_difference(a: Trace, b: Trace) -> str | None:
    """Return how an actor's operations differ between two runs of a case, in words; None if they do not.

    Args:
        a: of one run.
        b: of another.

    """
    if isinstance(a.events, Columns) and isinstance(b.events, Columns):
        found = a.events.differs_in(b.events)
        return (
            None if found is None else _difference_text(*found, _nth_operation(a, *found) or _nth_operation(b, *found))
        )
    streams = [_steps_by_actor(trace) for trace in (a, b)]
    for name in sorted({*streams[0], *streams[1]}):
        own, other = (stream.get(name, []) for stream in streams)
        for index, (x, y) in enumerate(zip_longest(own, other)):
            if x != y:
                step = x or y
                return _difference_text(name, index, step[0] if step else "")
    return None


def _difference_text(actor: str, index: int, operation: str) -> str:
    return f"differs in actor {actor}'s operation {index} ({operation})"


def _nth_operation(trace: Trace, actor: str, index: int) -> str:
    own = (event for event in trace.events if event.op.actor.name == actor)
    return next((str(event.op) for number, event in enumerate(own) if number == index), "")


def _steps_by_actor(trace: Trace) -> dict[str, list[Step]]:
    streams: dict[str, list[Step]] = {}
    for event in trace.events:
        streams.setdefault(event.op.actor.name, []).append((str(event.op), event.data))
    return streams


def _without_addresses(text: str) -> str:
    """Leave out the addresses of objects: they differ from run to run."""
    return re.sub("0x[0-9a-fA-F]+", "", text)
