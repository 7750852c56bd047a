"""The law of the analysis for any synchronising operation: what it says of a run against what brute force knows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from sync_brute import explore
from sync_runs import played, played_with

from asyncsim.analysis.analyse import FLAGS, analyse
from asyncsim.analysis.arrivals import meetings_of
from asyncsim.analysis.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sync_brute import State, Truth
    from sync_runs import Lasts
    from sync_toy import Program

    from asyncsim.analysis.analyse import Analysis


@dataclass(frozen=True, slots=True)
class Said:
    """What the analysis says of one run, as far as the law speaks of it."""

    races: frozenset[frozenset[tuple[int, int]]]
    flagged: bool
    told: bool
    hangs: bool

    @property
    def exact(self) -> bool:
        """Whether the analysis claims to know all races."""
        return self.told and not self.flagged

    @property
    def proved(self) -> bool:
        """Whether the analysis claims that every run ends alike."""
        return self.exact and not self.races


def said_of(result: Analysis) -> Said:
    """Return what counts of an analysis."""
    kinds = {finding.kind for finding in result.findings}
    races = frozenset(frozenset((int(name), index) for name, index in pair) for pair in result.race_pairs)
    said = Said(races, bool(kinds & set(FLAGS)), result.applies, "deadlock" in kinds)
    assert (said.exact, said.proved) == (result.exact, result.clean)
    return said


def check(program: Program, seeds: Iterable[int]) -> tuple[Truth, Said, list[str]]:
    """Play a program under some schedules and compare what the analysis says of each with brute force.

    Returns:
        What brute force knows, what the analysis says of the first run, and where they contradict each other.

    """
    truth = explore(program)
    every: list[Said] = []
    mistakes: list[str] = []
    for seed in seeds:
        trace, final = played(program, seed)
        said = said_of(analyse(trace))
        every.append(said)
        lengths = tuple(map(len, program.actors))
        if said.hangs != (final.positions != lengths):
            mistakes.append("the run's own end is not said right")
        mistakes += _against(said, truth)
    first = every[0]
    if not all(same(said, first) for said in every):
        mistakes.append("what is said depends on the run")
    return truth, first, list(dict.fromkeys(mistakes))


def same(one: Said, other: Said) -> bool:
    """Say whether two analyses of one program agree: past a flag, or an open result, only that there is one counts."""
    return one.exact == other.exact and (not one.exact or one.races == other.races)


def _against(said: Said, truth: Truth) -> list[str]:
    if not said.exact:
        return []
    mistakes = [f"missed race {sorted(pair)}" for pair in truth.races - said.races]
    mistakes += [f"false race {sorted(pair)}" for pair in said.races - truth.races]
    if truth.leaves:
        mistakes.append("missed overflow")
    if truth.ends > 1:
        mistakes.append("unsound: nothing is flagged, but runs end elsewhere, or leave other values in cells")
    if said.hangs != truth.hangs:
        mistakes.append(f"unsound: hangs: said {said.hangs}, brute force says {truth.hangs}")
    if said.proved and len(truth.finals) > 1:
        mistakes.append(f"unsound: proved, but there are {len(truth.finals)} final states")
    return mistakes


def proved_by_cases(program: Program) -> bool:
    """Say whether a run for each of who can arrive last decides together."""
    trace, end = played(program, 0)
    streams = Streams(trace)
    meetings = meetings_of(streams)
    every = [sorted(place[0] for place in meeting.places) for meeting in meetings]
    keys = [(meeting.slot, meeting.amount) for meeting in meetings]
    # Signals are numbered rank by rank, the toy's cells one by one.
    cells = [program_cell(program, streams.histories[slot].cell.signal) for slot, _ in keys]
    for chosen in product(*every):
        lasts: Lasts = {}
        for (_, amount), cell, actor in zip(keys, cells, chosen, strict=True):
            lasts.setdefault((cell, amount), []).append(actor)
        run = played_with(program, 0, lasts)
        if run is None or _end(run[1]) != _end(end) or not analyse(run[0], same_last=True).clean:
            return False
        found = {
            (each.slot, each.amount, each.last[0]): sorted(p[0] for p in each.places)
            for each in meetings_of(Streams(run[0]))
        }
        if found != {(*key, actor): sorted(members) for key, actor, members in zip(keys, chosen, every, strict=True)}:
            return False
    return True


def program_cell(program: Program, signal: str) -> int:
    """Return the number of the cell that is kept in this signal."""
    return [f"cell{number}" for number in range(len(program.cells))].index(signal)


def _end(state: State) -> tuple[object, ...]:
    return state.positions, state.memory, state.cells, state.got


def check_cases(program: Program) -> tuple[bool, bool, bool]:
    """Say whether cases prove a program, whether brute force does so, and whether anybody was the last there at all."""
    truth = explore(program)
    unique = len({_end(state) for state in truth.finals}) == 1 and not truth.races and not truth.leaves
    return proved_by_cases(program), unique, any(any(state.last) for state in truth.finals)


def classes(program: Program, truth: Truth, said: Said, mistakes: Sequence[str]) -> list[str]:
    """Name what a checked program is."""
    alike = len(truth.finals) == 1
    complete = said.proved and not truth.hangs
    return ["programs"] + [
        name
        for name, holds in {
            "racy": truth.races,
            "hangs": truth.hangs,
            "proved": said.proved,
            "midstream": complete and any(op.blocks for ops in program.actors for op in ops[1:-1]),
            "open": not said.exact,
            "needless": not said.exact and alike and not truth.races,
            "mistaken": mistakes,
        }.items()
        if holds
    ]


def campaign(numbers: Iterable[int], families: Sequence[str], of: Callable[[str, int], Program], seeds: Sequence[int]
) -> tuple[dict[str, Counter[str]], list[str]]:  # fmt: skip
    """Check programs; return the counts by family, and the first few mistakes with shrunk programs."""
    counts: dict[str, Counter[str]] = {family: Counter() for family in families}
    wrong: list[str] = []
    for number in numbers:
        for family in families:
            program = of(family, number)
            truth, said, mistakes = check(program, seeds)
            counts[family].update(classes(program, truth, said, mistakes))
            if mistakes and len(wrong) < 5:
                small = smallest(program, lambda each: bool(check(each, seeds)[2]))
                wrong.append(f"{small}: {'; '.join(check(small, seeds)[2])}")
    return counts, wrong


def smallest(program: Program, is_wrong: Callable[[Program], bool]) -> Program:
    """Drop operations for as long as the program stays wrong."""
    for actor, ops in enumerate(program.actors):
        for at in range(len(ops)):
            actors = (*program.actors[:actor], ops[:at] + ops[at + 1 :], *program.actors[actor + 1 :])
            smaller = replace(program, actors=actors)
            if is_wrong(smaller):
                return smallest(smaller, is_wrong)
    return program


def table(counts: dict[str, Counter[str]]) -> str:
    """Write the counts, a family a line."""
    columns = ("programs", "racy", "hangs", "proved", "midstream", "open", "needless", "mistaken")
    lines = [f"{'family':24}" + "".join(f"{column:>11}" for column in columns)]
    lines += [
        f"{family:24}" + "".join(f"{count[column]:>11}" for column in columns) for family, count in counts.items()
    ]
    return "\n".join(lines)
