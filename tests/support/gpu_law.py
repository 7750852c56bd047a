"""The law of order and scope: what the analysis says of one run under ``gpu`` against every execution."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpu_brute import explore
from gpu_runs import played

from asyncsim.analysis.analyse import FLAGS, analyse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gpu_brute import Pair, Truth
    from gpu_toy import Program

    from asyncsim.analysis.analyse import Analysis


@dataclass(frozen=True, slots=True)
class Said:
    """What the analysis says, as far as the law speaks of it: races of data, and of scopes; flags and reasons."""

    races: frozenset[Pair]
    scopes: frozenset[Pair]
    judged: bool
    hangs: bool
    clean: bool


def said_of(program: Program, result: Analysis) -> Said:
    """Return what counts of an analysis."""
    number = {f"{rank}.{n + 1}": n for n, (rank, _) in enumerate(program.homes)}
    pairs = {frozenset((number[name], index) for name, index in pair) for pair in result.race_pairs}
    data = {pair for pair in pairs if all(program.actors[a][i].op.data for a, i in pair)}
    kinds = {finding.kind for finding in result.findings}
    judged = result.applies and not kinds & set(FLAGS)
    return Said(frozenset(data), frozenset(pairs - data), judged, "deadlock" in kinds, result.clean)


def judged(program: Program, seed: int = 0) -> Said:
    """Play a program and analyse the run."""
    return said_of(program, analyse(played(program, seed)))


@dataclass(frozen=True, slots=True)
class Checked:
    """A program with what all executions show, what is said, and where the two contradict each other."""

    truth: Truth
    said: Said
    mistakes: tuple[str, ...]
    false: int


def check(program: Program, seed: int = 0) -> Checked | None:
    """Compare what one run says with every execution; None: there are too many."""
    truth = explore(program)
    if truth is None:
        return None
    said = judged(program, seed)
    if not said.judged:
        return Checked(truth, said, (), 0)
    mistakes = [f"missed race {sorted(pair)}" for pair in truth.races - said.races]
    mistakes += [f"missed scope race {sorted(pair)}" for pair in truth.scopes - said.scopes]
    if truth.ends > 1:
        mistakes.append(f"not unique: nothing is flagged, but there are {truth.ends} ends")
    if said.hangs != truth.hangs:
        mistakes.append(f"hangs: said {said.hangs}, all executions say {truth.hangs}")
    if said.clean == bool(said.races or said.scopes):
        mistakes.append("clean and races contradict each other")
    return Checked(truth, said, tuple(mistakes), len(said.races - truth.races) + len(said.scopes - truth.scopes))


def classes(checked: Checked) -> Counter[str]:
    """Count what a checked program is, and its pairs."""
    truth, said = checked.truth, checked.said
    count = Counter(programs=1)
    if not said.judged:
        count["flagged"] = 1
        count["needless"] = int(truth.ends == 1)
        return count
    count["racy"] = int(bool(truth.races or truth.scopes))
    count["clean"] = int(said.clean)
    count["pairs"] = len(truth.races) + len(truth.scopes)
    count["false"] = checked.false
    count["called racy"] = int(not said.clean and not count["racy"])
    count["mistaken"] = len(checked.mistakes)
    return count


def campaign(
    numbers: Iterable[int], kinds: Sequence[tuple[str, str]], of: Callable[[str, str, int], Program]
) -> tuple[dict[tuple[str, str], Counter[str]], list[str]]:
    """Check programs; return the counts by family and mode, and the first few mistakes, shrunk."""
    counts = {kind: Counter[str]() for kind in kinds}
    wrong: list[str] = []
    for number in numbers:
        for kind in kinds:
            program = of(*kind, number)
            checked = check(program)
            if checked is None:
                counts[kind]["too many"] += 1
                continue
            counts[kind] += classes(checked)
            if checked.mistakes and len(wrong) < 5:
                small = smallest(program, lambda each: bool((found := check(each)) and found.mistakes))
                found = check(small)
                wrong.append(f"{small}: {'; '.join(found.mistakes if found else ())}")
    return counts, wrong


def smallest(program: Program, is_wrong: Callable[[Program], bool]) -> Program:
    """Drop operations for as long as the program stays wrong."""
    for actor, steps in enumerate(program.actors):
        for at in range(len(steps)):
            actors = (*program.actors[:actor], steps[:at] + steps[at + 1 :], *program.actors[actor + 1 :])
            smaller = replace(program, actors=actors)
            if is_wrong(smaller):
                return smallest(smaller, is_wrong)
    return program


def table(counts: dict[tuple[str, str], Counter[str]]) -> str:
    """Write the counts, a family and mode a line."""
    columns = (
        "programs",
        "too many",
        "flagged",
        "needless",
        "racy",
        "clean",
        "pairs",
        "false",
        "called racy",
        "mistaken",
    )
    lines = [f"{'':38}" + "".join(f"{column:>12}" for column in columns)]
    lines += [
        f"{', '.join(kind):38}" + "".join(f"{count[column]:>12}" for column in columns)
        for kind, count in counts.items()
    ]
    return "\n".join(lines)
