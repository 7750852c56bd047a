"""The law of the machine and of the analysis on one program with late memory: what they say against brute force."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from forging import accepts, forced
from late_brute import explore
from late_runs import MEMORIES, Dice, Follow, Names, run_once
from late_toy import JOIN, POLL, START, SYNC, TAKE, WAIT

from asyncsim.analysis.analyse import analyse
from asyncsim.certify.events import MODELS as CERTIFIED
from asyncsim.checking.record.versions import Versions
from asyncsim.trace.event import COMPLETE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from late_brute import Truth
    from late_rules import Pair
    from late_toy import Op, Program

    from asyncsim.machine.case import Case
    from asyncsim.trace.event import Trace

FLAGS = {"signal-race", "unstable-wait", "overflow"}
BLEMISHES = {"race"} | FLAGS
SCHEDULES = (Dice(0), Dice(1, landings=1e9), Dice(2, landings=0))
"""A fair one, one where all lands at once, and one where all lands as late as it can."""
FOLLOWED = 3
"""So many ends that none of these reaches are gone to, the way brute force went."""
LIMIT = 30_000
"""Programs with more states are not worth their time: `late_brute.TooManyStatesError`."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the analysis says of one run, as far as the law speaks of it.

    Args:
        kinds: of findings.
        races: pairs of transitions.
        applies: no undetermined test was met, and no poll that nothing forces.
        polled: such a poll was met.

    """

    kinds: frozenset[str]
    races: frozenset[Pair]
    applies: bool
    polled: bool = False

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


def judge(program: Program, trace: Trace, case: Case | None = None) -> Judged:
    """Analyse a run; with the case, its polls too."""
    result = analyse(trace, contents=None if case is None else Versions(case))
    names = Names(program)
    races = frozenset(frozenset(names.step(name, index) for name, index in pair) for pair in result.race_pairs)
    polled = any("polls data" in reason for reason in result.reasons)
    said = Judged(frozenset(finding.kind for finding in result.findings), races, result.applies, polled)
    assert (said.exact, said.proved) == (result.exact, result.clean)
    return said


@dataclass(frozen=True, slots=True)
class Checked:
    """A program with all that was found out about it under one memory model."""

    program: Program
    memory: str
    truth: Truth
    said: Judged
    mistakes: tuple[str, ...]
    certified: bool | None = None
    """Whether the checker takes the certificate of a complete run, honest or forced; None: there is none to check."""

    @property
    def waited_in_midstream(self) -> bool:
        """Whether in every run some actor passes a wait between two other operations."""
        streams = self.program.streams
        ends = [end.positions for end in self.truth.finals]
        paths = ([ops[1 : at - 1] for ops, at in zip(streams, end, strict=True)] for end in ends)
        return all(any(op.kind in (WAIT, TAKE, POLL) for inner in path for op in inner) for path in paths)


async def check(program: Program, memory: str) -> Checked:
    """Run a program under some schedules and compare all that comes of it with brute force.

    The machine must end where brute force can end, and be able to go wherever brute force goes. A certificate, made of
    what was found whether that is a proof or not, must be rejected unless all runs do the same.
    """
    truth = explore(program, MEMORIES[memory], limit=LIMIT)
    mistakes: list[str] = []
    said: list[Judged] = []
    reached = set()
    traces = []
    for scheduler in SCHEDULES:
        ran = await run_once(program, memory, scheduler)
        traces.append(ran.trace)
        reached.add(ran.final)
        if ran.final not in truth.finals:
            mistakes.append(f"the machine ends where it cannot: {ran.final}")
        said.append(judge(program, ran.trace, ran.case))
    names = Names(program)
    for final, way in list(truth.finals.items())[:FOLLOWED]:
        if final in reached:
            continue
        try:
            ran = await run_once(program, memory, Follow(names.way(way)))
        except AssertionError as error:
            mistakes.append(f"the machine cannot follow brute force: {error}")
            continue
        if ran.final != final:
            mistakes.append(f"the machine ends at {ran.final}, brute force at {final}")
        said.append(judge(program, ran.trace, ran.case))
    for one in said:
        mistakes += against_truth(one, truth)
    certified = _is_certified(traces[0], memory)
    if certified and (len(truth.finals) > 1 or truth.races or truth.deadlocks):
        mistakes.append("certified, but runs differ or race")
    if not all(_same(one, said[0]) for one in said):
        mistakes.append("findings depend on the run")
    return Checked(program, memory, truth, said[0], tuple(dict.fromkeys(mistakes)), certified)


def _is_certified(trace: Trace, memory: str) -> bool | None:
    polls = any(event.op.kind == POLL for event in trace.events)  # of predicates no certificate says anything
    if memory not in CERTIFIED or trace.footer is None or trace.footer.ending != COMPLETE or polls:
        return None
    return accepts(forced(trace))


def against_truth(said: Judged, truth: Truth) -> list[str]:
    """Say where the analysis is wrong."""
    mistakes = []
    if said.exact:
        mistakes += [f"missed race {pair}" for pair in sorted(map(sorted, truth.races - said.races))]
        mistakes += [f"false race {pair}" for pair in sorted(map(sorted, said.races - truth.races))]
        if len({(end.positions, end.counters) for end in truth.finals}) > 1:
            mistakes.append("no flag, but runs get to different places or leave different counters")
        elif ("deadlock" in said.kinds) != (truth.deadlocks > 0):
            mistakes.append(f"deadlock: said {'deadlock' in said.kinds}, brute force says {truth.deadlocks > 0}")
        if bool(said.races) != ("race" in said.kinds):
            mistakes.append("race pairs and race findings do not go together")
    if said.proved and len(truth.finals) > 1:
        mistakes.append(f"proved, but there are {len(truth.finals)} final states")
    return mistakes


def _same(one: Judged, other: Judged) -> bool:
    """Say whether two analyses of one program agree.

    Past a flag, or a poll that nothing forces, nothing is exact, so only that there is one counts.
    """
    loose = one.flagged or one.polled
    return loose == (other.flagged or other.polled) and (loose or one == other)


async def smallest(program: Program, is_wrong: Callable[[Program], Awaitable[bool]]) -> Program:
    """Drop operations for as long as the program stays wrong."""
    shrunk = True
    while shrunk:
        shrunk = False
        for smaller in _smaller(program):
            if await is_wrong(smaller):
                program, shrunk = smaller, True
                break
    return program


def _smaller(program: Program) -> list[Program]:
    """Return programs with one thing less: a stream with its start and join, all meetings, an operation, a signal."""
    found = []
    for rank, streams in enumerate(program.ranks):
        if len(streams) > 1:
            found.append(_with(program, rank, (tuple(op for op in streams[0] if op.kind not in (START, JOIN, SYNC)),)))
            found.append(_with(program, rank, tuple(tuple(op for op in ops if op.kind != SYNC) for ops in streams)))
        for stream, ops in enumerate(streams):
            found += [
                _with(program, rank, (*streams[:stream], changed, *streams[stream + 1 :]))
                for changed in _shorter(ops, may_be_empty=stream == 0)
            ]
    return [smaller for smaller in found if smaller != program]


def _shorter(ops: tuple[Op, ...], *, may_be_empty: bool) -> list[tuple[Op, ...]]:
    """Return streams with one operation less, or without the signal of a put."""
    found = []
    for at, op in enumerate(ops):
        before, after = ops[:at], ops[at + 1 :]
        if op.kind not in (START, JOIN, SYNC) and (may_be_empty or len(ops) > 1):
            found.append((*before, *after))
        if op.change is not None and op.on_data:
            found.append((*before, replace(op, change=None), *after))
    return found


def _with(program: Program, rank: int, streams: tuple[tuple[Op, ...], ...]) -> Program:
    return replace(program, ranks=(*program.ranks[:rank], streams, *program.ranks[rank + 1 :]))
