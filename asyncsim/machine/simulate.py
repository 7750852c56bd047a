"""The trio engine: every actor a trio task, and never a choice left to trio.

A task that arrives at the gate parks until it is chosen. The last one to arrive makes the choice
and wakes the chosen task directly, itself without any task switch. A driver task in the middle
would cost two switches a step instead of at most one.
"""

from __future__ import annotations

import linecache
import sys
import warnings
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import trio
from trio.lowlevel import reschedule, wait_task_rescheduled

from asyncsim.machine.case import MISSING, Case, Run, checked, copied
from asyncsim.machine.edit import Editor
from asyncsim.machine.effect import Immediate
from asyncsim.machine.gate import Effects, Gate, Scheduler
from asyncsim.machine.memory import Memory
from asyncsim.machine.rank import Rank
from asyncsim.machine.record import Place, Recorder
from asyncsim.machine.site import module_name, shown_path
from asyncsim.machine.wires import Wires
from asyncsim.trace.digest import digest_value
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.event import STOPPED, Footer, Trace
from asyncsim.trace.late import model_of
from asyncsim.trace.op import START, Op

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from asyncsim.machine.edit import Watch
    from asyncsim.machine.stream import Stream
    from asyncsim.trace.event import Event
    from asyncsim.trace.world import Actor

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


class Blocking(Generic[_Params, _Result]):
    """An async function that can also be called plainly: it then runs in a trio loop of its own.

    Inside a running trio loop use ``await function.aio(...)``. One definition, two doors.
    """

    def __init__(self, function: Callable[_Params, Coroutine[Any, Any, _Result]]) -> None:
        """Wrap the async function."""
        self.aio = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__wrapped__ = function

    def __call__(self, *args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        """Run it to its end in a trio loop of its own."""
        try:
            return trio.run(partial(self.aio, *args, **kwargs))
        except trio.TrioInternalError as error:
            # A nursery in a kernel starts tasks that trio, not the gate, would have to run.
            raise MisuseError(
                "a kernel seems to use trio itself, such as a nursery; start further tasks with rank.start"
            ) from error


@Blocking
async def simulate(case: Case, scheduler: Scheduler, *, record: str | None = None, watch: Watch | None = None) -> Run:
    """Run a case once, under a schedule chosen by `scheduler`.

    Args:
        case: what to run.
        scheduler: makes every choice.
        record: the scheduler as text, for the header; the run then keeps its trace.
        watch: is told of each operation, and of the lines it comes from, before it stands at the gate.

    Raises:
        KernelError: the kernel raised, or awaited something that is no operation of its rank.
        MisuseError: the scheduler chose what was not ready.
        DivergenceError: the scheduler replays a schedule that this kernel does not follow.

    """
    simulation = _Simulation(case, scheduler, record, watch)
    if record is None:
        return await simulation.run()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            run = await simulation.run()
        except BaseException:
            for warning in caught:  # a run that fails must not swallow what was warned of
                sys.stderr.write(
                    warnings.formatwarning(warning.message, warning.category, warning.filename, warning.lineno)
                )
            raise
    _refuse_forgotten_awaits(case, caught)
    return run


def _refuse_forgotten_awaits(case: Case, caught: list[warnings.WarningMessage]) -> None:
    """Refuse a kernel that made an operation and never awaited it: what was run is not what it says.

    Python only warns of it, when the coroutine is thrown away. All other warnings go on to the user.
    """
    for warning in caught:
        text = str(warning.message)
        if "coroutine 'Rank." in text and "never awaited" in text:
            method = text.partition("'Rank.")[2].partition("'")[0]
            place = f"{shown_path(warning.filename, '')}:{warning.lineno}"
            raise MisuseError(
                f"{case.kernel.ref}: a {method} was made but never awaited, at or before {place}; "
                f"write: await rank.{method}(...)"
            )
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


class _Raised(Exception):  # noqa: N818 - a wrapper that never leaves this module
    """A kernel raised: tells its exceptions from those of schedulers, which run in the same task."""


class _Simulation:
    """One run under way."""

    def __init__(self, case: Case, scheduler: Scheduler, record: str | None, watch: Watch | None) -> None:
        world = case.world
        self.case = case
        self.inputs = case.inputs  # made here, where a mistake in them reaches the caller as it is
        self.memory = Memory(world, case.seed)
        model = model_of(case.memory)
        effects: Effects = Wires(self.memory, model) if model.late else Immediate(self.memory)
        self.gate = Gate(self.memory, effects, scheduler, moving=world.ranks, max_steps=case.step_limit)
        self.deferred = model.late
        self.places = {actor.order: Place(Rank(actor, world, deferred=model.late)) for actor in world.actors}
        self.tasks: dict[int, trio.lowlevel.Task] = {}
        self.outputs: list[list[Any]] = [[MISSING] * world.ranks for _ in range(case.calls)]
        self.error: Exception | None = None
        self.pending: list[Event] = []
        self.record = record
        self.recorder = (
            None if record is None else Recorder(self.memory, effects.seen, self.places, case.sites, late=model.late)
        )
        self.gate.observer = self.recorder
        if self.recorder is not None:
            self.recorder.clock = getattr(scheduler, "now", None)
        self.editor: Editor | None = None
        if case.edits or watch is not None:
            self.editor = Editor(case.changes, world, case.sites, watch, deferred=model.late)
        self.scope = trio.CancelScope()
        self.unstarted: list[Callable[[], Coroutine[Any, Any, None]]] = [
            partial(self._drive, actor) for actor in reversed(world.actors)
        ]
        scheduler.begin(world.actors)

    async def run(self) -> Run:
        case = self.case
        try:
            with self.scope:
                async with trio.open_nursery() as self.children:
                    self._start_next()
        except BaseExceptionGroup as group:
            if group.subgroup(KeyboardInterrupt) is not None:
                raise KeyboardInterrupt from None
            raise
        if self.error is not None:
            raise self.error
        ending = self.gate.ending
        if ending is None:
            raise RuntimeError("the run stopped without an ending")
        choices = [actor.name for actor in self.gate.choices]
        unwritten = [str(region) for region in self.memory.unwritten]
        unapplied = () if self.editor is None else self.editor.unapplied
        trace = self._trace(ending)
        return Run(case, choices, self.outputs, ending, unwritten, self.memory.arrays, trace, unapplied)

    def _start_next(self) -> None:
        """Start one actor: the next starts when this one stands at the gate, so trio has no order to choose."""
        self.children.start_soon(self.unstarted.pop())

    async def _drive(self, actor: Actor) -> None:
        """Take a rank through all its calls."""
        place = self.places[actor.order]
        views = self.case.views(actor.rank)
        rank = place.rank
        with self._as_task(actor, place):
            for call, xs in enumerate(self.inputs):
                rank.call = call
                rank.phase_name = ""
                started = partial(self.case.kernel.start, rank, copied(xs[actor.rank]), views)
                self.outputs[call][actor.rank] = _output(await self._call(place, started))

    async def _drive_stream(self, stream: Stream[Any], call: int, phase: str) -> None:
        """Take a stream through its program; `phase` is its parent's when it was started."""
        actor = stream.actor
        rank = Rank(actor, self.case.world, deferred=self.deferred)
        rank.call, rank.phase_name = call, phase
        place = self.places[actor.order] = Place(rank)
        with self._as_task(actor, place):
            stream.value = await self._call(place, partial(stream.program, rank, *stream.args))

    @contextmanager
    def _as_task(self, actor: Actor, place: Place) -> Iterator[None]:
        """Let the present trio task be the actor's, and hand the turn on when it has finished."""
        self.tasks[actor.order] = trio.lowlevel.current_task()
        if self.recorder is not None:
            place.rank.note = self.recorder.collective
        try:
            yield
            self.gate.leave(actor)
            self._hand_on(self.gate.next())
        except _Raised as raised:
            self._fail(_kernel_error(raised.__cause__, actor, place.rank.call, self._trace(STOPPED)))
        except Exception as error:  # noqa: BLE001 - a scheduler's: it reaches the caller as it is
            self._fail(error)
        except BaseException:
            # Ctrl-C, or a cancellation: nobody may be woken by a task that is on its way out.
            self.gate.ending = self.gate.ending or STOPPED
            raise

    async def _call(self, place: Place, start: Callable[[], Any]) -> Any:  # noqa: ANN401, C901 - every step comes through
        """Run one call of a program, sending into it what each operation gave."""
        gate = self.gate
        coroutine: Any = None
        outcome: Any = None
        try:
            try:
                coroutine = place.coroutine = _started(start())
                coroutine = coroutine if self.editor is None else self.editor.drive(place)
            except Exception as error:
                raise _Raised from error
            while True:
                try:
                    op = coroutine.send(outcome)
                    if op.__class__ is not Op:
                        coroutine.throw(MisuseError(_FOREIGN))
                        raise MisuseError(_FOREIGN)  # noqa: TRY301 - the kernel swallowed it; it is no less wrong
                except StopIteration as stop:
                    _check_joined(place.rank)
                    return stop.value
                except (Exception, SystemExit) as error:
                    raise _Raised from error
                gate.arrive(op)
                chosen = gate.next()
                if chosen is not op:
                    if chosen is not None:
                        reschedule(self.tasks[chosen.actor.order])
                    else:
                        self._hand_on(None)
                    await wait_task_rescheduled(_abort)
                outcome = gate.perform(op)
                if op.kind == START:
                    self._prepare(op.payload, place.rank)
                if gate.ending is not None:
                    self._hand_on(None)
                    await trio.lowlevel.checkpoint()
        finally:
            if coroutine is not None:
                _close(coroutine)

    def _prepare(self, stream: Stream[Any], parent: Rank) -> None:
        """Let a stream begin when its parent comes to the gate again; its phase is that of this moment."""
        self.gate.enter()
        self.unstarted.append(partial(self._drive_stream, stream, parent.call, parent.phase_name))

    def _hand_on(self, chosen: Op | None) -> None:
        """Wake the chosen task; or, with nobody to choose, end the run if it is over."""
        if chosen is not None:
            reschedule(self.tasks[chosen.actor.order])
        elif self.unstarted:
            self._start_next()
        elif self.gate.ending is not None:
            if self.recorder is not None:  # now, while the kernels still stand at their lines
                self.pending = [self.recorder.pending(op) for op in self.gate.pending()]
            self.scope.cancel()

    def _fail(self, error: Exception) -> None:
        """Stop the run."""
        self.error = error
        self.scope.cancel()

    def _trace(self, ending: str) -> Trace | None:
        if self.recorder is None or self.record is None:
            return None
        outputs = [[None if y is MISSING else digest_value(y) for y in ys] for ys in self.outputs]
        footer = Footer(ending, outputs, self.pending, collectives=self.recorder.collectives)
        return Trace(self.case.header(self.record), self.recorder.events, footer)


def _started(coroutine: Any) -> Any:  # noqa: ANN401 - what an author's function returned
    if not hasattr(coroutine, "send"):
        kind = type(coroutine).__name__
        raise MisuseError(f"a program returned an object of type {kind} at once; give an async function")
    return coroutine


_FOREIGN = "the kernel awaits something that is no operation of its rank; a kernel awaits methods of its Rank only"

_NOT_THE_AUTHORS = ("asyncsim", "trio", "asyncio", "numpy", "ml_dtypes")
"""Packages an error may come out of, where the author's line is the one that called them."""


def _check_joined(rank: Rank) -> None:
    if rank.open_streams:
        names = ", ".join(rank.open_streams)
        told = f"rank {rank.id} returns while its stream {names} runs; join each stream: await rank.join(stream)"
        raise _Raised from MisuseError(told)


def _output(value: Any) -> Any:  # noqa: ANN401 - a kernel returns what it likes, within reason
    try:
        return checked(value)
    except MisuseError as error:
        raise _Raised from error


def _abort(_: object) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.SUCCEEDED


def _close(coroutine: Any) -> None:  # noqa: ANN401
    """Close a kernel that will not go on, also one that awaits in its ``finally``."""
    try:
        coroutine.close()
    except RuntimeError:
        return


def _kernel_error(error: BaseException | None, actor: Actor, call: int, trace: Trace | None) -> KernelError:
    """Say which rank failed, in which call, and on which line of the author's."""
    where = ""
    step = error.__traceback__ if error is not None else None
    while step is not None:
        frame = step.tb_frame
        module = module_name(frame.f_globals)
        if module.partition(".")[0] not in _NOT_THE_AUTHORS:
            filename = frame.f_code.co_filename
            where = f" at {shown_path(filename, module)}:{step.tb_lineno}"
            line = linecache.getline(filename, step.tb_lineno).strip()
            where += f" ({line})" if line else ""
        step = step.tb_next
    message = f"rank {actor.rank} failed in call {call}{where}: {type(error).__name__}: {error}"
    failure = KernelError(message, rank=actor.rank, call=call, trace=trace)
    failure.__cause__ = error
    return failure
