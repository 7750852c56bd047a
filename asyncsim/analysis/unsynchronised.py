"""What is missing where two accesses race under ``gpu``: the release, the acquire, the fence or the scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.analysis.races import name_of, why_unordered
from asyncsim.trace.op import include, scope_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.analysis.known import Known
    from asyncsim.analysis.streams import Place, Streams


def why_unsynchronised(streams: Streams, known: Known) -> Callable[[tuple[Place, ...]], str]:
    """Return what says of two accesses why nothing orders them.

    Args:
        streams: of the run, with late updates.
        known: what is surely known.

    """

    def why(sides: tuple[Place, ...]) -> str:
        first, second = sides
        both = f"nothing orders {name_of(streams, first)} and {name_of(streams, second)}: "
        reason = _missing(streams, known, first, second)
        return both + reason if reason else why_unordered(streams, sides)

    return why


def _missing(streams: Streams, known: Known, first: Place, second: Place) -> str:
    """Return what keeps the last update that was seen from telling of the first access; empty: there is none."""
    waits = [
        (wait, update)
        for history in streams.histories.values()
        for wait in (*history.waits, *history.tests)
        if wait.place[0] == second[0] and wait.place[1] < second[1]
        for update in map(streams.issue, (*history.sets, *(place for place, _, _ in history.updates)))
        if update[0] == first[0] and update[1] > first[1]
    ]
    if not waits:
        return ""
    wait, update = max(waits, key=lambda pair: (pair[0].place, pair[1]))
    told, saw = streams.event(update).op, wait.event.op
    teller, seer = told.actor, saw.actor
    says, sees = f"{teller.title}'s '{told}'", f"{seer.title}'s '{saw}'"
    if not include(teller, scope_of(told), seer, scope_of(saw)):
        return f"{says} (scope {scope_of(told)}) and {sees} (scope {scope_of(saw)}) do not include each other"
    releases = [scope for at, scope in known.releases(update) if at > 2 * first[1]]
    if not releases:
        return f"{says} is relaxed, and no release fence stands between it and what came before"
    acquires = [each.scope for each in known.acquires(second[0]) if each.seen is wait and each.at <= 2 * second[1]]
    if not acquires:
        return f"{sees} is relaxed, and no acquire fence stands between it and what comes after"
    if not any(include(teller, one, seer, other) for one in releases for other in acquires):
        scopes = f"{' or '.join(dict.fromkeys(releases))} there, {' or '.join(dict.fromkeys(acquires))} here"
        return f"{says} is released, and {sees} acquires, in scopes that do not include each other ({scopes})"
    return f"{sees} can see what was there before {says}, or what does not hand on its release"
