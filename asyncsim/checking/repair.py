"""Repair: the weakest barrier that makes a refuted kernel right, found by trying places for one.

A place is a line of the kernel that its author can write something before, or the end of a call. Each
repaired kernel is run and analysed once, the cheapest first: those with the fewest meetings; among these
the ones that stand soon after the first side of the race, where a person would look for them. What the
analysis lets pass is judged in full. Where one barrier is not enough, two are tried.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from asyncsim.analysis.analyse import ORDER_FINDINGS, analyse
from asyncsim.checking.check import check
from asyncsim.checking.outcome import Judge
from asyncsim.checking.report import PROVED
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.edit import BARRIER, Edit
from asyncsim.trace.errors import KernelError
from asyncsim.trace.event import COMPLETE
from asyncsim.trace.finding import SAME_CALL
from asyncsim.trace.token import Token, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from asyncsim.checking.report import Report
    from asyncsim.machine.case import Case
    from asyncsim.machine.site import Frame
    from asyncsim.trace.finding import Finding, Side
    from asyncsim.trace.op import Op

TRIES = 400
"""How many repaired kernels are run and analysed at most."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Barriers that make a kernel right.

    Args:
        edits: the barriers.
        meetings: how often a rank meets the others in the calls that were judged.
        between: between what and what they stand, in words.
        report: on the repaired kernel: PROVED.
        token: of a run of it, which replays.

    """

    edits: tuple[Edit, ...]
    meetings: int
    between: str
    report: Report
    token: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of this repair."""
        return {
            "edits": list(map(str, self.edits)), "meetings": self.meetings, "between": self.between,
            "verdict": self.report.verdict, "scope": self.report.scope, "token": self.token,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a barrier may stand.

    Args:
        edit: the barrier.
        meetings: how often each rank would come there.
        distance: how far behind the first side of the race it is, in operations; before it: very far.

    """

    edit: Edit
    meetings: int
    distance: float


async def repair(report: Report) -> list[Repair]:
    """Return the repairs with the fewest meetings, the likeliest place first; nothing for what no barrier repairs.

    Args:
        report: on the kernel as it stands.

    """
    harmful = [finding for finding in report.findings if finding.harmful and finding.kind in ORDER_FINDINGS]
    if not harmful or not harmful[0].sides:
        return []
    search = _Search(report.case, harmful)
    return await search.run()


class _Search:
    """One search for a repair."""

    def __init__(self, case: Case, findings: Sequence[Finding]) -> None:
        self._case = case
        self._findings = findings
        self._left = TRIES

    async def run(self) -> list[Repair]:
        """Try single barriers; then, of those that help, pairs."""
        places = await _places(self._case, self._findings[0].sides[0])
        wrong = await self._wrong(())
        found, helpful = await self._try([(place,) for place in places], wrong)
        if not found:
            found, _ = await self._try(list(combinations([place for (place,) in helpful], 2)), wrong)
        return found

    async def _try(
        self, tries: Iterable[tuple[_Place, ...]], wrong: set[object] | None
    ) -> tuple[list[Repair], list[tuple[_Place, ...]]]:
        """Return the repairs among these, the cheapest only, and those that leave less wrong than there was."""
        found: list[Repair] = []
        helpful = []
        for places in sorted(tries, key=_cost):
            if not self._left or (found and _cost(places)[0] > found[0].meetings):
                break
            self._left -= 1
            left = await self._wrong(tuple(place.edit for place in places))
            if left == set():
                found += await self._confirmed(places)
            if left is not None and (wrong is None or left < wrong):
                helpful.append(places)
        return found, helpful

    async def _wrong(self, edits: tuple[Edit, ...]) -> set[object] | None:
        """Return what one run of the edited kernel says is wrong; None: it does not even end."""
        case = replace(self._case, edits=tuple(map(str, edits)))
        try:
            run = await simulate.aio(case, Fifo(), record="fifo", engine="direct")
        except KernelError:
            return None
        if run.ending != COMPLETE or run.trace is None:
            return None
        analysis = analyse(run.trace)
        # Only the lines count: with one barrier more, fewer pairs of the same lines are not less wrong.
        wrong: set[object] = {
            (finding.kind, finding.hazard, finding.scope, tuple(side.at for side in finding.sides))
            for finding in analysis.findings
        }
        wrong |= {finding.kind for finding in Judge(case).findings(run)}
        return wrong | ({"not decided"} if not analysis.clean and not wrong else set())

    async def _confirmed(self, places: Sequence[_Place]) -> list[Repair]:
        """Judge in full what one run found right; nothing if that does not prove it."""
        case = self._case
        edits = tuple(place.edit for place in places)
        report = await check.aio(
            case.kernel, ranks=case.ranks, calls=case.calls, memory=case.memory, seed=case.seed,
            edits=tuple(map(str, edits)), budget=0, samples=1,
        )  # fmt: skip
        if report.verdict != PROVED or report.proof is None:
            return []
        trace, _ = report.proof
        token = encode(Token.of(trace.header, trace.choices, ending=COMPLETE))
        return [Repair(edits, sum(place.meetings for place in places), _between(self._findings), report, token)]


def _cost(places: Sequence[_Place]) -> tuple[int, float]:
    """Order repairs: the fewest meetings, then the nearest behind the first side of the race."""
    return sum(place.meetings for place in places), sum(place.distance for place in places)


async def _places(case: Case, first: Side) -> list[_Place]:
    """Return every place for a barrier to which all ranks come equally often."""
    visits = _Visits(case)
    await simulate.aio(case, Fifo(), watch=visits.watch, engine="direct")
    return list(visits.places(first))


class _Visits:
    """When each actor comes to each line of the kernel, in one run."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._ops: dict[str, list[int]] = {}
        self._ranks: dict[str, int] = {}
        self._awaited: dict[tuple[str, tuple[str, ...]], object] = {}
        self._every: dict[tuple[str, ...], list[tuple[str, int, int]]] = {}

    def watch(self, op: Op, frames: Sequence[Frame]) -> None:
        """Note an operation, under each of the kernel's lines that lead to it."""
        calls = self._ops.setdefault(op.actor.name, [])
        self._ranks[op.actor.name] = op.actor.rank
        lines: tuple[str, ...] = ()
        for frame in frames:
            if frame.ours:
                break  # a line inside a composite is not the author's to change
            lines = (*lines, frame.text)
            key = (op.actor.name, lines)
            if self._awaited.get(key) is not frame.awaited:
                self._awaited[key] = frame.awaited
                self._every.setdefault(lines, []).append((op.actor.name, len(calls), op.call))
        calls.append(op.call)

    def places(self, first: Side) -> Iterator[_Place]:
        """Yield the places; of those that stand before the same operations only the outermost line."""
        seen: set[frozenset[tuple[str, int]]] = set()
        for lines, every in sorted(self._every.items(), key=lambda item: len(item[0])):
            once: dict[tuple[int, int], tuple[str, int, int]] = {}
            for visit in every:
                once.setdefault((self._ranks[visit[0]], visit[2]), visit)
            for visits, again in ((list(once.values()), False), (every, True)):
                before = frozenset((actor, index) for actor, index, _ in visits)
                if before not in seen and (meetings := self._meetings(visits)):
                    seen.add(before)
                    indexes = [index for actor, index, _ in visits if actor == first.actor]
                    yield _Place(Edit(BARRIER, lines, every=again), meetings, _distance(indexes, first.index))
        ends = self._ops.get(first.actor, [])
        last = max((index for index, call in enumerate(ends) if call == first.call), default=0)
        yield _Place(
            Edit(BARRIER, ()), self._case.calls, max(last - first.index, 0) + 0.5
        )  # behind the last of the call

    def _meetings(self, visits: Sequence[tuple[str, int, int]]) -> int:
        """Return how often each rank comes; 0 if some come more often than others, who would wait for ever."""
        often = [0] * self._case.ranks
        for actor, _, _ in visits:
            often[self._ranks[actor]] += 1
        return often[0] if len(set(often)) == 1 else 0


def _distance(indexes: Sequence[int], first: int) -> float:
    """Return how far the first of these that comes after `first` is from it."""
    behind = [index - first for index in indexes if index > first]
    return min(behind, default=1e9)


def _between(findings: Sequence[Finding]) -> str:
    """Say between what and what barriers are missing."""
    return "; ".join(dict.fromkeys(map(_gap, findings)))


def _gap(finding: Finding) -> str:
    first, second = (f"{_words(side)}" for side in (finding.sides[0], finding.sides[-1]))
    later = "" if finding.scope in (None, SAME_CALL) else "next call's "
    return f"between the {first} and the {later}{second}"


def _words(side: Side) -> str:
    """Name what happens there: the phase, or the operation."""
    return side.phase or f"{side.op} at {side.at[0] if side.at else 'an unknown line'}"
