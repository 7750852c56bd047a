"""The trio engine: every actor a trio task, and never a choice left to trio.

A task that arrives at the gate parks until it is chosen. The last one to arrive makes the choice
and wakes the chosen task directly, itself without any task switch. A driver task in the middle
would cost two switches a step instead of at most one.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeVar

import trio
from outcome import Outcome
from trio.lowlevel import checkpoint, reschedule, wait_task_rescheduled

from asyncsim.machine.course import Course
from asyncsim.machine.forgotten import noticed
from asyncsim.trace.event import COMPLETE, STOPPED
from asyncsim.trace.guest import GUEST

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from asyncsim.machine.case import Case, Run
    from asyncsim.machine.course import Begun, Life
    from asyncsim.machine.edit import Watch
    from asyncsim.machine.pick import Scheduler
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor

__all__ = ["checkpoint", "in_thread", "run_as_tasks"]

_Result = TypeVar("_Result")


async def run_as_tasks(  # noqa: PLR0913 - as of `simulate`
    case: Case, scheduler: Scheduler, record: str | None, watch: Watch | None, begun: Begun | None, *, notice: bool
) -> Run:
    """Run a case once, each actor a trio task; arguments and errors are those of `simulate`.

    Args:
        case: what to run.
        scheduler: makes every choice.
        record: the scheduler as text, for the header of the trace; None: no trace is kept.
        watch: told of each operation before it stands at the gate; None: nobody is.
        begun: given the list of choices as the run begins; None: nobody is.
        notice: whether a forgotten await is looked for.

    """
    course = Course(case, scheduler, record=record, watch=watch, begun=begun, notice=notice)
    with GUEST, noticed(case) if notice or record is not None else nullcontext():
        await _Tasks(course).run()
        return course.result()


async def in_thread(function: Callable[[], _Result]) -> _Result:
    """Call a function that blocks in a thread of its own."""
    return await trio.to_thread.run_sync(function, abandon_on_cancel=True)


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
        tasks = self._tasks
        tasks[actor.order] = trio.lowlevel.current_task()
        try:
            for chosen in life:
                if chosen is not None:  # as `_hand_on` does, here without a call: this runs in every step
                    reschedule(tasks[chosen.actor.order], _TURN)
                else:
                    self._hand_on(None)
                await wait_task_rescheduled(_abort)
                if gate.ending is not None:  # it was stopped after this one's turn had come
                    return
            self._hand_on(gate.turn(None))
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
            if self._gate.ending != COMPLETE or self._gate.pending():  # else nobody is left
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
