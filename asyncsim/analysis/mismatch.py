"""Collectives that do not match: ranks that call another one, with other arguments, or none at all.

The n-th collective of a group in a call must be the same on all its members. A rank that still
stands in the call may yet come to it, so that it called fewer says nothing; one that has left the
call will not. The first difference explains what follows from it, often a hang, better than that does.

Where several tasks of one rank call a group's collectives, they have no order among them, and the name
of a stream says nothing of which one it meets. Then what each rank calls in all must be the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import reduce
from itertools import count
from typing import TYPE_CHECKING

from asyncsim.trace.event import COMPLETE, DEADLOCK
from asyncsim.trace.finding import Finding, Side

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from asyncsim.trace.event import Collective, Footer, Trace

_Said = dict[int, "Collective | None"]
"""What each rank calls at one point; None: it has left the call."""


def call_mismatches(trace: Trace) -> Iterator[Finding]:
    """Yield, for each group, the first collective that is not the same on all its members."""
    footer = trace.footer
    if footer is None:
        return
    calls: dict[tuple[str, int], dict[int, list[Collective]]] = defaultdict(lambda: defaultdict(list))
    members: dict[str, tuple[int, ...]] = {}
    for said in footer.collectives:
        calls[said.group, said.call][said.rank].append(said)
        members[said.group] = said.members
    told = set()
    for (group, call), by_rank in calls.items():
        if group not in told:
            gone = {rank for rank in members[group] if _has_left(footer, rank, call)}
            found = _mismatch(group, call, {rank: by_rank.get(rank, []) for rank in members[group]}, gone)
            if found is not None:
                told.add(group)
                yield found


def _mismatch(group: str, call: int, by_rank: Mapping[int, Sequence[Collective]], gone: set[int]) -> Finding | None:
    """Compare what the members of a group said in one call: in order the ranks where one task speaks, then all."""
    in_order = {rank: said for rank, said in by_rank.items() if len({each.actor for each in said}) <= 1}
    for number in count():
        here = {rank: said[number] for rank, said in in_order.items() if number < len(said)}
        if not here:
            break
        all_said: _Said = {rank: here.get(rank) for rank in in_order if rank in here or rank in gone}
        if _differ(all_said):
            return _finding(group, call, f"collective {number} of call {call} is", all_said)
    if len(in_order) < len(by_rank):
        all_said = _unmatched(by_rank, gone)
        if _differ(all_said):
            return _finding(group, call, f"what streams call together, in any order, in call {call} is", all_said)
    return None


def _unmatched(by_rank: Mapping[int, Sequence[Collective]], gone: set[int]) -> _Said:
    """Return the first collective of each rank that is not called by all that have left the call."""
    texts = {rank: Counter(map(_text, said)) for rank, said in by_rank.items()}
    if not gone:
        return {}
    common = reduce(Counter.__and__, (texts[rank] for rank in by_rank if rank in gone))
    found: _Said = {}
    for rank, said in by_rank.items():
        left = common.copy()
        for each in said:
            left[_text(each)] -= 1
            if left[_text(each)] < 0:
                found[rank] = each
                break
        else:
            if rank in gone:
                found[rank] = None
    return found


def _differ(all_said: _Said) -> bool:
    return len(set(map(_text, all_said.values()))) > 1


def _has_left(footer: Footer, rank: int, call: int) -> bool:
    """Say whether no task of a rank will make a further collective in this call."""
    stands = [event.call for event in footer.pending if event.op.actor.rank == rank and not event.op.actor.wire]
    if footer.ending == COMPLETE:  # streams that outlive a call may stand: they say of no call that it goes on
        return True
    return min(stands) > call if stands else footer.ending == DEADLOCK


def _text(said: Collective | None) -> str:
    return "none" if said is None else str(said)


def _finding(group: str, call: int, what: str, all_said: _Said) -> Finding:
    ranks: dict[str, list[int]] = defaultdict(list)
    for rank, said in all_said.items():
        ranks[_text(said)].append(rank)
    firsts = [(all_said[same[0]], same) for same in ranks.values()]
    whole = "the world" if group == "world" else f"group {group!r}"
    why = f"{what} not the same on all ranks of {whole}{_difference(all_said)}: " + "; ".join(
        _clause(said, same) for said, same in firsts
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
