"""The trio engine: every actor a trio task, and never a choice left to trio. And the door to both engines.

A task that arrives at the gate parks until it is chosen. The last one to arrive makes the choice
and wakes the chosen task directly, itself without any task switch. A driver task in the middle
would cost two switches a step instead of at most one.
"""

from __future__ import annotations

from contextlib import nullcontext
from contextvars import ContextVar, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar

import trio
from outcome import Outcome
from trio.lowlevel import reschedule, wait_task_rescheduled

from asyncsim.machine.course import Course
from asyncsim.machine.direct import drive
from asyncsim.machine.forgotten import noticed
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.event import COMPLETE, STOPPED

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator

    from asyncsim.machine.case import Case, Run
    from asyncsim.machine.course import Life
    from asyncsim.machine.edit import Watch
    from asyncsim.machine.gate import Scheduler
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")

Engine = Literal["trio", "direct"]
"""What drives a run: trio, which is the reference; or a bare loop, which is faster. The runs are the same."""
ENGINES: tuple[Engine, ...] = ("trio", "direct")

_loopless: ContextVar[bool] = ContextVar("asyncsim_loopless", default=False)
"""Set while a function runs to its end inside somebody else's trio loop: nothing may be awaited of trio then."""


class Blocking(Generic[_Params, _Result]):
    """An async function that can also be called plainly: it then runs in a trio loop of its own.

    Inside a running trio loop ``await function.aio(...)`` lets the loop's other tasks go on and be
    cancelled. Called plainly there, it keeps the loop waiting, and every run is on the direct engine,
    since trio loops do not nest. One definition, two doors.
    """

    def __init__(self, function: Callable[_Params, Coroutine[Any, Any, _Result]]) -> None:
        """Wrap the async function."""
        self.aio = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__wrapped__ = function

    def __call__(self, *args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        """Run it to its end, in a trio loop of its own if none is running."""
        if trio.lowlevel.in_trio_run():
            return copy_context().run(_to_its_end, partial(self.aio, *args, **kwargs))
        try:
            return trio.run(partial(self.aio, *args, **kwargs))
        except trio.TrioInternalError as error:
            # A nursery in a kernel starts tasks that trio, not the gate, would have to run.
            raise MisuseError(
                "a kernel seems to use trio itself, such as a nursery; start further tasks with rank.start"
            ) from error


def _to_its_end(function: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
    """Run an async function that never has to wait, because its runs are on the direct engine."""
    _loopless.set(True)
    coroutine = function()
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    finally:
        coroutine.close()
    raise RuntimeError("it waits for something besides its runs; inside a trio loop, await its `aio`")


@Blocking
async def simulate(
    case: Case,
    scheduler: Scheduler,
    *,
    record: str | None = None,
    watch: Watch | None = None,
    engine: Engine = "trio",
) -> Run:
    """Run a case once, under a schedule chosen by `scheduler`.

    Args:
        case: what to run.
        scheduler: makes every choice.
        record: the scheduler as text, for the header; the run then keeps its trace.
        watch: is told of each operation, and of the lines it comes from, before it stands at the gate.
        engine: "trio", or "direct": the same run, byte for byte, in less time. Trio's other tasks get their
            turn, and Ctrl-C and cancellations theirs, within a run on trio, and before one on "direct".

    Raises:
        KernelError: the kernel raised, or awaited something that is no operation of its rank.
        MisuseError: the scheduler chose what was not ready; there is no such engine.
        DivergenceError: the scheduler replays a schedule that this kernel does not follow.

    """
    if engine not in ENGINES:
        raise MisuseError(f"engine={engine!r}; give one of {', '.join(ENGINES)}")
    if _loopless.get():
        return drive(case, scheduler, record=record, watch=watch)
    if engine == "direct":
        await trio.lowlevel.checkpoint()
        return drive(case, scheduler, record=record, watch=watch)
    course = Course(case, scheduler, record, watch)
    with nullcontext() if record is None else noticed(case):
        await _Tasks(course).run()
        return course.result()


class _Tasks:
    """The trio tasks of one run."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._gate = course.gate
        self._tasks: dict[int, trio.lowlevel.Task] = {}
        self._error: Exception | None = None
        self._scope = trio.CancelScope()

    async def run(self) -> None:
        """Run to the end.

        Raises:
            Exception: what a kernel or the scheduler raised.

        """
        try:
            with self._scope:
                async with trio.open_nursery() as self._nursery:
                    self._hand_on(None)
        except BaseExceptionGroup as group:
            if group.subgroup(KeyboardInterrupt) is not None:
                raise KeyboardInterrupt from None
            raise
        if self._error is not None:
            raise self._error

    async def _live(self, actor: Actor, life: Life) -> None:
        """Live an actor's life as a trio task, and hand the turn on when it has ended."""
        gate = self._gate
        choose, tasks = gate.next, self._tasks
        tasks[actor.order] = trio.lowlevel.current_task()
        try:
            for op in life:
                chosen = choose()
                if chosen is not op:
                    if chosen is not None:  # as `_hand_on` does, here without a call: this runs in every step
                        reschedule(tasks[chosen.actor.order], _TURN)
                    else:
                        self._hand_on(None)
                    await wait_task_rescheduled(_abort)
            self._hand_on(choose())
        except Exception as error:  # noqa: BLE001 - a kernel's or a scheduler's: it reaches the caller as it is
            self._error = self._error or error
            self._scope.cancel()
        except BaseException:
            # Ctrl-C, or a cancellation: nobody may be woken by a task that is on its way out.
            gate.ending = gate.ending or STOPPED
            raise
        finally:
            life.close()

    def _hand_on(self, chosen: Op | None) -> None:
        """Wake the chosen task; or, with nobody to choose, start the next one, or end the run."""
        if chosen is not None:
            reschedule(self._tasks[chosen.actor.order])
        elif self._course.unstarted:
            # The next starts when this one stands at the gate, so trio has no order to choose.
            actor, life = self._course.unstarted.pop()
            self._nursery.start_soon(self._live, actor, life, name=actor.name)
        else:
            self._course.end()
            if self._gate.ending != COMPLETE:  # else nobody is left
                self._scope.cancel()


class _Turn(Outcome[None]):
    """What a task is woken with: nothing. One for all; by default trio makes a new one for each wake-up.

    (A `Value` cannot serve twice: it notes that it was unwrapped. This saves a tenth of a hand-over.)
    """

    def unwrap(self) -> None:
        """Give nothing."""

    def send(self, gen: Generator[_Result, None, object]) -> _Result:
        """Send nothing."""
        return gen.send(None)

    async def asend(self, agen: AsyncGenerator[_Result, None]) -> _Result:
        """Send nothing."""
        return await agen.asend(None)


_TURN = _Turn()


def _abort(_: object) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.SUCCEEDED
