"""Frontiers by their definition: hold one actor, task or wire, and let all others go on until nobody can."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
        opener = epoch.opener
        is_open = opener is None or goal.is_open or at[opener[0]] > opener[1]
        sign = -1 if goal.down else 1
        come = sum(
            sign * amount
            for (actor, index), amount, number in history.adds
            if number == epoch.number and sign * amount > 0 and at[actor] > index
            and (goal.without is None or streams.issue((actor, index))[0] != goal.without or streams.is_queued(actor))
        )  # fmt: skip
        if is_open and come >= goal.credits:
            return True
    return False
