"""A feasible order of the operations of all actors, found from the order of each alone.

Two uses. A trace that was recorded elsewhere may say only what each rank did: an order is needed
before the run can be analysed, any will do (the verdict does not depend on the run), and if there
is none the trace contradicts itself. And the round robin order of a recorded run is the order of
the fair run, by which races are named.

Everybody goes on in turn while anybody can. That is enough where cells only gain. Where it gets
stuck (a Set, a subtraction, a wait that is overtaken) the order of what changes cells is searched,
within a budget; what changes none may always go on at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.analysis.feasible import Progress
from asyncsim.trace.kinds import SEEING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.analysis.feasible import State
    from asyncsim.trace.event import Trace

SEARCH = 20_000
"""How many orders of what changes cells are tried where the fair one gets stuck."""


class NoOrderError(ValueError):
    """The operations of this trace cannot have happened in any order; or none was found."""


def in_fair_order(trace: Trace, *, budget: int = SEARCH) -> Trace:
    """Return the same operations of every actor, in turn as far as they can, with numbered steps.

    Args:
        trace: its events in any order that keeps each actor's own. What cells held where it says so
            must hold in the new order too, if it was recorded elsewhere. Landings that a late
            memory leaves are made, where there are none.
        budget: how many orders may be tried.

    Raises:
        NoOrderError: nothing was found.

    """
    work = Progress(trace)
    order = _fair(work)
    if order is None:
        order = _searched(work, budget)
    return work.made(order)


def in_given_order(trace: Trace) -> Trace:
    """Return a trace that was recorded elsewhere with the order that it has, which is checked, and its landings.

    Raises:
        NoOrderError: a step cannot follow those before it.

    """
    work = Progress(trace)
    state = work.start()
    order = []
    for event in trace.events:
        number = work.number[event.op.actor.name]
        if not work.can(state, number):
            raise NoOrderError(f"step {event.step} cannot come there: {_standing(work, state, number)}")
        work.take(state, number)
        order.append(number)
    return work.made(order)


def _fair(work: Progress) -> list[int] | None:
    """Return the order of round robin; None where it gets stuck."""
    state = work.start()
    order: list[int] = []
    left = sum(map(len, work.streams))
    while left:
        before = left
        for number in range(len(work.actors)):
            if work.can(state, number):
                work.take(state, number)
                order.append(number)
                left -= 1
        if left == before:
            return None
    return order


def _searched(work: Progress, budget: int) -> list[int]:
    """Return an order found by trying, in depth; the first step that can be taken is tried first."""
    total = sum(map(len, work.streams))
    state = work.start()
    order = _ahead(work, state)
    furthest = state.copy()
    stack: list[tuple[State, int, Iterator[int]]] = [(state, 0, _choices(work, state))]
    seen = {state.key}
    tried = 0
    while len(order) < total:
        if not stack:
            raise NoOrderError(f"no order of these operations is possible: {_stuck(work, furthest)}")
        state, length, choices = stack[-1]
        number = next(choices, None)
        if number is None:
            stack.pop()
            del order[length:]
            continue
        tried += 1
        if tried > budget:
            raise NoOrderError(
                f"no order was found in which they are possible, in {budget} tries: {_stuck(work, furthest)}"
            )
        state = state.copy()
        length = len(order)
        order.append(number)
        work.take(state, number)
        order += _ahead(work, state)
        if state.key in seen:
            del order[length:]
            continue
        seen.add(state.key)
        if sum(state.at) > sum(furthest.at):
            furthest = state.copy()
        stack.append((state, length, _choices(work, state)))
    return order


def _choices(work: Progress, state: State) -> Iterator[int]:
    return iter([number for number in range(len(work.actors)) if work.can(state, number)])


def _ahead(work: Progress, state: State) -> list[int]:
    """Let everybody go on up to what changes a cell: that takes no choice from anybody."""
    taken: list[int] = []
    going = True
    while going:
        going = False
        for number in range(len(work.actors)):
            while work.can(state, number) and not work.changes(state, number):
                work.take(state, number)
                taken.append(number)
                going = True
    return taken


def _stuck(work: Progress, state: State) -> str:
    """Say where the first actors stand that cannot go on, at the furthest that was reached."""
    told = [
        _standing(work, state, number)
        for number in range(len(work.actors))
        if work.next(state, number) is not None and not work.can(state, number)
    ]
    return f"after {sum(state.at)} of {sum(map(len, work.streams))} operations, " + "; ".join(told[:4])


def _standing(work: Progress, state: State, number: int) -> str:
    event = work.next(state, number)
    assert event is not None  # noqa: S101 - for the type checker: the caller knows
    op = event.op
    line = f" at {event.at[0]}" if event.at and event.at[0] else ""
    who = f"{op.actor.name}'s operation {state.at[number]} ({op}){line}"
    if op.cell is None:
        return f"{who} waits"
    said = ""
    if work.exact and event.have is not None:
        said = f", and is said to {'see' if op.kind in SEEING else 'leave'} {event.have}"
    return f"{who} finds {work.value(state, op.cell)}{said}"
