"""The law of the analysis on one program: what it says of a run against what brute force knows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from brute import explore
from runs import run_once
from toy import COMPARING, POLL, TAKE, WAIT

from asyncsim.analysis.analyse import analyse
from asyncsim.analysis.group import EXAMPLES
from asyncsim.checking.record.versions import Versions
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from brute import Final, Truth
    from runs import Ran
    from toy import Op, Program

    from asyncsim.analysis.analyse import Analysis
    from asyncsim.machine.case import Case
    from asyncsim.trace.event import Trace
    from asyncsim.trace.finding import Side

FLAGS = {"signal-race", "unstable-wait", "overflow"}
BLEMISHES = {"race", "order-dependent-sum"} | FLAGS
"""Any of these, and the program is not proved. A deadlock is none: it, too, can be proved."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the analysis says of one run, as far as the law speaks of it.

    Args:
        kinds: of findings.
        races: pairs of (actor, index).
        applies: no undetermined test was met, and no poll that nothing forces.
        polled: such a poll was met.
        fast: vector clocks decided.
        blocked: the (actor, index) of each side of a deadlock.
        slips: where the result contradicts itself.

    """

    kinds: frozenset[str]
    races: frozenset[frozenset[tuple[int, int]]]
    applies: bool
    polled: bool
    fast: bool = field(compare=False)
    blocked: frozenset[tuple[int, int]]
    slips: tuple[str, ...]

    @property
    def flagged(self) -> bool:
        """Whether frontiers are only approximate."""
        return bool(self.kinds & FLAGS)

    @property
    def exact(self) -> bool:
        """Whether the analysis claims to know all races."""
        return self.applies and not self.flagged

    @property
    def proved(self) -> bool:
        """Whether the analysis claims that every run ends alike."""
        return self.applies and not self.kinds & BLEMISHES


def judge(trace: Trace, order: str = "auto", case: Case | None = None) -> Judged:
    """Analyse a run; with the case, its polls too."""
    result = analyse(trace, order=order, contents=None if case is None else Versions(case))
    kinds = frozenset(finding.kind for finding in result.findings)
    races = frozenset(frozenset((int(name), index) for name, index in pair) for pair in result.race_pairs)
    blocked = [_places(f.sides) for f in result.findings if f.kind == "deadlock"]
    polled = any("polls data" in reason for reason in result.reasons)
    said = Judged(
        kinds, races, result.applies, polled, result.fast, frozenset().union(*blocked), tuple(_slips(result, races))
    )
    assert (said.exact, said.proved) == (result.exact, result.clean)
    return said


def _places(sides: Iterable[Side]) -> frozenset[tuple[int, int]]:
    return frozenset((int(side.actor), side.index) for side in sides)


def _slips(result: Analysis, races: frozenset[frozenset[tuple[int, int]]]) -> list[str]:
    found = [finding for finding in result.findings if finding.kind == "race"]
    examples = [_places(sides) for finding in found for sides in finding.examples]
    slips = []
    if sum(finding.pairs for finding in found) != len(races):
        slips.append("the pairs of all race findings are not as many as the race pairs")
    if len(races) <= EXAMPLES and (set(examples) != races or len(examples) != len(races)):
        slips.append("the examples of the race findings are not the race pairs")
    return slips


@dataclass(frozen=True, slots=True)
class Checked:
    """A program with all that was found out about it."""

    program: Program
    truth: Truth
    said: Judged
    mistakes: tuple[str, ...]

    @property
    def waited_in_midstream(self) -> bool:
        """Whether in every run some rank passes a wait between two other operations."""
        streams = self.program.streams
        ends = [end.positions for end in self.truth.finals]
        paths = ([ops[1 : at - 1] for ops, at in zip(streams, end, strict=True)] for end in ends)
        return all(any(op.kind in (WAIT, TAKE, POLL) for inner in path for op in inner) for path in paths)


async def check(program: Program, seeds: Sequence[int]) -> Checked:
    """Run a program under some schedules and compare all that the analysis says with brute force."""
    truth = explore(program)
    mistakes: list[str] = []
    said: list[Judged] = []
    for seed in seeds:
        ran = await run_once(program, seed)
        one = judge(ran.trace, case=ran.case)
        said.append(one)
        mistakes += one.slips
        mistakes += _against_run(one, ran.final, tuple(map(len, program.streams)))
        mistakes += _against_truth(one, truth, floats=program.floats)
        mistakes += _orders_agree(ran, one) if len(said) == 1 else []
    mistakes += _runs_agree(said)
    return Checked(program, truth, said[0], tuple(dict.fromkeys(mistakes)))


def _against_run(said: Judged, final: Final, lengths: tuple[int, ...]) -> list[str]:
    if final.overflow:
        return [] if "overflow" in said.kinds else ["the run ended with an overflow that is no finding"]
    blocked = {(actor, at) for actor, (at, end) in enumerate(zip(final.positions, lengths, strict=True)) if at < end}
    return [] if said.blocked == blocked else [f"blocked are {sorted(blocked)}, said are {sorted(said.blocked)}"]


def _against_truth(said: Judged, truth: Truth, *, floats: bool) -> list[str]:
    mistakes = []
    if said.exact:
        mistakes += [f"missed race {sorted(pair)}" for pair in sorted(map(sorted, truth.races - said.races))]
        mistakes += [f"false race {sorted(pair)}" for pair in sorted(map(sorted, said.races - truth.races))]
        if truth.leaves:
            mistakes.append("missed overflow")
        if len({(end.positions, end.counters) for end in truth.finals}) > 1:
            mistakes.append("no flag, but runs get to different places or leave different counters")
        elif ("deadlock" in said.kinds) != (truth.deadlocks > 0):
            mistakes.append(f"deadlock: said {'deadlock' in said.kinds}, brute force says {truth.deadlocks > 0}")
        sums = truth.sums - truth.races if floats else ()  # what races already is not said to be a sum, too
        if ("order-dependent-sum" in said.kinds) != bool(sums):
            mistakes.append(f"order-dependent sums: brute force says {sorted(map(sorted, sums))}")
        if bool(said.races) != ("race" in said.kinds):
            mistakes.append("race pairs and race findings do not go together")
    if said.proved and len(truth.finals) > 1:
        mistakes.append(f"proved, but there are {len(truth.finals)} final states")
    return mistakes


def same(one: Judged, other: Judged) -> bool:
    """Say whether two analyses of one program agree.

    Past a flag, or a poll that nothing forces, nothing is exact, so only that there is one counts.
    """
    loose = one.flagged or one.polled
    return loose == (other.flagged or other.polled) and (loose or one == other)


def _runs_agree(said: Sequence[Judged]) -> list[str]:
    return [] if all(same(one, said[0]) for one in said) else ["findings depend on the run"]


def _orders_agree(ran: Ran, auto: Judged) -> list[str]:
    """Say where clocks and frontiers differ; where the fast path does not apply, clocks must be refused."""
    mistakes = []
    if auto.fast and not same(judge(ran.trace, "frontiers", ran.case), auto):
        mistakes.append("clocks and frontiers differ")
    try:
        had = same(judge(ran.trace, "clocks", ran.case), auto)
    except MisuseError:
        had = False
    if had != auto.fast:
        mistakes.append("auto does not use the clocks" if had else "clocks are refused where auto uses them")
    return mistakes


async def smallest(program: Program, is_wrong: Callable[[Program], Awaitable[bool]]) -> Program:
    """Drop operations, and then calls, for as long as the program stays wrong."""
    shrunk = True
    while shrunk:
        shrunk = False
        for smaller in _smaller(program):
            if await is_wrong(smaller):
                program, shrunk = smaller, True
                break
    return program


def _smaller(program: Program) -> list[Program]:
    found = [replace(program, calls=1)] if program.calls > 1 else []
    for actor, ops in enumerate(program.actors):
        found += [_with(program, actor, ops[:at] + ops[at + 1 :]) for at in range(len(ops))]
        found += [
            _with(program, actor, (*ops[:at], replace(op, value=op.value - 1), *ops[at + 1 :]))
            for at, op in enumerate(ops)
            if not op.on_data and op.kind not in COMPARING and op.value > 1
        ]
    return found


def _with(program: Program, actor: int, ops: tuple[Op, ...]) -> Program:
    return replace(program, actors=(*program.actors[:actor], ops, *program.actors[actor + 1 :]))
