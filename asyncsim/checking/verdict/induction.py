"""Induction over calls: whether a proof for a few calls is one for all that follow, in words; and the runs for it."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from asyncsim.analysis.analyse import analyse
from asyncsim.analysis.repeat import beyond
from asyncsim.checking.record.outside import OutsideWatch
from asyncsim.checking.record.versions import Versions
from asyncsim.checking.search.sampler import mixed_plan
from asyncsim.machine.calluse import CallUse
from asyncsim.machine.direct import drive
from asyncsim.schedulers.calls import Calls
from asyncsim.schedulers.table import make
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.event import COMPLETE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.analysis.repeat import Beyond
    from asyncsim.checking.record.outside import OutsideState
    from asyncsim.machine.case import Case, Run
    from asyncsim.machine.course import Begun

MORE_CALLS = 2
"""So many calls more than asked for are tried: buffers that take turns show their period only then ..."""
MORE_STEPS = 50_000
"""... where a run is no longer than that."""

STREAM_RUNS, STREAM_STEPS = 16, 200_000
"""So many further runs look at streams, while they take no more steps than this in all; two in any case."""


class Rerun(Protocol):
    """Runs a case once more: `second_run`, `plain_run` or `run_under`."""

    def __call__(self, case: Case, *, begun: Begun | None = None) -> tuple[Run, CallUse]:
        """Run it."""


def second_run(case: Case, *, begun: Begun | None = None, outside: OutsideState | None = None) -> tuple[Run, CallUse]:
    """Run a case call by call, in another order than the fair one, watching what its kernel does with `rank.call`.

    Args:
        case: what is run.
        begun: as of `drive`.
        outside: compared between the steps, if the kernel reaches anything there.

    Raises:
        KernelError: the kernel raised.

    """
    use = CallUse()
    scheduler = Calls(seed=1)
    chooses = scheduler if outside is None or not outside.parts else OutsideWatch(scheduler, outside)
    run = drive(case, chooses, record=str(scheduler), use=use, begun=begun, lines=False)
    run.windows = []  # what it leaves is the fair run's, and of a thousand ranks it is much
    return run, use


def plain_run(case: Case, *, begun: Begun | None = None) -> tuple[Run, CallUse]:
    """Run a case as `second_run` does, with plain numbers of its calls, whose use is not watched then.

    Args:
        case: what is run.
        begun: given the list of choices as the run begins.

    """
    run, use = run_under(case, scheduler=str(Calls(seed=1)), begun=begun)
    use.otherwise = True
    return run, use


def run_under(case: Case, *, scheduler: str, begun: Begun | None = None) -> tuple[Run, CallUse]:
    """Run a case under another schedule.

    Args:
        case: what is run.
        scheduler: as `make` takes it.
        begun: as of `drive`.

    Raises:
        KernelError: the kernel raised.

    """
    return drive(case, make(scheduler), record=scheduler, begun=begun, lines=False), CallUse()


def stream_plan(reference: Run) -> Sequence[str]:
    """Return the schedulers under which it is looked whether streams share Python objects; none without streams.

    PCT holds one stream far back, POS and the random walk mix them. Of kernels that were written to hide it, eight
    runs showed each. A long run gets fewer.
    """
    streams = any("." in actor for actor in set(reference.choices))  # a stream's name: 2.1
    if reference.case.kernel.separate_streams or not streams:
        return ()
    steps = len(reference.choices)
    runs = max(min(STREAM_STEPS // steps, STREAM_RUNS), 2)
    return tuple(islice(mixed_plan(0, reference.case.seed, steps), runs))


def scope_of_later_calls(case: Case, run: Run, use: CallUse) -> str:
    """Return how far the proof of `run`, call by call, reaches beyond its calls; empty if no farther.

    Args:
        case: what was proved.
        run: of `second_run`.
        use: of the same.

    """
    found = _period(run, use)
    calls = case.calls
    while found is None and calls < case.calls + MORE_CALLS and len(run.choices) <= MORE_STEPS and not use.otherwise:
        calls += 1
        try:
            run, use = second_run(replace(case, calls=calls))
        except (KernelError, MisuseError):
            return ""
        if run.trace is None or run.ending != COMPLETE:
            return ""
        if not analyse(run.trace, contents=Versions(case)).clean:
            return f"not for {calls} calls: then the analysis finds something; judge it with --calls {calls}"
        found = _period(run, use)
    if found is None:
        return ""
    alike = f"call {found.period.second} begins as call {found.period.first} did"
    seen = "" if calls == case.calls else f", which a run of {calls} calls shows"
    if found.limit is None:
        return f"and for any number of calls, if later ones issue the same operations: {alike}{seen}"
    why = "what one that runs ahead adds to a cell" if found.second_form else "a cell that grows from call to call"
    return (
        f"and for up to {found.limit} calls, if later ones issue the same operations: {alike}{seen}, "
        f"but {why} may leave its range then"
    )


def _period(run: Run, use: CallUse) -> Beyond | None:
    found = None if run.trace is None else beyond(run.trace)
    return found if found is not None and use.repeats_after(found.period.length) else None
