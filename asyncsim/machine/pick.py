"""Asking a scheduler: whom it chose, as a place among the ready operations, and that it may be chosen."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Protocol

from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor

    Pick = Callable[[Sequence[Op]], int]
    """Takes the ready operations, and returns the place of the chosen one."""


_OURS = __name__.partition(".")[0] + "."


class Scheduler(Protocol):
    """Who goes next. One method matters.

    A scheduler whose `blocks` is true promises that, with no landing to choose, it returns the operation of
    the actor that it chose last, if that is ready and `Op.follows`. Then it is not asked: the run is the same.
    One that has a method `pick` returns the place of its choice there, and is not asked to `choose`.
    """

    def begin(self, actors: Sequence[Actor]) -> None:
        """Forget the last run: a new one starts, with these actors."""

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return one of `ready`: at least one operation, at most one an actor, in the order of actors.

        What is offered is about to happen; nothing of it has. The sequence changes after the call.
        """


def picks(scheduler: Scheduler, orders: Sequence[int], choices: Sequence[Actor], *, late: bool) -> Pick:
    """Return what asks a scheduler.

    Args:
        scheduler: is asked.
        orders: those of the actors of the ready operations; it changes.
        choices: made so far; they grow.
        late: there may be landings to choose.

    """
    asked: Pick = _Found(scheduler, orders)
    if _says_where(scheduler):
        asked = scheduler.pick  # type: ignore[attr-defined]
        if not type(scheduler).__module__.startswith(_OURS):
            asked = _Within(scheduler)
    if getattr(scheduler, "blocks", False) and not late:
        return _Following(asked, orders, choices)
    return asked


def _says_where(scheduler: Scheduler) -> bool:
    """Say whether the class that chooses has a `pick`, too: one that came from a base knows nothing of the choice."""
    for kind in type(scheduler).__mro__:
        if "choose" in vars(kind):
            return "pick" in vars(kind)
    return False


class _Within:
    """Looks whether the place that a scheduler of the user's own picked is one; a negative one would count back."""

    __slots__ = ("_pick", "_who")

    def __init__(self, scheduler: Scheduler) -> None:
        self._pick: Pick = scheduler.pick  # type: ignore[attr-defined]
        self._who = type(scheduler).__name__

    def __call__(self, ready: Sequence[Op]) -> int:
        """Return it.

        Raises:
            MisuseError: it is none.

        """
        at = self._pick(ready)
        if at.__class__ is int and 0 <= at < len(ready):
            return at
        raise MisuseError(f"{self._who} picked place {at!r} of {len(ready)} ready operations; places count from 0")


class _Found:
    """Finds what a scheduler chose."""

    __slots__ = ("_choose", "_orders", "_who")

    def __init__(self, scheduler: Scheduler, orders: Sequence[int]) -> None:
        self._choose = scheduler.choose
        self._orders = orders
        self._who = type(scheduler).__name__

    def __call__(self, ready: Sequence[Op]) -> int:
        """Return where it stands.

        Raises:
            MisuseError: nowhere.

        """
        chosen = self._choose(ready)
        try:
            at = bisect_left(self._orders, chosen.actor.order)
            if ready[at] is chosen:
                return at
        except (AttributeError, IndexError):
            pass
        raise MisuseError(f"{self._who} chose {chosen}, which is not among the ready operations")


class _Following:
    """Lets an actor go on through what comes out of one await, and asks in all other cases."""

    __slots__ = ("_choices", "_orders", "_pick")

    def __init__(self, pick: Pick, orders: Sequence[int], choices: Sequence[Actor]) -> None:
        self._pick = pick
        self._orders = orders
        self._choices = choices

    def __call__(self, ready: Sequence[Op]) -> int:
        """Return where the actor stands that was chosen last, if it goes on; else what was picked."""
        if self._choices:
            last = self._choices[-1]
            at = bisect_left(self._orders, last.order)
            # What came before may have been left out by an edit, so it is looked whose step was the last.
            if at < len(ready) and (op := ready[at]).follows and op.actor is last:
                return at
        return self._pick(ready)
