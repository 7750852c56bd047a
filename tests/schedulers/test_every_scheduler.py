"""The law of correct kernels: whoever drives them, nothing is ever found that `explore` would report.

Every shipped kernel that is right, the repairs of the field corpus where their mistake shows, under every
scheduler: 5 schedules each in an ordinary run, 200 with ``--thorough``. One that throws no dice makes one.
"""

from itertools import islice

import pytest

from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.record.locate import all_kernels
from asyncsim.checking.search.sampler import Sampling, seeded_plan
from asyncsim.checking.search.witness_writer import WitnessWriter
from asyncsim.machine.case import Case
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.table import SCHEDULERS
from kernels import reduce_scatter
from kernels.field import CASES

ORDINARY, THOROUGH = 5, 200
RANKS = 3
RULE = "hold rank 0 before its wait until rank 1 has notified"
TEXTS = {name: (name,) for name in SCHEDULERS} | {
    "starve": tuple(f"starve:rank={rank}" for rank in range(RANKS)),
    "script": (f"script:rules={RULE},base=pct:depth=3",),
}
"""What each scheduler is asked for; of those that starve a rank, one for each."""

REPAIRS = {case.fixed.ref for case in CASES}
RIGHT = {
    name: (kernel, RANKS, 2, "sc")
    for name, kernel in all_kernels().items()
    if not kernel.finds and kernel.ref not in REPAIRS
} | {f"{case.number}:fixed": (case.fixed, case.ranks, case.calls, case.memory) for case in CASES}
"""Kernel, P, calls and memory model."""
LATE_ONLY = {"field.f27_flag_overtakes_data:fixed_by_fence": "ldst"}
"""Further repairs whose mistake shows only where writes land late."""


async def findings(case, texts, runs):
    """Return what `explore` reports of these schedulers."""
    judge = Judge(case)
    fair = await simulate.aio(case, Fifo())
    judge.set_reference(fair)
    found = []
    for text in texts:
        # A scheduler without dice has the same text, and makes the same run, each time.
        plan = dict.fromkeys(islice(seeded_plan(text, 0, len(fair.choices)), runs))
        sampling = Sampling(case, judge, WitnessWriter(case, None))
        await sampling.run(iter(plan), len(plan))
        assert sampling.tally.done == len(plan)
        found += sampling.tally.findings()
    return found


@pytest.mark.parametrize("name", RIGHT)
async def test_no_scheduler_finds_anything_in_a_correct_kernel(pytestconfig, name):
    kernel, ranks, calls, memory = RIGHT[name]
    case = Case(kernel, ranks, calls, LATE_ONLY.get(name, memory))
    texts = [text for texts in TEXTS.values() for text in texts if text not in TEXTS["starve"][ranks:]]
    assert await findings(case, texts, THOROUGH if pytestconfig.getoption("--thorough") else ORDINARY) == []


def test_every_scheduler_takes_part():
    assert list(TEXTS) == list(SCHEDULERS)
    assert len(RIGHT) >= len(CASES) + 20


@pytest.mark.parametrize("name", SCHEDULERS)
async def test_what_is_wrong_in_every_schedule_is_found_by_every_scheduler(name):
    found = await findings(Case(reduce_scatter.zero_seed, RANKS), TEXTS[name][:1], 2)
    assert {finding.kind for finding in found} == {"wrong-result"}


async def test_schedulers_that_throw_dice_find_a_race():
    for name in ("random", "pct", "pos", "surw", "preempt"):
        found = await findings(Case(reduce_scatter.whole_window_in_place, RANKS, 1), TEXTS[name], 20)
        assert {finding.kind for finding in found} == {"wrong-result"}
