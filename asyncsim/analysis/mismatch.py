"""Collectives that do not match: ranks that call another one, with other arguments, or none at all.

The n-th collective of a group in a call must be the same on all its members. A rank that still
stands in the call may yet come to it, so that it called fewer says nothing; one that has left the
call will not. The first difference explains what follows from it, often a hang, better than that does.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING

from asyncsim.trace.event import COMPLETE, DEADLOCK
from asyncsim.trace.finding import Finding, Side

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.trace.event import Collective, Footer, Trace

_Said = dict[int, "Collective | None"]
"""What each rank calls at one point; None: it has left the call."""


def call_mismatches(trace: Trace) -> Iterator[Finding]:
    """Yield, for each group, the first collective that is not the same on all its members."""
    footer = trace.footer
    if footer is None:
        return
    sequences: dict[tuple[str, str, int], dict[int, list[Collective]]] = defaultdict(lambda: defaultdict(list))
    members: dict[str, tuple[int, ...]] = {}
    for said in footer.collectives:
        # The streams of a rank call theirs independently: each is compared with its like on the other ranks.
        stream = said.actor.partition(".")[2]
        sequences[said.group, stream, said.call][said.rank].append(said)
        members[said.group] = said.members
    told = set()
    for (group, _, call), by_rank in sequences.items():
        if group in told:
            continue
        gone = {rank for rank in members[group] if _has_left(footer, rank, call)}
        for number in count():
            here = {rank: by_rank[rank][number] for rank in members[group] if number < len(by_rank[rank])}
            if not here:
                break
            all_said: _Said = {rank: here.get(rank) for rank in members[group] if rank in here or rank in gone}
            if len({_text(said) for said in all_said.values()}) > 1:
                told.add(group)
                yield _finding(group, call, number, all_said)
                break


def _has_left(footer: Footer, rank: int, call: int) -> bool:
    """Say whether a rank will make no further collective in this call."""
    stands = [event.call for event in footer.pending if event.op.actor.name == str(rank)]
    return stands[0] > call if stands else footer.ending in (COMPLETE, DEADLOCK)


def _text(said: Collective | None) -> str:
    return "none" if said is None else str(said)


def _finding(group: str, call: int, number: int, all_said: _Said) -> Finding:
    ranks: dict[str, list[int]] = defaultdict(list)
    for rank, said in all_said.items():
        ranks[_text(said)].append(rank)
    firsts = [(all_said[same[0]], same) for same in ranks.values()]
    whole = "the world" if group == "world" else f"group {group!r}"
    why = (
        f"collective {number} of call {call} is not the same on all ranks of {whole}{_difference(all_said)}: "
        + "; ".join(_clause(said, same) for said, same in firsts)
    )
    sides = tuple(
        Side(str(same[0]), -1, same[0], call, "", "collective", _text(said), said.at if said is not None else ())
        for said, same in firsts
    )
    return Finding("call-mismatch", why, harmful=True, sides=sides)


def _difference(all_said: _Said) -> str:
    """Name the facts that differ, where all call the same collective."""
    calls = [said for said in all_said.values() if said is not None]
    if len(calls) < len(all_said) or len({said.name for said in calls}) > 1:
        return ""
    names = {fact[0] for said in calls for fact in said.facts if any(fact not in other.facts for other in calls)}
    return f", in its {' and '.join(sorted(names))}"


def _clause(said: Collective | None, ranks: list[int]) -> str:
    who = f"rank {ranks[0]} calls" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))} call"
    if said is None:
        return f"{who} none any more"
    return f"{who} {said}" + (f" at {said.at[0]}" if said.at and said.at[0] else "")
