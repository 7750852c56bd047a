"""What to change in a plan so that it is not refuted any more, and what in it guards nothing: as edits of its JSON."""

from __future__ import annotations

import json
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
    from collections.abc import Iterator, Sequence

    from asyncsim.frontends.mscclpp.plan import Operation, Plan

MOST_EDITS = 3
"""So many edits together are tried."""
_QUICK = {"shrinking": 0, "budget": 0, "samples": 8}
_ORDERED = {"rlxsignal": "signal", "rlxwait": "wait"}

Place = tuple[int, int, int, int]
"""Of an operation: its gpu, thread block, index, and number in a pipeline or -1."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a plan.

    Args:
        text: in words.
        changes: at each place: the operations that stand there instead; empty: none.
        double: let the scratch have two halves.

    """

    text: str
    changes: tuple[tuple[Place, tuple[dict[str, Any], ...]], ...] = ()
    double: bool = False

    def apply(self, plan: Plan) -> Plan:
        """Return the changed plan."""
        tree = deepcopy(plan.tree)
        if self.double:
            tree["use_double_scratch_buffer"] = True
        # From the last place to the first, so that the numbers before it stay what they are.
        for (gpu, block, index, inside), instead in sorted(self.changes, key=lambda change: change[0], reverse=True):
            listed = _block(tree, gpu, block)["ops"]
            listed, at = (listed[index]["ops"], inside) if inside >= 0 else (listed, index)
            listed[at : at + 1] = deepcopy(list(instead))
        return parse_plan(json.dumps(tree, indent=2), plan.file)


@dataclass(frozen=True, slots=True)
class Repair:
    """A plan that was changed until it was not refuted.

    Args:
        edits: in the order in which they were made.
        plan: the changed one.
        judged: how it is judged.

    """

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
    edits: tuple[Edit, ...] = ()
    for _ in range(MOST_EDITS):
        best: tuple[Edit, Plan, Judged] | None = None
        for edit in _candidates(plan, judged):
            try:
                changed = edit.apply(plan)
                found = judge(_launches(judged, changed), memory=memory, **_QUICK)
            except (MisuseError, RefusedError):
                continue
            if found.verdict == PROVED:
                return Repair((*edits, edit), changed, found)
            if _harm(found) < _harm(best[2] if best else judged):
                best = edit, changed, found
        if best is None:
            return None
        edits, plan, judged = (*edits, best[0]), best[1], best[2]
        if judged.verdict != REFUTED:
            return Repair(edits, plan, judged)
    return None


def _harm(judged: Judged) -> tuple[int, int, int]:
    """Order reports by how bad they are: refuted at all, by a hang, by how many findings."""
    findings = judged.report.findings
    hang = any(finding.kind == "deadlock" for finding in findings)
    return judged.verdict == REFUTED, hang, sum(finding.pairs for finding in findings)


def _launches(judged: Judged, plan: Plan) -> Any:  # noqa: ANN401 - launches
    times = max(len(judged.launches.plans), 3 if plan.double else 2)
    return replace(judged.launches, plans=(plan,) * times)


def _candidates(plan: Plan, judged: Judged) -> Iterator[Edit]:
    """Yield edits that may help against the findings of a report, the smallest first."""
    sides = [op for finding in judged.report.findings for _, op in judged.operations(finding)]
    seen: dict[tuple[int, int, int], Operation] = {}
    for op in sides:
        seen.setdefault((op.block, op.index, op.inside), op)
    for op in plan.operations(pipelines=False):
        if op.name in _ORDERED:
            seen.setdefault((op.block, op.index, op.inside), op)
    if judged.remarks:
        yield from _counterparts(plan)
    for op in seen.values():
        yield from _at(plan, op)
    yield from _meetings(plan, sides)
    if not plan.double and any(finding.window and finding.window[0] in "sp" for finding in judged.report.findings):
        yield Edit("use_double_scratch_buffer: true", double=True)
    for block in sorted({op.block for op in sides} or set(plan.gpus[0].blocks)):
        yield from _handshakes(plan, block)


def _at(plan: Plan, op: Operation) -> Iterator[Edit]:
    """Yield edits at an operation, and at the same one of the other gpus."""
    same = list(_same(plan, op))
    where = _where(op)
    if op.name in ("barrier", "sem_acquire", "wait", "rlxwait"):
        yield Edit(f"{where}: no {op.name}", tuple((_place(x), ()) for x in same))
    if op.name in _ORDERED:
        name = _ORDERED[op.name]
        yield Edit(
            f"{where}: {op.name} -> {name}", tuple((_place(x), ({**_json(plan, x), "name": name},)) for x in same)
        )
        return
    yield Edit(f"{where}: a nop after {op.name}", tuple((_place(x), (_json(plan, x), _NOP)) for x in same))
    yield Edit(f"{where}: a nop before {op.name}", tuple((_place(x), (_NOP, _json(plan, x))) for x in same))
    if op.channel == PORT and op.name == "pws":
        yield Edit(f"{where}: pws -> pwsf", tuple((_place(x), ({**_json(plan, x), "name": "pwsf"},)) for x in same))
    elif op.channel == PORT and op.channels:
        flushed = tuple((_place(x), (_json(plan, x), _channels(plan, x, "flush"))) for x in same)
        yield Edit(f"{where}: a flush after {op.name}", flushed)


def _counterparts(plan: Plan) -> Iterator[Edit]:
    """Yield a wait for each signal, and a signal for each wait: where their counts differ."""
    seen: set[tuple[int, int, int]] = set()
    for op in plan.operations(pipelines=False):
        if op.name in ("signal", "wait") and (op.block, op.index, op.inside) not in seen:
            seen.add((op.block, op.index, op.inside))
            same = list(_same(plan, op))
            if op.name == "signal":
                waits = tuple((_place(x), (_json(plan, x), _channels(plan, x, "wait"), _NOP)) for x in same)
                yield Edit(f"{_where(op)}: a wait on its channels, and a nop, after signal", waits)
            else:
                signals = tuple((_place(x), (_channels(plan, x, "signal"), _json(plan, x))) for x in same)
                yield Edit(f"{_where(op)}: a signal on its channels before wait", signals)
    for barrier in {op.number: op for op in plan.operations(pipelines=False) if op.name == "barrier"}.values():
        for listed in plan.gpus[barrier.gpu].blocks.values():
            if not any(op.name == "barrier" and op.number == barrier.number for op in flat(listed)):
                for op in listed:
                    met = tuple((_place(x), (_json(plan, barrier), _json(plan, x))) for x in _same(plan, op))
                    yield Edit(f"{_where(op)}: barrier {barrier.number} before {op.name}", met)


def _meetings(plan: Plan, sides: Sequence[Operation]) -> Iterator[Edit]:
    """Yield barriers between thread blocks of a gpu: after the one operation and before the other."""
    free = max((op.number for op in plan.operations() if op.name == "barrier"), default=-1) + 1
    barrier = {"name": "barrier", "barrier_id": free, "num_threadblocks": 2}
    for one in sides:
        for other in sides:
            if one.gpu == other.gpu and one.block != other.block and one.inside == other.inside == -1:
                changes = [(_place(x), (_json(plan, x), barrier)) for x in _same(plan, one)]
                changes += [(_place(x), (barrier, _json(plan, x))) for x in _same(plan, other)]
                yield Edit(f"a barrier after {_where(one)} and before {_where(other)}", tuple(changes))


def _handshakes(plan: Plan, block: int) -> Iterator[Edit]:
    """Yield handshakes of a thread block with the peers of its channels: when it begins, and when it ends."""
    for last in (False, True):
        changes: list[tuple[Place, tuple[dict[str, Any], ...]]] = []
        for gpu in plan.gpus:
            listed = gpu.blocks.get(block)
            if not listed:
                break
            entries = _block(plan.tree, gpu.id, block).get("channels", ())
            channels = {entry["channel_type"]: entry["channel_ids"] for entry in entries}
            kind = next((kind for kind in (MEMORY, PORT) if channels.get(kind)), None)
            if kind is None:
                break
            ids = list(range(len(channels[kind])))
            meet = [{"name": name, "channel_ids": ids, "channel_type": kind} for name in ("signal", "wait")]
            op = listed[-1 if last else 0]
            own = _json(plan, op)
            changes.append((_place(op), (own, _NOP, *meet) if last else (*meet, _NOP, own)))
        else:
            when = "ends" if last else "begins"
            yield Edit(f"thread block {block}: signal and wait on its channels, when it {when}", tuple(changes))


_NOP = {"name": "nop"}


def _where(op: Operation) -> str:
    return f"thread block {op.block}, op {op.index}" + (f".{op.inside}" if op.inside >= 0 else "")


def _place(op: Operation) -> Place:
    return op.gpu, op.block, op.index, op.inside


def _same(plan: Plan, op: Operation) -> Iterator[Operation]:
    """Yield an operation as it stands on every gpu that has one of this name there."""
    for gpu in plan.gpus:
        for other in flat(gpu.blocks.get(op.block, ())):
            if (other.index, other.inside, other.name) == (op.index, op.inside, op.name):
                yield other


def _block(tree: dict[str, Any], gpu: int, block: int) -> dict[str, Any]:
    owner = next(entry for entry in tree["gpus"] if entry["id"] == gpu)
    found: dict[str, Any] = next(entry for entry in owner["threadblocks"] if entry["id"] == block)
    return found


def _json(plan: Plan, op: Operation) -> dict[str, Any]:
    listed = _block(plan.tree, op.gpu, op.block)["ops"]
    found: dict[str, Any] = listed[op.index] if op.inside < 0 else listed[op.index]["ops"][op.inside]
    return found


def _channels(plan: Plan, op: Operation, name: str) -> dict[str, Any]:
    entry = _json(plan, op)
    return {"name": name, "channel_ids": entry["channel_ids"], "channel_type": entry["channel_type"]}


# What guards nothing.


@dataclass(frozen=True, slots=True)
class Superfluous:
    """Operations that a plan is judged the same without.

    Args:
        edit: takes them away.
        operations: how many a call.

    """

    edit: Edit
    operations: int


def superfluous(judged: Judged, *, memory: Sequence[str]) -> Iterator[Superfluous]:
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
        try:
            launches = replace(judged.launches, plans=(edit.apply(plan),) * len(judged.launches.plans))
            found = judge(launches, memory=memory, **_QUICK)
        except (MisuseError, RefusedError):
            continue
        if found.verdict == judged.verdict:
            yield Superfluous(edit, len(edit.changes))


def _removals(plan: Plan) -> Iterator[Edit]:
    """Yield edits that take away synchronisation: of every gpu, both ends of a signal, all that meet at a barrier."""
    seen: set[tuple[Place, ...]] = set()
    for op in plan.operations(pipelines=False):
        if op.name in ("nop", "flush"):
            gone = list(_same(plan, op))
        elif op.name == "barrier":
            gone = [x for x in plan.operations(pipelines=False) if x.name == "barrier" and x.number == op.number]
        elif op.name in ("signal", "rlxsignal"):
            gone = _with_waits(plan, op)
        else:
            continue
        places = tuple(sorted({_place(x) for x in gone}))
        if places and places not in seen:
            seen.add(places)
            waits = sorted({_where(x) for x in gone if x.name in ("wait", "rlxwait")})
            text = f"{_where(op)}: {op.name}" + (f", with the wait at {', '.join(waits)}" if waits else "")
            yield Edit(text, tuple((place, ()) for place in places))


def _with_waits(plan: Plan, op: Operation) -> list[Operation]:
    """Return a signal of every gpu and the waits that count it; empty: these are not whole operations."""
    pairing = Pairing(plan)
    signals = list(_same(plan, op))
    waits: dict[Place, Operation] = {}
    counted: dict[Place, int] = {}
    for signal in signals:
        for channel in signal.channels:
            partner = pairing.partner(signal.gpu, signal.channel, channel)
            if partner is None:
                return []
            before = _uses(plan, signal.gpu, signal.channel, channel, ("signal", "rlxsignal", "pws", "pwsf"))
            there = _uses(plan, partner[0], signal.channel, partner[1], ("wait", "rlxwait"))
            nth = [_place(x) for x in before].index(_place(signal))
            if nth >= len(there):
                return []
            waits[_place(there[nth])] = there[nth]
            counted[_place(there[nth])] = counted.get(_place(there[nth]), 0) + 1
    whole = all(counted[place] == len(wait.channels) for place, wait in waits.items())
    return [*signals, *waits.values()] if whole else []


def _uses(plan: Plan, rank: int, kind: str, channel: int, names: Sequence[str]) -> list[Operation]:
    return [
        x for listed in plan.gpus[rank].blocks.values() for x in flat(listed)
        if x.name in names and x.channel == kind and channel in x.channels
    ]  # fmt: skip
