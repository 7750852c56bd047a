"""Forged certificates of toy programs of any synchronising operations."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from forging import accepts
from sync_brute import explore
from sync_programs import another
from sync_runs import played, unordered

from asyncsim.analysis.certificate import certificate_lines, operations_lines
from asyncsim.analysis.order import order_of
from asyncsim.analysis.streams import Streams

if TYPE_CHECKING:
    import random

    from sync_toy import Program

__all__ = ["Forgery", "accepts", "is_clean"]

Line = dict[str, Any]


@lru_cache(maxsize=4096)
def _is_clean(text: str, program: Program) -> bool:
    del text
    truth = explore(program)
    return len(truth.finals) == 1 and not (truth.races or truth.hangs or truth.leaves)


def is_clean(program: Program) -> bool:
    """Say whether no two accesses race, and all runs complete with one result."""
    return _is_clean(str(program), program)


@dataclass(frozen=True, slots=True)
class Forgery:
    """A certificate under change: the program it is of, and the lines after the streams."""

    program: Program
    rest: list[Line]

    @property
    def lines(self) -> list[Line]:
        """The whole certificate: what is said of the program first, in the order in which it begins."""
        return [*written(self.program), *self.rest]

    @classmethod
    def of(cls, program: Program, seed: int) -> Forgery:
        """Start with what a run gives by force; if it hangs, with the missing steps at its end."""
        trace, _ = played(program, seed)
        streams = Streams(trace)
        every = [json.loads(line) for line in certificate_lines(streams, *order_of(streams))]
        rest = [line for line in every if not {"format", "ops"} & line.keys()]
        run = next(line["run"] for line in rest if "run" in line)
        done: Counter[int] = Counter()
        for thread, count in run:
            done[thread] += count
        run += [[actor, len(ops) - done[actor]] for actor, ops in enumerate(program.actors) if len(ops) > done[actor]]
        return cls(program, rest)

    def changed(self, rng: random.Random) -> Forgery:
        """Change something."""
        copy = replace(self, rest=json.loads(json.dumps(self.rest)))
        changes = (_move_cut, _move_cut, _hold_another, _claim, _claim, _drop, _way, _epochs, _swap_run)
        if rng.random() < 0.25:
            return replace(copy, program=another(self.program, rng))
        rng.choice(changes)(copy, rng)
        return copy


def _lines(forgery: Forgery, kind: str) -> list[Line]:
    return [line for line in forgery.rest if kind in line]


def _move_cut(forgery: Forgery, rng: random.Random) -> None:
    for line in rng.sample(_lines(forgery, "cut"), min(1, len(_lines(forgery, "cut")))):
        at = rng.randrange(len(line["cut"]))
        line["cut"][at] = max(0, line["cut"][at] + rng.choice((-2, -1, -1, 1)))


def _hold_another(forgery: Forgery, rng: random.Random) -> None:
    lines = [line for line in _lines(forgery, "cut") if line["hold"]]
    if lines:
        held = rng.choice(lines)["hold"]
        held[rng.randrange(len(held))] = rng.choice(_places(forgery.program))


def _claim(forgery: Forgery, rng: random.Random) -> None:
    """Claim of some operation that it keeps out what comes after some place."""
    place = rng.choice(_places(forgery.program))
    for line in _lines(forgery, "cut"):
        line["hold"] = [held for held in line["hold"] if held != place]
    cut = [rng.choice((len(ops), rng.randrange(len(ops) + 1))) for ops in forgery.program.actors]
    cut[place[0]] = min(cut[place[0]], place[1])
    forgery.rest.append({"hold": [place], "cut": cut})


def _drop(forgery: Forgery, rng: random.Random) -> None:
    lines = [line for line in forgery.rest if "run" not in line]
    if lines:
        forgery.rest.remove(rng.choice(lines))


def _way(forgery: Forgery, rng: random.Random) -> None:
    place = rng.choice(_places(forgery.program))
    forgery.rest[:] = [line for line in forgery.rest if "way" not in line or line["wait"] != place]
    forgery.rest.insert(0, {"wait": place, "way": rng.choice(("down", "always", "always"))})


def _epochs(forgery: Forgery, rng: random.Random) -> None:
    for line in _lines(forgery, "epochs"):
        if rng.random() < 0.5:
            line["epochs"] = sorted(rng.sample(range(4), rng.randrange(3)))


def _swap_run(forgery: Forgery, rng: random.Random) -> None:
    run = _lines(forgery, "run")[0]["run"]
    at = rng.randrange(max(len(run) - 1, 1))
    run[at : at + 2] = run[at : at + 2][::-1]


def _places(program: Program) -> list[list[int]]:
    return [[actor, at] for actor, ops in enumerate(program.actors) for at in range(len(ops))]


def written(program: Program) -> list[Line]:
    """Return the header and the streams of a program's certificate, whether or not any run gets to their ends."""
    lines: list[Line] = json.loads(json.dumps(operations_lines(unordered(program))))
    return lines
