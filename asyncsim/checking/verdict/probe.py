"""The second run: a kernel that shows nothing must do the same under another schedule, and then a proof stands.

Where ranks have streams, several more: streams of a rank can share Python objects, which are no memory of the
machine. What they do to each other there is in no trace, so no theory sees it; other schedules may.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from asyncsim.checking.record.determinism import stream_difference
from asyncsim.checking.verdict.induction import later_calls, plain_run, run_under, second_run, stream_plan
from asyncsim.machine.calluse import CallUse
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.finding import Finding

if TYPE_CHECKING:
    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.record.outside import Outside
    from asyncsim.checking.verdict.account import Account
    from asyncsim.checking.verdict.induction import Again
    from asyncsim.machine.case import Case, Run


class Second:
    """Repeats a run in which nothing was found.

    Args:
        case: what is judged.
        judge: of its runs.
        account: takes the finding, if there is one.
        outside: what the kernel reaches; it is looked at during the second run.

    """

    def __init__(self, case: Case, judge: Judge, account: Account, outside: Outside) -> None:
        self._outside = outside
        self._case = case
        self._judge = judge
        self._account = account

    def look(self, reference: Run) -> str:
        """Run again under another schedule: without findings, the streams must be the same.

        Returns:
            How far a proof reaches beyond the calls that were judged, as the end of a sentence; empty if no farther.

        """
        call_by_call = partial(second_run, outside=self._outside)
        why, second, use = self._again(reference, call_by_call)
        if why:
            # The calls had numbers that are no plain ones. If these are the reason, it is the same reason each time,
            # and plain numbers give none; whatever else comes and goes is hidden state.
            plain, second, use = self._again(reference, plain_run)
            if not plain and _without_addresses(self._again(reference, call_by_call)[0]) == _without_addresses(why):
                why = ""
            why = plain or why
        if not why and (shared := self._shared(reference)) is not None:
            why, second = shared
        if why:
            outputs = second is None or self._judge.digests(reference) != self._judge.digests(second)
            self._account.findings.append(Finding("hidden-state", why, harmful=True if outputs else None))
        elif second is not None:
            self._account.begin("look at later calls")
            try:
                return later_calls(self._case, second, use)
            except KeyboardInterrupt:
                self._account.interrupt()  # what was asked for is proved by now
        return ""

    def _shared(self, reference: Run) -> tuple[str, Run | None] | None:
        """Return how further runs show that streams share more than memory, and one that does; None if none does."""
        for scheduler in stream_plan(reference):
            why, run, _ = self._again(reference, partial(run_under, scheduler=scheduler))
            if why:
                return f"{why}, or streams of a rank share a Python object ({scheduler})", run
        return None

    def _again(self, reference: Run, run_again: Again) -> tuple[str, Run | None, CallUse]:
        """Run once more; return how that differs from the reference, if it does, and what came."""
        account = self._account
        account.schedules += 1
        try:
            second, use = run_again(self._case, begun=account.run("second run", total=len(reference.choices)))
        except (KernelError, MisuseError) as error:
            return f"under a second schedule the kernel raises: {error}", None, CallUse()
        account.begin("comparison of two runs", total=len(reference.choices))
        return self._differs(reference, second), second, use

    def _differs(self, reference: Run, second: Run) -> str:
        """Say how a second run differs from the reference, which it must not; empty if it does not."""
        difference = stream_difference(reference.recorded, second.recorded)
        if difference is None and self._judge.digests(reference) == self._judge.digests(second):
            return ""
        return (
            f"no operation of another rank explains that a second schedule {difference or 'gives other outputs'}: "
            "the kernel depends on something outside its inputs and its memory"
        )


def _without_addresses(text: str) -> str:
    """Leave out where objects lie: what an exception says of them differs from run to run."""
    return re.sub("0x[0-9a-fA-F]+", "", text)
