"""Forged certificates of toy programs: honest ones by force, for any run, and what can be changed in them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from late_brute import Truth, explore
from late_rules import FETCH, LAND, SIGNAL, STEP
from late_runs import MEMORIES
from late_toy import (
    ADD,
    COMPARING,
    COPIES,
    FENCE,
    JOIN,
    LATE_COPY,
    LOAD,
    NOTIFY,
    QUIET,
    RANK_QUIET,
    SET,
    START,
    STORE,
    SYMBOLS,
    SYNC,
    TAKE,
    TEST,
    WRITING,
    Op,
    Program,
)  # fmt: skip

from asyncsim.analysis.certificate import certificate_lines
from asyncsim.analysis.order import order_of
from asyncsim.analysis.streams import Streams
from asyncsim.certify import RejectedError, certify

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from late_rules import Step

    from asyncsim.trace.event import Trace

Line = dict[str, Any]
HOWS = dict(zip(SYMBOLS, ("Eq", "Ne", "Gt", "Ge", "Lt", "Le"), strict=True))
LIMIT = 100_000
"""States that are looked at before a program counts as too large to be judged."""


def forced(trace: Trace) -> list[Line]:
    """Return the lines that would be the certificate of a run, clean or not."""
    streams = Streams(trace)
    return [json.loads(line) for line in certificate_lines(streams, *order_of(streams))]


def accepts(lines: list[Line]) -> bool:
    """Say whether the checker takes these lines."""
    try:
        certify(json.dumps(line) for line in lines)
    except RejectedError:
        return False
    return True


@lru_cache(maxsize=4096)
def truth_of(text: str, program: Program, memory: str) -> Truth:
    """Return what brute force knows; `text` stands for the program, which has no hash of its own.

    Raises:
        TooManyStatesError: the program is too large.

    """
    del text
    return explore(program, MEMORIES[memory], limit=LIMIT)


def is_clean(program: Program, memory: str) -> bool:
    """Say whether no two conflicting steps can meet, and all runs complete with one result."""
    truth = truth_of(str(program), program, memory)
    return len(truth.finals) == 1 and not truth.races and not truth.deadlocks


# A program as the first lines of a certificate.


def written(program: Program, memory: str) -> list[Line]:
    """Write header and streams of a program."""
    owners = zip(program.cells, program.starts, strict=True)
    header = {
        "format": "asyncsim certificate 1", "kernel": "toy", "source": "", "ranks": len(program.ranks), "calls": 1,
        "memory": memory, "seed": 0, "windows": [[rank, 8, True] for rank in range(len(program.ranks))],
        "cells": [[owner, start, -(1 << 31), (1 << 31) - 1] for owner, start in owners],
    }  # fmt: skip
    streams = []
    for rank, stream in program.actors:
        count: Counter[str] = Counter()
        ops = []
        for op in program.ranks[rank][stream]:
            ops.append(_op(program, op, rank, count, late=memory != "sc"))
            count[op.kind] += 1
        streams.append({"actor": f"{rank}.{stream}", "rank": rank, "ops": ops})
    return [header, *streams]


def _op(program: Program, op: Op, rank: int, count: Counter[str], *, late: bool) -> Line:
    change: Line = {}
    if op.change is not None:
        how = "Set" if op.change.how == SET else "AtomicAdd"
        change = {"cell": op.change.cell, "how": how, "amount": op.change.value}
    if op.kind in (LOAD, *WRITING):
        return _data_op(program, op, change, rank, late=late)
    if op.kind in COMPARING:
        kind = "test" if op.kind == TEST else "wait"
        return {"kind": kind, "cell": op.place, "how": HOWS[op.how], "amount": op.value, "consume": op.kind == TAKE}
    if op.kind == NOTIFY:
        order = {"relaxed": True, "link": "stores"} if op.stores else {"relaxed": op.relaxed}
        return {"kind": "notify", **change, **order}
    if op.kind == RANK_QUIET:
        return {"kind": "quiet", "link": "rank"}
    if op.kind in (START, JOIN):
        return {"kind": op.kind, "link": f"{rank}.{op.place}"}
    more: Line = {"link": f"{rank}#{count[SYNC]}", "amount": len(program.ranks[rank])} if op.kind == SYNC else {}
    return {"kind": op.kind, **more, **({"amount": op.value} if op.kind == QUIET else {})}


def _data_op(program: Program, op: Op, change: Line, rank: int, *, late: bool) -> Line:
    def access(element: int, mode: str) -> list[Any]:
        return [program.elements[element], mode, [8 * element, 8 * element + 8]]

    if op.kind == LOAD:
        return {"kind": "load", "access": [access(op.place, "read")]}
    accesses = [access(op.source, "read")] if op.kind in COPIES else []
    accesses.append(access(op.place, "add" if op.kind == ADD else "write"))
    copies = "get" if program.elements[op.place] == rank else "put"
    kind = "put_signal" if change else "put" if op.put else copies if op.kind in COPIES else "store"
    return {"kind": kind, "access": accesses, **change, "late": late and op.kind == LATE_COPY}


def places(program: Program, memory: str) -> dict[Step, tuple[int, int]]:
    """Return thread and index of every step and landing."""
    found: dict[Step, tuple[int, int]] = {}
    wire = len(program.streams)
    for actor, ops in enumerate(program.streams):
        for index, op in enumerate(ops):
            found[actor, index, STEP] = (actor, index)
            if memory == "sc":
                continue
            if op.kind in WRITING:
                fetched = op.kind == LATE_COPY
                if fetched:
                    found[actor, index, FETCH] = (wire, 0)
                found[actor, index, LAND] = (wire, int(fetched))
                wire += 1
            if op.change is not None:
                found[actor, index, SIGNAL] = (wire, 0)
                wire += 1
    return found


# Forging.


@dataclass(frozen=True, slots=True)
class Forgery:
    """A certificate under change: the program it is of, and the lines after the streams."""

    program: Program
    memory: str
    rest: list[Line]

    @property
    def lines(self) -> list[Line]:
        """The whole certificate."""
        return [*written(self.program, self.memory), *self.rest]

    @classmethod
    def of(cls, program: Program, memory: str, trace: Trace) -> Forgery:
        """Start with what the run gives by force; if it hangs, with the missing steps at its end."""
        rest = [line for line in forced(trace) if not {"format", "ops"} & line.keys()]
        run = next(line["run"] for line in rest if "run" in line)
        done: Counter[int] = Counter()
        for thread, count in run:
            done[thread] += count
        run += [[actor, len(ops) - done[actor]] for actor, ops in enumerate(program.streams) if len(ops) > done[actor]]
        return cls(program, memory, rest)

    def changed(self, rng: random.Random) -> Forgery:
        """Change something."""
        copy = replace(self, rest=json.loads(json.dumps(self.rest)))
        changes: list[Callable[[Forgery, random.Random], Forgery | None]] = [
            _move_cut, _move_cut, _onto_a_race, _onto_a_race, _hold_another, _drop, _epochs, _ways, _swap_run,
            _change_op, _change_op,
        ]  # fmt: skip
        return rng.choice(changes)(copy, rng) or copy


def _lines(forgery: Forgery, kind: str) -> list[Line]:
    return [line for line in forgery.rest if kind in line]


def _move_cut(forgery: Forgery, rng: random.Random) -> None:
    """Lower or raise entries of a cut."""
    for line in rng.sample(_lines(forgery, "cut"), min(1, len(_lines(forgery, "cut")))):
        for _ in range(rng.choice((1, 1, 2))):
            at = rng.randrange(len(line["cut"]))
            line["cut"][at] = max(0, line["cut"][at] + rng.choice((-3, -2, -1, -1, -1, 1)))


def _onto_a_race(forgery: Forgery, rng: random.Random) -> None:
    """Claim of two steps that meet that one keeps out the other."""
    races = sorted(map(sorted, truth_of(str(forgery.program), forgery.program, forgery.memory).races))
    if not races:
        return _move_cut(forgery, rng)
    known = places(forgery.program, forgery.memory)
    for pair in races if rng.random() < 0.5 else [rng.choice(races)]:
        x, y = rng.sample(pair, 2)
        held = list(known[x])
        cut = [len(ops) for ops in forgery.program.streams]
        for line in _lines(forgery, "cut"):
            if held in line["hold"]:
                cut = list(line["cut"])
                line["hold"].remove(held)
        cut[x[0]] = min(cut[x[0]], x[1] + (x[2] != STEP))
        cut[y[0]] = min(cut[y[0]], y[1])
        forgery.rest.append({"hold": [held], "cut": cut})
    return None


def _hold_another(forgery: Forgery, rng: random.Random) -> None:
    """Let a cut hold something else."""
    cuts = [line for line in _lines(forgery, "cut") if line["hold"]]
    if cuts:
        line = rng.choice(cuts)
        known = sorted(places(forgery.program, forgery.memory).values())
        line["hold"][rng.randrange(len(line["hold"]))] = list(rng.choice(known))


def _drop(forgery: Forgery, rng: random.Random) -> None:
    """Leave out a cut, or what a wait may do."""
    lines = _lines(forgery, "cut") + _lines(forgery, "epochs") + _lines(forgery, "way")
    if lines:
        forgery.rest.remove(rng.choice(lines))


def _epochs(forgery: Forgery, rng: random.Random) -> None:
    """Let a wait pass elsewhere."""
    lines = _lines(forgery, "epochs")
    if not lines:
        return _move_cut(forgery, rng)
    rng.choice(lines)["epochs"] = sorted(rng.sample(range(4), rng.randrange(3)))
    return None


def _ways(forgery: Forgery, rng: random.Random) -> None:
    """Let a wait be read in another way."""
    waits = [
        [actor, at] for actor, ops in enumerate(forgery.program.streams) for at, op in enumerate(ops)
        if op.kind in COMPARING
    ]  # fmt: skip
    if not waits:
        return _move_cut(forgery, rng)
    wait = rng.choice(waits)
    forgery.rest[:] = [line for line in forgery.rest if "way" not in line or line["wait"] != wait]
    forgery.rest.insert(0, {"wait": wait, "way": rng.choice(("down", "always", "always"))})
    return None


def _swap_run(forgery: Forgery, rng: random.Random) -> None:
    """Swap two stretches of the run."""
    run = _lines(forgery, "run")[0]["run"]
    if len(run) > 1:
        at = rng.randrange(len(run) - 1)
        run[at], run[at + 1] = run[at + 1], run[at]


def _change_op(forgery: Forgery, rng: random.Random) -> Forgery:
    """Let the certificate be of another program."""
    program = forgery.program
    actor = rng.choice([number for number, ops in enumerate(program.streams) if ops])
    rank, stream = program.actors[actor]
    ops = list(program.streams[actor])
    at = rng.randrange(len(ops))
    dice = rng.random()
    if dice < 0.25 and at + 1 < len(ops):
        ops[at], ops[at + 1] = ops[at + 1], ops[at]
    elif dice < 0.4 and ops[at].kind not in (START, JOIN, SYNC):
        kind = rng.choice((FENCE, LOAD, QUIET))
        ops[at] = Op(kind, ops[at].place if ops[at].on_data else 0) if program.elements else ops[at]
    else:
        ops[at] = _other(program, ops[at], rng)
    streams = tuple(tuple(ops) if number == stream else kept for number, kept in enumerate(program.ranks[rank]))
    ranks = tuple(streams if number == rank else kept for number, kept in enumerate(program.ranks))
    return replace(forgery, program=replace(program, ranks=ranks))


def _other(program: Program, op: Op, rng: random.Random) -> Op:
    if op.kind in COMPARING and rng.random() < 0.7:
        return replace(op, value=op.value + rng.choice((-1, 1)))
    if op.kind in COMPARING:
        return replace(op, how=rng.choice(SYMBOLS))
    if op.kind == NOTIFY and op.change is not None:
        change = op.change
        return rng.choice((
            replace(op, relaxed=not op.relaxed),
            replace(op, change=replace(change, value=change.value + rng.choice((-2, -1, 1)))),
            replace(op, change=replace(change, how=NOTIFY if change.how == SET else SET)),
            replace(op, change=replace(change, cell=rng.randrange(len(program.cells)))),
        ))  # fmt: skip
    if op.kind in (LOAD, STORE):
        return replace(op, place=rng.randrange(len(program.elements)))
    return op
