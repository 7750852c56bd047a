"""The law of several in one await: the verdict, what is found and how many pairs are those of the loop."""

from __future__ import annotations

from functools import partial
from itertools import groupby

import programs
import pytest
from brute import COMPARE
from several import WRITTEN, exchange, hear, tell
from toy import NOTIFY, SET, TAKE, WAIT

from asyncsim import check, kernel


def told(report):
    """Return what a report says, but for places of files and tokens."""
    found = [
        (f.kind, f.hazard, f.scope, f.window, f.pairs, f.harmful, [(s.actor, s.call, s.op, s.region) for s in f.sides])
        for f in report.findings
    ]
    return report.verdict, found, report.steps, report.later_calls


@pytest.mark.parametrize("name", WRITTEN)
def test_the_verdict_is_that_of_the_loop(name):
    verdicts = {}
    largest = 5 if name in ("right", "no second barrier") else 3
    for number, ranks in enumerate(range(1, largest + 1)):
        memory = ("sc", "nic", "sc", "ldst", "sc")[number]
        engine = ("trio", "direct")[number % 2]
        judge = partial(check, ranks=ranks, memory=memory, budget=0, samples=4, shrinking=0, engine=engine)
        one, loop = (told(judge(exchange(several=several, **WRITTEN[name]))) for several in (True, False))
        assert one == loop
        verdicts[ranks] = one[0]
    assert verdicts[1] == "PROVED"
    right = name.startswith("right") or name == "relaxed"
    assert verdicts[3] == ("PROVED" if right else "REFUTED")


# Random programs, with whatever can be put together put together.


def put_together(program, several):
    """Make a kernel of a program: equal notifies, and waits, that come one after the other are handed over together."""

    def alike(op):
        return (op.kind, op.value) if op.kind in (NOTIFY, SET) else op.kind

    async def body(rank, data, *cells):
        loaded = []
        ops = program.actors[rank.id]
        for kind, group in groupby(enumerate(ops), lambda pair: alike(pair[1])):
            part = list(group)
            at = [cells[op.place].at(program.cells[op.place])[0] for _, op in part if not op.on_data]
            if isinstance(kind, tuple):
                how = "AtomicAdd" if kind[0] == NOTIFY else "Set"
                await tell(rank, at, kind[1], several=several, op=how)
            elif kind in (WAIT, TAKE):
                conditions = [COMPARE[op.how](cell, op.value) for cell, (_, op) in zip(at, part, strict=True)]
                await hear(rank, conditions, several=several, consume=kind == TAKE)
            else:
                for index, op in part:
                    if op.on_data:
                        await programs._touch(rank, data, op, program, rank.call * len(ops) + index, loaded)
                    else:
                        await programs._signal(rank, cells[op.place], op, program, loaded)
        return loaded

    return kernel(memory=programs.kernel_of(program).memory)(body)


@pytest.mark.parametrize("family", programs.FAMILIES)
def test_the_verdict_on_random_programs_is_that_of_the_loop(family):
    for number in range(4):
        program = programs.program_number(family, number)
        judge = partial(check, ranks=len(program.actors), calls=program.calls, budget=300, samples=1, shrinking=0)
        one, loop = (judge(put_together(program, several), engine="direct") for several in (True, False))
        assert one.verdict == loop.verdict, program
        assert one.steps == loop.steps or loop.refuted
