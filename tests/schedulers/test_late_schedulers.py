"""Late memory by its name, and schedulers that choose among its wires.

Wires are called by their operation: "0>2" carries what operation 2 of rank 0 left, "0>2s" its signal.
"""

from __future__ import annotations

import numpy as np
import pytest
from played import CELL, KNOWN

from asyncsim import Case, MisuseError, kernel, simulate
from asyncsim.checking.witness.shrink import segments_of, shrink
from asyncsim.schedulers.replay import Replay
from asyncsim.schedulers.script import Script
from asyncsim.schedulers.table import make
from asyncsim.trace.late import model_of
from kernels.reduce_scatter import builtin, no_post_barrier


def test_models_and_atoms_are_checked():
    assert model_of("nic:atom=4").atom == 4
    for text in ("weird", "sc:atom=4", "nic:atom=0", "nic:atom=x", "nic:atom"):
        with pytest.raises(MisuseError, match="memory="):
            Case(builtin, memory=text)


@pytest.mark.parametrize(("model", "calls"), [("ldst", 2), ("ldst:atom=16", 2), ("nic", 1)])
@pytest.mark.parametrize(
    "text", ["fifo", "eager", "random", "starve:rank=1", "pct", "pos", "delay", "preempt:k=3", "surw"]
)
def test_a_correct_kernel_stays_correct_whoever_chooses(text, model, calls):
    case = Case(builtin, 3, calls, memory=model)
    scheduler = make(text, seed=3)
    for _ in range(3):
        run = simulate(case, scheduler)
        assert run.ending == "complete"
        for ys, goldens in zip(run.outputs, case.goldens, strict=True):
            np.testing.assert_allclose(ys, goldens, rtol=1e-5)


def test_to_starve_a_rank_is_to_starve_its_streams_and_wires():
    async def beside(rank, row):
        await rank.store(row.at(1 - rank.id)[0], 2)

    async def program(rank, row):
        stream = await rank.start(beside, row)
        await rank.store(row.at(1 - rank.id)[1], 1)
        await rank.join(stream)

    case = Case(kernel(memory=[KNOWN])(program), 2, 1, memory="nic")
    ranks = [int(name[0]) for name in simulate(case, make("starve:rank=0")).choices]
    assert ranks == [1] * 6 + [0] * 6


def test_a_script_can_hold_a_landing_and_what_touches_no_memory():
    async def program(rank, row):
        if rank.id == 0:
            await rank.store(row.at(1)[0], 7)
            await rank.fence()
            return None
        return int(await rank.load(row[0]))

    case = Case(kernel(memory=[KNOWN])(program), 2, 1, memory="nic")
    held = Script("hold rank 0 before its land to row@1 until rank 1 has loaded of row")
    assert simulate(case, held).choices == ["0", "1", "0>0", "0"]
    landed = Script("hold rank 1 before its load until rank 0 has landed; hold rank 0 before its land until "
                    "rank 0 has done its fence")  # fmt: skip
    assert simulate(case, landed).choices == ["0", "0", "0>0", "1"]
    assert not held.released + landed.released


def test_a_script_knows_both_places_of_a_put_with_signal():
    async def program(rank, row, cell):
        if rank.id == 0:
            await rank.put_signal(row.at(1)[0], 1, cell.at(1)[0])
        else:
            await rank.fence()

    case = Case(kernel(memory=[KNOWN, CELL])(program), 2, 1)
    for rule in ("put to row@1", "notified on cell@1", "done its put_signal"):
        script = Script(f"hold rank 1 before its fence until rank 0 has {rule}", make("starve:rank=0"))
        assert simulate(case, script).choices == ["0", "1"]
        assert str(script).split("base")[0].strip(",") == str(make(str(script))).split("base")[0].strip(",")


def test_a_failing_schedule_with_wires_shrinks():
    case = Case(no_post_barrier, 2, 2, memory="nic")

    def fails(run):
        pairs = zip(sum(run.outputs, []), sum(case.goldens, []), strict=True)  # noqa: RUF017 - two short lists
        return run.ending == "complete" and not all(np.allclose(y, golden) for y, golden in pairs)

    scheduler = make("pct:depth=2", seed=1)
    long = next(run.choices for run in (simulate(case, scheduler) for _ in range(300)) if fails(run))
    short = shrink(case, long, fails, budget=150)
    assert len(segments_of(short)) <= len(segments_of(long))
    assert fails(simulate(case, Replay(short)))
