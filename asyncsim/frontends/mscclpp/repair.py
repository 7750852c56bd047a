"""What to change in a plan so that it is not refuted any more, and what in it guards nothing: as edits of its JSON."""

from __future__ import annotations

import json
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.mscclpp.judging import Judged, judge
from asyncsim.frontends.mscclpp.pairing import Pairing
from asyncsim.frontends.mscclpp.plan import MEMORY, PORT, flat
from asyncsim.frontends.mscclpp.reading import parse_plan
from asyncsim.trace.errors import MisuseError, RefusedError
from asyncsim.trace.finding import PROVED, REFUTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from asyncsim.frontends.mscclpp.plan import Operation, Plan

    Json = dict[str, Any]
    Make = Callable[[Json], tuple[Json, ...]]

MOST_EDITS = 3
"""So many edits together are tried."""
_QUICK = {"shrinking": 0, "budget": 0, "samples": 8}
_NOP = {"name": "nop"}


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a plan.

    Args:
        text: in words.
        changes: operations, and what stands there instead; empty: nothing.
        double: let the scratch have two halves.

    """

    text: str
    changes: tuple[tuple[Operation, tuple[Json, ...]], ...] = ()
    double: bool = False

    def apply(self, plan: Plan) -> Plan:
        """Return the changed plan."""
        tree = deepcopy(plan.tree)
        tree.update({"use_double_scratch_buffer": True} if self.double else {})
        # From the last place to the first, so that the numbers before it stay what they are.
        for op, instead in sorted(self.changes, key=lambda change: _place(change[0]), reverse=True):
            listed = _block(tree, op)["ops"]
            listed, at = (listed[op.index]["ops"], op.inside) if op.inside >= 0 else (listed, op.index)
            listed[at : at + 1] = deepcopy(list(instead))
        return parse_plan(json.dumps(tree, indent=2), plan.file)


@dataclass(frozen=True, slots=True)
class Repair:
    """A plan that was changed until it was not refuted: by which edits, the plan, and how it is judged."""

    edits: tuple[Edit, ...]
    plan: Plan
    judged: Judged


def repair(judged: Judged, *, memory: Sequence[str]) -> Repair | None:
    """Return the first change found by which launches of one plan are not refuted; None: none was found.

    Args:
        judged: refuted, launches of one plan.
        memory: the models under which the changed plan is judged.

    """
    plan = judged.launches.plans[0]
    if len(set(judged.launches.plans)) > 1 or plan.fifos is not None or judged.verdict != REFUTED:
        return None
    made = Repair((), plan, judged)
    for _ in range(MOST_EDITS):
        before = best = made
        for edit in _candidates(before.plan, before.judged):
            found = _tried(before.judged, before.plan, edit, memory)
            if found is not None and _harm(found) < _harm(best.judged):
                best = Repair((*before.edits, edit), found.launches.plans[0], found)
                if found.verdict == PROVED:
                    return best
        if best is before or best.judged.verdict != REFUTED:
            return None if best is before else best
        made = best
    return None


def _tried(judged: Judged, plan: Plan, edit: Edit, memory: Sequence[str]) -> Judged | None:
    """Judge launches of a changed plan; None: it cannot be run."""
    try:
        changed = edit.apply(plan)
        times = max(len(judged.launches.plans), 3 if changed.double else 2)
        return judge(replace(judged.launches, plans=(changed,) * times), memory=memory, **_QUICK)
    except (MisuseError, RefusedError):
        return None


def _harm(judged: Judged) -> tuple[int, int, int]:
    """Order reports by how bad they are: refuted at all, by a hang, by how many findings; best is a proof."""
    findings = judged.report.findings
    refuted = 2 * (judged.verdict == REFUTED) + (judged.verdict != PROVED)
    return refuted, any(each.kind == "deadlock" for each in findings), sum(each.pairs for each in findings)


def _place(op: Operation) -> tuple[int, int, int, int]:
    return op.gpu, op.block, op.index, op.inside


def _block(tree: Json, op: Operation) -> Json:
    owner = next(entry for entry in tree["gpus"] if entry["id"] == op.gpu)
    found: Json = next(entry for entry in owner["threadblocks"] if entry["id"] == op.block)
    return found


def _json(plan: Plan, op: Operation) -> Json:
    listed = _block(plan.tree, op)["ops"]
    found: Json = listed[op.index] if op.inside < 0 else listed[op.index]["ops"][op.inside]
    return found


def _everywhere(plan: Plan, op: Operation, text: str, make: Make) -> Edit:
    """Return an edit of an operation on every gpu; `make` has what stands there instead of its JSON."""
    return Edit(text, tuple((same, make(_json(plan, same))) for same in plan.same(op)))


def _on_channels(own: Json, name: str) -> Json:
    return {"name": name, "channel_ids": own["channel_ids"], "channel_type": own["channel_type"]}


def _once(operations: Sequence[Operation]) -> list[Operation]:
    """Return operations without those that stand in the same place on another gpu."""
    return list({_place(op)[1:]: op for op in reversed(operations)}.values())[::-1]


def _candidates(plan: Plan, judged: Judged) -> Iterator[Edit]:
    """Yield edits that may help against the findings of a report, the smallest first."""
    listed = list(plan.operations())
    races = [finding for finding in judged.report.findings if finding.kind != "wrong-result"]
    sides = [op for finding in races for _, op in judged.operations(finding)]
    if judged.remarks:
        yield from _counterparts(plan, listed)
    for op in _once([*sides, *(op for op in listed if op.name.startswith("rlx"))]):
        for text, make in _at(op):
            yield _everywhere(plan, op, f"{op.here}: {text}", make)
    yield from _meetings(plan, sides)
    if not plan.double and any(finding.window and finding.window[0] in "sp" for finding in judged.report.findings):
        yield Edit("use_double_scratch_buffer: true", double=True)
    for block in sorted({op.block for op in sides} or set(plan.gpus[0].blocks)):
        yield from _handshakes(plan, block)


def _at(op: Operation) -> Iterator[tuple[str, Make]]:
    """Yield what may be done at an operation: in words, and what stands there instead of its JSON."""
    if op.name in {"barrier", "sem_acquire", "wait", "rlxwait"}:
        yield f"no {op.name}", lambda _: ()
    if op.name.startswith("rlx"):
        yield f"{op.name} -> {op.name[3:]}", lambda own: ({**own, "name": op.name[3:]},)
        return
    yield f"a nop after {op.name}", lambda own: (own, _NOP)
    yield f"a nop before {op.name}", lambda own: (_NOP, own)
    if op.channel == PORT and op.name == "pws":
        yield "pws -> pwsf", lambda own: ({**own, "name": "pwsf"},)
    elif op.channel == PORT and op.channels:
        yield f"a flush after {op.name}", lambda own: (own, _on_channels(own, "flush"))


def _counterparts(plan: Plan, listed: Sequence[Operation]) -> Iterator[Edit]:
    """Yield a wait for each signal, and a signal for each wait, a barrier where one is missing: where counts differ."""
    for op in _once([op for op in listed if op.name in {"signal", "wait"}]):
        if op.name == "signal":
            text = f"{op.here}: a wait on its channels, and a nop, after signal"
            yield _everywhere(plan, op, text, lambda own: (own, _on_channels(own, "wait"), _NOP))
        else:
            text = f"{op.here}: a signal on its channels before wait"
            yield _everywhere(plan, op, text, lambda own: (_on_channels(own, "signal"), own))
    for barrier in {op.number: op for op in listed if op.name == "barrier"}.values():
        met = _json(plan, barrier)
        for ops in plan.gpus[barrier.gpu].blocks.values():
            if not any(op.name == "barrier" and op.number == barrier.number for op in flat(ops)):
                for op in ops:
                    text = f"{op.here}: barrier {barrier.number} before {op.name}"
                    yield _everywhere(plan, op, text, lambda own, met=met: (met, own))  # type: ignore[misc]


def _meetings(plan: Plan, sides: Sequence[Operation]) -> Iterator[Edit]:
    """Yield barriers between thread blocks of a gpu: after the one operation and before the other."""
    free = max((op.number for op in plan.operations() if op.name == "barrier"), default=-1) + 1
    barrier = {"name": "barrier", "barrier_id": free, "num_threadblocks": 2}
    for one, other in ((one, other) for one in sides for other in sides):
        if one.gpu == other.gpu and one.block != other.block and one.inside == other.inside == -1:
            text = f"a barrier after {one.here} and before {other.here}"
            after = _everywhere(plan, one, text, lambda own: (own, barrier))
            yield replace(
                after, changes=after.changes + _everywhere(plan, other, "", lambda own: (barrier, own)).changes
            )


def _handshakes(plan: Plan, block: int) -> Iterator[Edit]:
    """Yield handshakes of a thread block with the peers of its channels: when it begins, and when it ends."""
    for last in (False, True):
        changes: list[tuple[Operation, tuple[Json, ...]]] = []
        for gpu in plan.gpus:
            for op in gpu.blocks.get(block, ())[-1 if last else 0 :][:1]:
                entries = _block(plan.tree, op).get("channels", ())
                channels = {entry["channel_type"]: entry["channel_ids"] for entry in entries}
                for kind in [kind for kind in (MEMORY, PORT) if channels.get(kind)][:1]:
                    ids = list(range(len(channels[kind])))
                    meet = [{"name": name, "channel_ids": ids, "channel_type": kind} for name in ("signal", "wait")]
                    own = _json(plan, op)
                    changes.append((op, (own, _NOP, *meet) if last else (*meet, _NOP, own)))
        if len(changes) == plan.ranks:
            when = "ends" if last else "begins"
            yield Edit(f"thread block {block}: signal and wait on its channels, when it {when}", tuple(changes))


# What guards nothing.


def superfluous(judged: Judged, *, memory: Sequence[str]) -> Iterator[tuple[Edit, int]]:
    """Yield what can be taken out of launches of one plan, each by itself, so that they are judged the same.

    Args:
        judged: not refuted, launches of one plan.
        memory: the models.

    Raises:
        MisuseError: they are refuted, or of several plans.

    """
    plan = judged.launches.plans[0]
    if judged.verdict == REFUTED or len(set(judged.launches.plans)) > 1 or plan.fifos is not None:
        raise MisuseError(f"{plan.file}: an audit is of one plan in JSON that is not refuted")
    for edit in _removals(plan):
        found = _tried(judged, plan, edit, memory)
        if found is not None and found.verdict == judged.verdict:
            yield edit, len(edit.changes)


def _removals(plan: Plan) -> Iterator[Edit]:
    """Yield edits that take away synchronisation: of every gpu, both ends of a signal, all that meet at a barrier."""
    seen: set[frozenset[Operation]] = set()
    for op in plan.operations():
        if op.name in {"nop", "flush"}:
            gone = frozenset(plan.same(op))
        elif op.name == "barrier":
            gone = frozenset(x for x in plan.operations() if x.name == "barrier" and x.number == op.number)
        elif op.row.does == "s":
            gone = _with_waits(plan, op)
        else:
            continue
        if gone and gone not in seen:
            seen.add(gone)
            waits = sorted({x.here for x in gone if x.row.does == "w"})
            text = f"{op.here}: {op.name}" + (f", with the wait at {', '.join(waits)}" if waits else "")
            yield Edit(text, tuple((x, ()) for x in gone))


def _with_waits(plan: Plan, op: Operation) -> frozenset[Operation]:
    """Return a signal of every gpu and the waits that count it; empty: these are not whole operations."""
    pairing, signals = Pairing(plan), list(plan.same(op))
    counted: Counter[Operation] = Counter()
    for signal, channel in ((each, channel) for each in signals for channel in each.channels):
        partner = pairing.partner(signal.gpu, signal.channel, channel)
        if partner is None:
            return frozenset()
        nth = _uses(plan, signal.gpu, signal.channel, channel, "s").index(signal)
        there = _uses(plan, partner[0], signal.channel, partner[1], "w")
        if nth >= len(there):
            return frozenset()
        counted[there[nth]] += 1
    whole = all(count == len(wait.channels) for wait, count in counted.items())
    return frozenset([*signals, *counted]) if whole else frozenset()


def _uses(plan: Plan, rank: int, kind: str, channel: int, does: str) -> list[Operation]:
    listed = (x for ops in plan.gpus[rank].blocks.values() for x in flat(ops))
    return [x for x in listed if does in x.row.does and x.channel == kind and channel in x.channels]
