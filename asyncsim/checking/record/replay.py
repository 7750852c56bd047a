"""Replay: do a recorded run again, and compare it with the record, step by step, bit by bit.

A replay either is the recorded run, or says at which step it is not. There is nothing in between.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING

from asyncsim.machine.case import Case, Run
from asyncsim.machine.simulate import Blocking, simulate
from asyncsim.schedulers.replay import Replay, same_op
from asyncsim.trace.errors import DivergenceError, KernelError
from asyncsim.trace.event import STEP_LIMIT, STOPPED, Footer, Trace
from asyncsim.trace.format import declarations, groups
from asyncsim.trace.token import Token, read_record
from asyncsim.trace.values import encode_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.kernel import Kernel
    from asyncsim.machine.simulate import Engine
    from asyncsim.trace.event import Event, Header
    from asyncsim.trace.finding import Finding

_OPEN_ENDED = (None, STOPPED)


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """A run that was done again and did the same.

    Args:
        run: the new run, with its trace; the scheduler, verdict and findings are the recorded ones.
        steps: how many steps agree: all of them.
        source_changed: the kernel's file is not the recorded one. Source lines were not compared.
        cut_short: the record ends there, the run does not: it is not known to be too long. A run is that if it
            is as long as a case allows (`Case.step_limit`), or if the trace was judged so when it was made.

    """

    run: Run
    _: KW_ONLY
    steps: int
    source_changed: bool
    cut_short: bool = False

    def failures(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return what of the findings is the run's: that the record is cut short is no failure of the run."""
        return [found for found in findings if not (self.cut_short and found.kind == STEP_LIMIT)]


@Blocking
async def replay(
    recorded: Trace | Token | str, kernel: Kernel, *, engine: Engine | None = None, max_steps: int | None = None
) -> Replayed:
    """Do a recorded run again.

    Of a trace, every step is compared: operation, place, phase, source line, data, value of the
    cell; then ending, outputs and the operations left over. A token holds no steps: its schedule
    must fit, from the first choice to the ending. A record that was broken off, or cut by a limit of
    steps that is not the case's own, is compared as far as it goes.

    Args:
        recorded: a trace, or a token; as text (`Finding.token`, `Finding.trace`) it is read first.
        kernel: the kernel, which the caller has found by the recorded name or otherwise.
        engine: "trio" or "direct".
        max_steps: how long a run may be, as of a case; a shorter record that ends with *step-limit* is
            cut short.

    Raises:
        DivergenceError: the run does something else than was recorded.
        KernelError: the kernel raised where the recorded run stopped. Its trace is the whole replay.
        MisuseError: it cannot be run as recorded: an unknown memory model, or an edit that is none; or there is no
            such file.
        TraceError: the text is not a token, or the file not a trace.

    """
    if isinstance(recorded, str):
        recorded = read_record(recorded)
    source_changed = recorded.header.source != kernel.source
    if isinstance(recorded, Token):
        run = await _follow_token(recorded, kernel, engine, source_changed=source_changed)
    else:
        run = await _follow_trace(recorded, kernel, engine, source_changed=source_changed)
    cut_short = run.ending == STEP_LIMIT and not _too_long(
        recorded, replace(run.case, max_steps=max_steps), len(run.choices)
    )
    return Replayed(run, steps=len(run.choices), source_changed=source_changed, cut_short=cut_short)


def _too_long(recorded: Trace | Token, case: Case, steps: int) -> bool:
    """Return whether a run that was stopped at the end of its record failed by that."""
    footer = None if isinstance(recorded, Token) else recorded.footer
    if footer is not None and any(found["kind"] == STEP_LIMIT for found in footer.findings):
        return True
    limit = case.step_limit
    if isinstance(recorded, Token) and recorded.limit is not None:
        limit = recorded.limit
    return recorded.ending == STEP_LIMIT and steps >= limit


def _case(recorded: Token | Header, kernel: Kernel, max_steps: int) -> Case:
    return Case(
        kernel, ranks=recorded.ranks, calls=recorded.calls, memory=recorded.memory, seed=recorded.seed,
        max_steps=max_steps, edits=recorded.edits,
    )  # fmt: skip


async def _follow_token(token: Token, kernel: Kernel, engine: Engine | None, *, source_changed: bool) -> Run:
    steps = len(token.choices)
    # One step more than there are choices, so that a run that goes on asks for one, and is told.
    case = _case(token, kernel, steps + (token.ending not in (STEP_LIMIT, STOPPED)))
    run = await _simulated(case, Replay(token.choices), "replay", steps, engine, stops=token.ending in _OPEN_ENDED)
    _check_stopped(token.ending, run, source_changed=source_changed)
    if token.ending not in _OPEN_ENDED and run.ending != token.ending:
        raise DivergenceError(_differ("the ending", token.ending, run.ending), step=steps)
    return run


async def _follow_trace(trace: Trace, kernel: Kernel, engine: Engine | None, *, source_changed: bool) -> Run:
    header = trace.header
    footer = trace.footer
    steps = len(trace.events)
    ending = trace.ending
    case = _case(header, kernel, steps + (ending not in (None, STEP_LIMIT, STOPPED)))
    if groups(case.world) != groups(header.world):
        raise DivergenceError(_differ("the list of groups", groups(header.world), groups(case.world)), step=0)
    if declarations(case.world) != declarations(header.world):
        described = _differ("the memory", declarations(header.world), declarations(case.world))
        raise DivergenceError(described, step=0)
    scheduler = Replay(trace.choices, trace.events)
    try:
        run = await _simulated(case, scheduler, header.scheduler, steps, engine, stops=ending in _OPEN_ENDED)
    except DivergenceError as error:
        # Another operation is often the echo of another value. Look for that, in the steps before.
        before = replace(case, max_steps=error.step)
        _compare_events(trace, await _recorded(before, trace.choices, engine), source_changed=source_changed)
        raise
    except KernelError as error:
        _compare_events(trace, error.trace, source_changed=source_changed)
        _finish(trace, error.trace)
        raise
    _compare_events(trace, run.trace, source_changed=source_changed)
    _check_stopped(ending, run, source_changed=source_changed)
    if footer is not None and ending != STOPPED and run.trace is not None and run.trace.footer is not None:
        _compare_footers(footer, run.trace.footer, steps)
    _finish(trace, run.trace)
    return run


async def _recorded(case: Case, choices: list[str], engine: Engine | None) -> Trace | None:
    try:
        return (await simulate.aio(case, Replay(choices), record="", engine=engine)).trace
    except KernelError as error:
        return error.trace  # type: ignore[no-any-return]


async def _simulated(  # noqa: PLR0913 - what is run, and how
    case: Case, scheduler: Replay, record: str, steps: int, engine: Engine | None, *, stops: bool
) -> Run:
    """Run it, for so many steps; `stops` says that a kernel may raise after the last of them."""
    try:
        run = await simulate.aio(case, scheduler, record=record, engine=engine)
    except KernelError as error:
        made = len(error.trace.events)
        if made < steps or not stops:
            raise DivergenceError(f"the recorded run did not fail here; this one did: {error}", step=made) from error
        raise
    if len(run.choices) < steps:
        described = f"the recorded run went on for {steps - len(run.choices)} steps; this one ended ({run.ending})"
        raise DivergenceError(described, step=len(run.choices))
    return run


def _check_stopped(ending: str | None, run: Run, *, source_changed: bool) -> None:
    """Tell a run that was interrupted, which may go on here, from one that failed, which may not."""
    if ending == STOPPED and (run.ending != STEP_LIMIT or source_changed):
        described = f"the recorded run stopped here; this one {'goes on' if run.ending == STEP_LIMIT else 'ended'}"
        raise DivergenceError(f"{described} ({run.ending})", step=len(run.choices))


def _compare_events(recorded: Trace, met: Trace | None, *, source_changed: bool) -> None:
    for old, new in zip(recorded.events, [] if met is None else met.events, strict=False):
        difference = _difference(old, new, source_changed=source_changed)
        if difference:
            step = new.step or 0
            raise DivergenceError(f"actor {new.op.actor.name}, {new.op}: {difference}", step=step)


def _difference(old: Event, new: Event, *, source_changed: bool) -> str:  # noqa: PLR0911 - one return a field
    """Return what differs between two events; nothing: empty.

    Of the source lines only the author's counts, and only while the kernel's file is the recorded
    one: what a line of a composite is called changes with every release of ours.
    """
    if not same_op(old.op, new.op):
        return _differ("the operation", old.op, new.op)
    if old.call != new.call:
        return _differ("the call", old.call, new.call)
    if old.phase != new.phase:
        return _differ("the phase", old.phase, new.phase)
    if not source_changed and old.at[:1] != new.at[:1]:
        return _differ("the source line", " ".join(old.at), " ".join(new.at))
    if old.have != new.have:
        return _differ("the cell's value", old.have, new.have)
    if old.unwritten != new.unwritten:
        return _differ("unwritten", old.unwritten, new.unwritten)
    if old.data is not None and new.data is not None:
        dtype = new.op.accesses[-1].region.dtype
        # In the form of a file: there a large value is a digest, and one of the two may come from there.
        was, now = encode_data(old.data, dtype), encode_data(new.data, dtype)
        if was != now:
            return _differ("the value", was, now)
    return ""


def _compare_footers(old: Footer, new: Footer, steps: int) -> None:
    if old.ending != new.ending:
        raise DivergenceError(_differ("the ending", old.ending, new.ending), step=steps)
    for call, (was, now) in enumerate(zip(old.outputs, new.outputs, strict=False)):
        for rank, digests in enumerate(zip(was, now, strict=True)):
            if digests[0] != digests[1]:
                described = _differ(f"the output of rank {rank} in call {call}", *digests)
                raise DivergenceError(described, step=steps)
    if len(old.pending) != len(new.pending) or not all(map(_same_pending, old.pending, new.pending)):
        described = _differ("what is pending at the end", _listed(old), _listed(new))
        raise DivergenceError(described, step=steps)


def _same_pending(old: Event, new: Event) -> bool:
    return same_op(old.op, new.op) and (old.call, old.have) == (new.call, new.have)


def _listed(footer: Footer) -> str:
    return ", ".join(f"{event.op.actor.name} ({event.op})" for event in footer.pending) or "nothing"


def _differ(what: str, old: object, new: object) -> str:
    return f"{what} differs; recorded: {old}; met: {new}"


def _finish(recorded: Trace, met: Trace | None) -> None:
    """Copy into the new trace what is not the run's own, so that it is the recorded one."""
    if met is None:
        return
    met.header.scheduler = recorded.header.scheduler
    met.header.version = recorded.header.version
    footer = recorded.footer
    if footer is None or footer.ending == STOPPED:
        met.footer = footer
    elif met.footer is not None:
        new = met.footer
        met.footer = Footer(footer.ending, new.outputs, new.pending, footer.verdict, footer.findings, new.collectives)
