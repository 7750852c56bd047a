"""Later calls: whether a proof for a few calls is one for all that follow, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from asyncsim.analysis.analyse import analyse
from asyncsim.analysis.repeat import beyond
from asyncsim.machine.calluse import CallUse
from asyncsim.machine.direct import drive
from asyncsim.schedulers.calls import Calls
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.event import COMPLETE

if TYPE_CHECKING:
    from asyncsim.analysis.repeat import Beyond
    from asyncsim.machine.case import Case, Run

MORE_CALLS = 2
"""So many calls more than asked for are tried: buffers that take turns show their period only then ..."""
MORE_STEPS = 50_000
"""... where a run is no longer than that."""


def second_run(case: Case) -> tuple[Run, CallUse]:
    """Run a case call by call, in another order than the fair one, watching what its kernel does with `rank.call`.

    Raises:
        KernelError: the kernel raised.

    """
    use = CallUse()
    scheduler = Calls(seed=1)
    run = drive(case, scheduler, record=str(scheduler), use=use)
    run.windows = []  # what it leaves is the fair run's, and of a thousand ranks it is much
    return run, use


def plain_run(case: Case) -> tuple[Run, CallUse]:
    """Run a case in the same way, with plain numbers of its calls.

    Raises:
        KernelError: the kernel raised.

    """
    use = CallUse()
    use.otherwise = True
    scheduler = Calls(seed=1)
    return drive(case, scheduler, record=str(scheduler)), use


def later_calls(case: Case, run: Run, use: CallUse) -> str:
    """Say how far the proof of `run`, call by call, reaches beyond its calls; empty if no farther.

    Args:
        case: what was proved.
        run: of `second_run`.
        use: of the same.

    """
    found = _beyond(run, use)
    calls = case.calls
    while found is None and calls < case.calls + MORE_CALLS and len(run.choices) <= MORE_STEPS and not use.otherwise:
        calls += 1
        try:
            run, use = second_run(replace(case, calls=calls))
        except (KernelError, MisuseError):
            return ""
        if run.trace is None or run.ending != COMPLETE:
            return ""
        if not analyse(run.trace).clean:
            return f"not for {calls} calls: then the analysis finds something; judge it with --calls {calls}"
        found = _beyond(run, use)
    if found is None:
        return ""
    alike = f"call {found.period.second} begins as call {found.period.first} did"
    seen = "" if calls == case.calls else f", which a run of {calls} calls shows"
    if found.limit is None:
        return f"and for any number of calls, if later ones issue the same operations: {alike}{seen}"
    return (
        f"and for up to {found.limit} calls, if later ones issue the same operations: {alike}{seen}, "
        "but a cell that grows from call to call has left its range by then"
    )


def _beyond(run: Run, use: CallUse) -> Beyond | None:
    found = None if run.trace is None else beyond(run.trace)
    return found if found is not None and use.repeats_after(found.period.length) else None
