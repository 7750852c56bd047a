"""A proof of an execution plan of MSCCL++ against one of ``reduce_scatter:builtin``, P = 8 and two calls both.

Times of one run on one machine, so that their ratio says something of any. Plans of 100 KB, as the DSL prints them.
Run with ``pytest tests/bench_plans.py``, or with ``python tests/bench_plans.py`` for the table.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "frontends" / "mscclpp")]

from plans import PLANS  # noqa: E402

from asyncsim import check  # noqa: E402
from asyncsim.frontends.mscclpp import Launches, judge, parse_plan  # noqa: E402
from kernels.reduce_scatter import builtin  # noqa: E402

RANKS, ROUNDS = 8, 3
LARGE = ("allgather_put_blocks", "allreduce_scratch", "allgather_slices", "alltoall_port_packets")
"""Plans that have 80 to 110 KB on eight gpus."""
MOST = {"sc": 10, "gpu": 3}
"""How many times the time of builtin a plan may need under `sc`; and under another model that of the same plan."""


def seconds(proof):
    """Return the least time of a proof, of a few."""
    taken = []
    for _ in range(ROUNDS):
        before = time.process_time()
        assert proof().verdict == "PROVED"
        taken.append(time.process_time() - before)
    return min(taken)


def of_plan(name, memory):
    """Return how long a plan needs, from its text to its verdict."""
    text = PLANS[name](RANKS).text()

    def proof():
        plan = parse_plan(text)
        return judge(Launches((plan, plan)), memory=[memory])

    return seconds(proof)


def of_builtin():
    return seconds(lambda: check(builtin, ranks=RANKS, calls=2))


@pytest.mark.parametrize("name", LARGE)
def test_a_plan_of_100_kb_takes_no_longer_than(name):
    unit, sc, gpu = of_builtin(), of_plan(name, "sc"), of_plan(name, "gpu")
    assert sc <= MOST["sc"] * unit
    assert gpu <= MOST["gpu"] * sc


if __name__ == "__main__":
    unit = of_builtin()
    print(f"{'reduce_scatter:builtin':24}        {unit * 1000:5.0f} ms")
    for name in LARGE:
        sc, gpu = of_plan(name, "sc"), of_plan(name, "gpu")
        size = len(PLANS[name](RANKS).text()) / 1000
        print(f"{name:24} {size:4.0f} KB {sc * 1000:5.0f} ms sc: {sc / unit:4.1f} x, gpu: {gpu / sc:4.2f} x of that")
