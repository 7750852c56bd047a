"""The rules of a scheduler, for anybody's: `check_scheduler`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import numpy as np

from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.machine.kernel import kernel
from asyncsim.testing.elsewhere import choices_elsewhere
from asyncsim.trace.declare import Signal, Window
from asyncsim.trace.event import COMPLETE, STEP_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.machine.pick import Scheduler
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor, SignalView, WindowView

_data = Window("data", ("P", 2), np.int32, initialised=True)
_flag = Signal("flag", ("P",))


async def _side(rank: Rank, data: WindowView) -> None:
    await rank.store(data[rank.id, 1], 7)


@kernel(memory=[_data, _flag])
async def _everything(rank: Rank, data: WindowView, flag: SignalView) -> None:
    """Stores, notifies, waits and a stream: what a scheduler can be offered."""
    stream = await rank.start(_side, data)
    for peer in rank.peers:
        await rank.store(data.at(peer)[rank.id, 0], rank.call)
        await rank.notify(flag.at(peer)[rank.id], 1)
    for peer in rank.peers:
        await rank.wait(flag[peer] >= rank.call + 1)
        await rank.load(data[peer, 0])
    await rank.join(stream)


WORLDS = {
    "one actor": Case(_everything.variant(memory=[_data, _flag]), 1, 1),
    "three ranks, each with a stream": Case(_everything, 3, 2),
    "two ranks whose writes land late, as through a network adapter": Case(_everything, 2, 1, "nic"),
    "three ranks again": Case(_everything, 3, 2),
}
"""What every scheduler must come through, one after the other."""


def check_scheduler(make: Callable[[], Scheduler], *, learns: bool = False) -> None:
    """Require of a scheduler what every engine and every search relies on.

    * it chooses one of the operations that are offered, and changes nothing in the list of them;
    * two that are made alike choose alike, run after run, and in another process, where hashes of texts are others;
    * if it says with `pick` where its choice stands, that is where the choice of `choose` stands;
    * it does not keep the list, which changes after the call;
    * it comes through runs of one actor, of streams and of late writes, one after the other;
    * `begin` forgets the run before, also one that was broken off.

    Args:
        make: makes one, the same each time: with the same seed, if it throws dice. A class or a function at the top
            of a module is run in other processes too; what has no name there, such as a lambda, is not, and then
            choices that depend on PYTHONHASHSEED are not noticed.
        learns: it may remember how long runs were, as `pct` does; then the last rule is not asked.

    Raises:
        AssertionError: a rule is broken; the message says which, and what would be right.

    """
    __tracebackhide__ = True
    _check_form(make)
    if make() is make():
        raise AssertionError("make: it returned the same scheduler twice; make a new one in each call")
    first, again = make(), make()
    for world, case in WORLDS.items():
        chosen = _run(first, case, world, keep=True)
        if chosen != _run(again, case, world, keep=True):
            raise AssertionError(
                f"same seed, same choices: two schedulers that were made alike chose otherwise with {world}; "
                "draw from a generator of its own, and look at the order and content of what is offered only"
            )
    _check_pick(make)
    _check_elsewhere(make)
    kept, lent = make(), make()
    for world, case in WORLDS.items():
        if _run(kept, case, world, keep=True) != _run(lent, case, world, keep=False):
            raise AssertionError(
                f"the list is lent: with {world} the choices depend on what the list of an earlier step became; "
                "copy what is to be remembered"
            )
    if not learns:
        _check_begin(make)


def choices_of(make: Callable[[], Scheduler]) -> dict[str, list[str]]:
    """Return the choices of one scheduler, world by world."""
    scheduler = make()
    return {world: _run(scheduler, case, world, keep=True) for world, case in WORLDS.items()}


def _check_form(make: Callable[[], Scheduler]) -> None:
    """Require that there are the methods, and that they take what they are given."""
    __tracebackhide__ = True
    if not callable(make):
        raise AssertionError(  # noqa: TRY004 - every rule that is broken is one of these
            f"make: {make!r} makes no scheduler; give the class, or a function without arguments"
        )
    if not _takes(make, 0):
        raise AssertionError("make: it takes arguments; give a function without any: lambda: MyScheduler(seed=3)")
    scheduler = make()
    for name, what in (("begin", "actors"), ("choose", "ready")):
        method = getattr(scheduler, name, None)
        if not callable(method):
            raise AssertionError(  # noqa: TRY004 - as above
                f"{name}: {scheduler!r} has no such method; define {name}(self, {what})"
            )
        if not _takes(method, 1):
            raise AssertionError(f"{name}: it does not take one argument; define {name}(self, {what})")


def _takes(function: Callable[..., object], count: int) -> bool:
    """Say whether a function takes so many arguments by position; one in C that does not tell is believed."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return True
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


def _check_elsewhere(make: Callable[[], Scheduler]) -> None:
    """Require the same choices under other hashes."""
    __tracebackhide__ = True
    here = choices_of(make)
    for there in choices_elsewhere(make):
        if there != here:
            told = there if isinstance(there, str) else "it chose otherwise"
            raise AssertionError(
                f"same seed, same choices: in another process, under another PYTHONHASHSEED: {told}; "
                "do not look at hash(...), id(...), or the order of a set"
            )


def _check_pick(make: Callable[[], Scheduler]) -> None:
    """Require the same of a scheduler that is asked for places as of one that is asked for operations."""
    __tracebackhide__ = True
    if not hasattr(make(), "pick"):
        return
    picking, choosing = make(), make()
    for world, case in WORLDS.items():
        if drive(case, picking).choices != _run(choosing, case, world, keep=True):
            raise AssertionError(
                f"pick says where choose chooses: with {world} they differ; "
                "write choose as `return ready[self.pick(ready)]`"
            )


def _check_begin(make: Callable[[], Scheduler]) -> None:
    """Require that what a broken run did is forgotten."""
    __tracebackhide__ = True
    world = "three ranks again"
    case = WORLDS[world]
    after = []
    for steps in (0, 1, 7):
        scheduler = make()
        broken = Case(_everything, 3, 2, max_steps=steps)
        _run(scheduler, broken, world, keep=True, ending=STEP_LIMIT)
        after.append(_run(scheduler, case, world, keep=True))
    if not after[0] == after[1] == after[2]:
        raise AssertionError(
            "begin: the choices of a run depend on how far the run before it came; forget all of it in begin"
        )


def _run(scheduler: Scheduler, case: Case, world: str, *, keep: bool, ending: str = COMPLETE) -> list[str]:
    """Run once under the eyes of a watcher, and return the choices."""
    __tracebackhide__ = True
    run = drive(case, _Watched(scheduler, world, keep=keep))
    if run.ending != ending:
        raise AssertionError(f"the run with {world} ended with {run.ending}, not {ending}")
    return run.choices


class _Watched:
    """A scheduler, and whether it keeps the rules of one choice.

    Args:
        scheduler: the one that is watched.
        world: what is run, in words.
        keep: leave the lists alone that were offered; else each is emptied after the choice.

    """

    def __init__(self, scheduler: Scheduler, world: str, *, keep: bool) -> None:
        self._scheduler = scheduler
        self._world = world
        self._keep = keep

    def begin(self, actors: Sequence[Actor]) -> None:
        """Hand it on."""
        self._scheduler.begin(actors)

    def choose(self, ready: Sequence[Op]) -> Op:
        """Hand on a copy, and look at what was done with it."""
        __tracebackhide__ = True
        offered = list(ready)
        op = self._scheduler.choose(offered)
        if not any(op is one for one in ready):
            raise AssertionError(
                f"one of what is ready: with {self._world}, {op} was chosen; ready: {', '.join(map(str, ready))}; "
                "return one of the objects that are offered"
            )
        if len(offered) != len(ready) or not all(a is b for a, b in zip(offered, ready, strict=True)):
            raise AssertionError(f"the list is lent: with {self._world}, choose changed it; copy it first")
        if not self._keep:
            offered.clear()
        return op
