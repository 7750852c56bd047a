"""Frontiers by their definition: hold one actor, task or wire, and let all others go on until nobody can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.trace.cells import APPLY

if TYPE_CHECKING:
    from asyncsim.analysis.edges import Edges
    from asyncsim.analysis.guards import Guards
    from asyncsim.analysis.streams import Place, Streams


def furthest(streams: Streams, guards: Guards, edges: Edges, held: Place) -> list[int]:
    """Return how far each actor gets, as a position in its stream, with one held before one of its operations."""
    at = [0] * len(streams.events)
    moved = True
    while moved:
        moved = False
        for actor, stream in enumerate(streams.events):
            end = held[1] if actor == held[0] else len(stream)
            while at[actor] < end and _may_happen(streams, guards, edges, (actor, at[actor]), at):
                at[actor] += 1
                moved = True
    return at


def _may_happen(streams: Streams, guards: Guards, edges: Edges, place: Place, at: list[int]) -> bool:
    needs = [*edges.get(place, ())]
    if streams.issue(place) != place:
        needs.append(streams.issue(place))
    if any(at[actor] <= index for actor, index in needs):
        return False
    goals = guards.goals.get(place)
    if goals is None:
        return True
    history = streams.histories[guards.waits[place].slot]
    for epoch in history.epochs:
        goal = goals.get(epoch.number)
        if goal is None:
            continue
        is_open = not epoch.openers or goal.is_open or any(at[actor] > index for actor, index in epoch.openers)
        sign = -1 if goal.down else 1
        come = [
            amount
            for (actor, index), amount, of in history.updates
            if of is epoch and at[actor] > index
            and (goal.without is None or streams.issue((actor, index))[0] != goal.without or streams.is_queued(actor))
        ]  # fmt: skip
        enough = sum(max(sign * amount, 0) for amount in come) >= goal.credits
        if goal.reached is not None:
            value = epoch.base
            for amount in come:
                value = APPLY[epoch.kind](value, amount)
            enough = goal.reached.holds(value)
        if is_open and enough:
            return True
    return False
