"""A run of a kind of operation that asyncsim does not have: started by test_kinds.py, beside a copy that has its row.

Prints what it saw as JSON.
"""

import json
from pathlib import Path
from types import coroutine

import numpy as np
from click.testing import CliRunner
from exhaust import exhaust

import asyncsim
from asyncsim import Case, Fifo, MisuseError, Set, Signal, Window, check, kernel, simulate
from asyncsim.analysis.analyse import analyse
from asyncsim.analysis.certificate import certificate
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.cli.main import main
from asyncsim.schedulers.table import make
from asyncsim.trace.jsonl import read_trace, write_trace
from asyncsim.trace.op import Op
from asyncsim.trace.schema import schema


@coroutine
def exchange(rank, cell, value):
    """Put a value into a cell, and return what it held."""
    return (yield Op(rank.actor, "exchange", (), cell, Set, value, call=rank.call))


out = Window("out", (1,), np.int32)
turn = Signal("turn", (1,))
told = Signal("told", (1,), self_cleaning=True)


@kernel(memory=[out, turn, told])
async def ordered(rank, out, turn, told):
    """Rank 0 exchanges and stores; then rank 1 exchanges and loads."""
    peer = 1 - rank.id
    if rank.id == 1:
        await rank.wait(told[0] >= 1, consume=True)
        seen = await exchange(rank, turn.at(0)[0], 7)
        read = int(await rank.load(out.at(0)[0]))
        await rank.notify(told.at(peer)[0], 1)
        return [seen, read]
    seen = await exchange(rank, turn[0], 5)
    await rank.store(out[0], seen + 1)
    await rank.notify(told.at(peer)[0], 1)
    await rank.wait(told[0] >= 1, consume=True)
    return [seen, await rank.test(turn[0] == 7)]


@kernel(memory=[turn])
async def unordered(rank, turn):
    """Both exchange, in any order."""
    return [await exchange(rank, turn.at(0)[0], rank.id + 5)]


def seen_of(events):
    """Return the exchanges as text, with what their cells held before them, which they return."""
    return [[str(event.op), event.have] for event in events if event.op.kind == "exchange"]


def refusal(function, *arguments):
    """Return what a call is refused with."""
    try:
        function(*arguments)
    except MisuseError as error:
        return str(error)
    return None


assert Path(asyncsim.__file__).parents[1] == Path.cwd(), asyncsim.__file__
run = simulate(Case(ordered, 2), Fifo(), record="fifo")
write_trace(run.trace, "ordered.jsonl")
read = read_trace("ordered.jsonl")
write_trace(read, "again.jsonl")
rule = make("script:rules=hold rank 0 before its exchange until rank 1 has exchanged")
held = simulate(Case(unordered, 2), rule, record="held")
lines = [json.loads(line) for line in Path("ordered.jsonl").read_text("utf-8").splitlines()]
judge = Judge(Case(unordered, 2, 1))
judge.set_reference(simulate(judge.case, Fifo()))
searched = exhaust(judge.case, budget=100, judge=judge)
results = {
    "outputs": run.outputs,
    "ran": seen_of(run.trace.events),
    "read": seen_of(read.events),
    "same file": Path("ordered.jsonl").read_bytes() == Path("again.jsonl").read_bytes(),
    "lines": lines,
    "schema": schema(),
    "clean": analyse(run.trace).clean,
    "found": [finding.kind for finding in analyse(simulate(Case(unordered, 2), Fifo(), record="x").trace).findings],
    "verdicts": {
        memory: [check(each, ranks=2, memory=memory).verdict for each in (ordered, unordered)]
        for memory in ("sc", "ldst", "nic")
    },
    "search": [searched.complete, searched.inequivalent, len(searched.results)],
    "certificate": refusal(certificate, run.trace, analyse(run.trace)),
    "shown": CliRunner().invoke(main, ["show", "ordered.jsonl"]).output,
    "held": seen_of(held.trace.events),
}
print(json.dumps(results, default=str))  # noqa: T201 - to the test
