"""The laws of operations with values, waits at peers, and waits that change their cell, by brute force.

The machine under ``sc`` does what an oracle says that shares no code with it; exhaustive exploration reaches every end,
under every memory model; both engines, a replay and a trace from a file tell the same run.
"""

from __future__ import annotations

import io
import random
from functools import partial

import numpy as np
import pytest
import trio
from exhaust import exhaust
from naive import end_of, every_end
from valued import case_of, draw, ends

from asyncsim.analysis.analyse import analyse
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.machine.direct import drive
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.random import Random
from asyncsim.schedulers.replay import Replay
from asyncsim.trace.columns import Columns
from asyncsim.trace.jsonl import read_trace, write_trace

ORDINARY, THOROUGH = 700, 20_000
BUDGET = 20_000
LIMIT = 1_500
SHOWN = 5


def told(run, programs):
    """Return the end of a run as the oracle writes it."""
    at = [0] * len(programs)
    seen = [[] for _ in programs]
    for event in run.trace.events:
        op = event.op
        if op.actor.wire:
            continue
        kind, *_ = programs[op.actor.rank][at[op.actor.rank]]
        at[op.actor.rank] += 1
        if kind in ("load", "look"):
            seen[op.actor.rank].append(int(np.frombuffer(event.data, op.accesses[0].region.dtype)[0]))
        elif kind == "test":
            seen[op.actor.rank].append(None if event.have is None else eval(f"{event.have} {_sign(op)} {op.amount}"))  # noqa: S307 - of this file
        elif kind in ("atomic", "read", "cas", "value"):
            seen[op.actor.rank].append(event.have)
    data = tuple(int(array[0]) for array in run.windows[:2])
    return tuple(at), tuple(map(tuple, seen)), data


def _sign(op):
    return {"Eq": "==", "Ne": "!=", "Gt": ">", "Ge": ">=", "Lt": "<", "Le": "<="}[op.how]


async def explored(case, told_of):
    """Return whether exhaustive exploration was complete, and what is told of each of its runs."""
    found = set()
    done = await exhaust.aio(case, budget=BUDGET, judge=Judge(case), on_run=lambda run: found.add(told_of(run)))
    return done.complete, found


@pytest.mark.parametrize("words", [False, True], ids=["signals", "words"])
def test_exploration_under_sc_reaches_what_the_oracle_does(words, programs_of):
    async def every():
        wrong = []
        for number in range(programs_of(ORDINARY, THOROUGH)):
            rng = random.Random(f"valued {number}")  # noqa: S311 - not for secrets
            programs = draw(rng, 8, actors=rng.choice((2, 2, 3)), words=words)
            case = case_of(programs, words=words)
            expected = {(at, seen, data) for at, seen, data, _ in ends(programs)}
            complete, found = await explored(case, partial(seen_in, case, programs))
            if not complete or found != expected:
                wrong.append((number, programs, expected ^ found))
            if len(wrong) == SHOWN:
                break
        return wrong

    assert not trio.run(every)


def seen_in(case, programs, run):
    """Return the end of a run that was made without a record."""
    return told(drive(case, Replay(run.choices), record="again"), programs)


def test_what_one_run_proves_of_words_has_one_end(programs_of):
    proved, wrong, total = 0, [], programs_of(2 * ORDINARY, THOROUGH)
    for number in range(total):
        rng = random.Random(f"proved {number}")  # noqa: S311 - not for secrets
        programs = draw(rng, 7, actors=rng.choice((2, 2, 3)), words=True)
        run = simulate(case_of(programs, words=True), Fifo(), record="fifo")
        if analyse(run.trace).clean:
            proved += 1
            wrong += [(number, programs)] * (len(ends(programs)) != 1)
    assert not wrong[:SHOWN]
    assert proved > total // 30


@pytest.mark.parametrize("words", [False, True], ids=["signals", "words"])
@pytest.mark.parametrize("memory", ["ldst", "nic"])
def test_exploration_reaches_every_end_where_writes_land_late(memory, words, programs_of):
    total = programs_of(ORDINARY, THOROUGH) // 4

    async def every():
        wrong, judged = [], 0
        for number in range(total):
            programs = draw(random.Random(f"late {number}"), 6, words=words)  # noqa: S311 - not for secrets
            case = case_of(programs, memory, words=words)
            all_ends = await every_end(case, LIMIT)
            if all_ends is None:
                continue
            judged += 1
            complete, found = await explored(case, end_of)
            if not complete or found != all_ends[0]:
                wrong.append((number, programs, found ^ all_ends[0]))
            if len(wrong) == SHOWN:
                break
        return wrong, judged

    wrong, judged = trio.run(every)
    assert not wrong
    assert judged > total // 4


@pytest.mark.parametrize("words", [False, True], ids=["signals", "words"])
@pytest.mark.parametrize("memory", ["sc", "ldst", "nic"])
def test_engines_replays_and_files_tell_the_same_run(memory, words, programs_of):
    for number in range(programs_of(60, 400)):
        programs = draw(random.Random(f"same {number}"), 9, words=words)  # noqa: S311 - not for secrets
        case = case_of(programs, memory, words=words)
        text = [_text(simulate(case, Random(number), record="same", engine=engine)) for engine in ("trio", "direct")]
        assert text[0] == text[1]
        run = drive(case, Random(number), record="same")
        assert _text(drive(case, Replay(run.choices), record="same")) == text[0]
        read = read_trace(io.StringIO(text[0]))
        assert _written(read) == text[0]
        assert [str(event.op) for event in Columns.of(read.events)] == [str(event.op) for event in read.events]
        assert all(a.op.said == b.op.said for a, b in zip(Columns.of(read.events), read.events, strict=True))


def _text(run):
    return _written(run.trace)


def _written(trace):
    stream = io.StringIO()
    write_trace(trace, stream)
    return stream.getvalue()
