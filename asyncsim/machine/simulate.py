"""The door to both engines: plain calls and awaited ones, on trio tasks or on a bare loop.

Trio takes a fifth of a second to import, so it is imported where a run needs it: who asks for the direct
engine never waits for it.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar

from asyncsim.machine.course import COMPACT_RANKS
from asyncsim.machine.direct import drive
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from asyncsim.machine.case import Case, Run
    from asyncsim.machine.course import Begun
    from asyncsim.machine.edit import Watch
    from asyncsim.machine.pick import Scheduler

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
    cancelled; inside one of asyncio's it does so from a thread. Called plainly there, it keeps the loop
    waiting, and in trio's every run is on the direct engine, since trio loops do not nest. One
    definition, two doors.
    """

    def __init__(self, function: Callable[_Params, Coroutine[Any, Any, _Result]]) -> None:
        self._function = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        self.__qualname__ = function.__qualname__
        self.__wrapped__ = function

    def __get__(self, holder: object, owner: type | None = None) -> Blocking[_Params, _Result]:
        """Return itself. What has this method is a routine to `help`, which then shows the signature."""
        return self

    def aio(self, *args: _Params.args, **kwargs: _Params.kwargs) -> Coroutine[Any, Any, _Result]:
        """Return the coroutine, to be awaited inside a loop of trio or asyncio.

        Args:
            args: of the function.
            kwargs: of the function.

        """
        if _in_asyncio():
            return sys.modules["asyncio"].to_thread(self, *args, **kwargs)  # type: ignore[no-any-return]
        return self._function(*args, **kwargs)

    def __call__(self, *args: _Params.args, **kwargs: _Params.kwargs) -> _Result:
        """Run it to its end, in a trio loop of its own if one is needed and none is running."""
        if kwargs.get("engine") == "direct" or _in_trio():
            return copy_context().run(_to_its_end, partial(self._function, *args, **kwargs))
        import trio  # noqa: PLC0415 - see the top of this page

        try:
            return trio.run(partial(self._function, *args, **kwargs))
        except trio.TrioInternalError as error:
            # A nursery in a kernel starts tasks that trio, not the gate, would have to run.
            raise MisuseError(
                "a kernel seems to use trio itself, such as a nursery; start further tasks with rank.start"
            ) from error


def _in_trio() -> bool:
    """Say whether a trio loop is running here; none is before trio was imported."""
    trio = sys.modules.get("trio")
    return trio is not None and bool(trio.lowlevel.in_trio_run())


def _in_asyncio() -> bool:
    """Say whether it is asyncio's loop that would await here: trio's may run inside it, and so may none at all."""
    asyncio = sys.modules.get("asyncio")
    return (
        asyncio is not None and asyncio._get_running_loop() is not None and not _loopless.get() and not _in_trio()  # noqa: SLF001 - the one that does not raise
    )


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
async def simulate(  # noqa: PLR0913 - each is one thing that a caller may want of a run
    case: Case,
    scheduler: Scheduler,
    *,
    record: str | None = None,
    watch: Watch | None = None,
    engine: Engine | None = "trio",
    begun: Begun | None = None,
    notice: bool = True,
) -> Run:
    """Run a case once, under a schedule chosen by `scheduler`.

    Args:
        case: what to run.
        scheduler: makes every choice.
        record: the scheduler as text, for the header; the run then keeps its trace.
        watch: is told of each operation, and of the lines it comes from, before it stands at the gate.
        begun: is given the choices of the run, none so far, when it begins; they grow as it goes on.
        engine: "trio", or "direct": the same run, byte for byte, in less time. Trio's other tasks get their
            turn, and Ctrl-C and cancellations theirs, within a run on trio, and before one on "direct".
            None: "direct" where the run is large, from 32 ranks on; "trio" elsewhere.
        notice: a forgotten await is looked for, which takes a twentieth of a run; in one that is recorded it always is.

    Raises:
        KernelError: the kernel raised, or awaited something that is no operation of its rank.
        MisuseError: the scheduler chose what was not ready; there is no such engine; the kernel forgot an await.
        DivergenceError: the scheduler replays a schedule that this kernel does not follow.

    """
    if engine is None:
        engine = "direct" if case.ranks >= COMPACT_RANKS else "trio"
    if engine not in ENGINES:
        raise MisuseError(f"engine={engine!r}; give one of {', '.join(ENGINES)}")
    if _loopless.get():
        return drive(case, scheduler, record=record, watch=watch, begun=begun, notice=notice)
    from asyncsim.machine.tasks import checkpoint, run_as_tasks  # noqa: PLC0415 - see the top of this page

    if engine == "direct":
        await checkpoint()
        return drive(case, scheduler, record=record, watch=watch, begun=begun, notice=notice)
    return await run_as_tasks(case, scheduler, record, watch, begun, notice=notice)


async def outside(function: Callable[[], _Result]) -> _Result:
    """Call what blocks, in a thread of its own, while trio's other tasks go on.

    Ctrl-C and cancellations do not wait for it; so it should end by itself before long.
    """
    if _loopless.get():
        return function()
    from asyncsim.machine.tasks import in_thread  # noqa: PLC0415 - see the top of this page

    return await in_thread(function)
