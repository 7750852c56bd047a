"""What a check and a schedule take here, in pytest-benchmark's tables: to compare two versions on one machine.

Absolute times, so they say nothing of another machine; the ratios are those of ``asyncsim bench``.
Run with ``pytest tests/bench_check.py --benchmark-only``, and ``--benchmark-autosave`` and ``--benchmark-compare`` to
compare; needs the extra ``bench``. Or with ``python tests/bench_check.py``.
"""

from __future__ import annotations

import time
from importlib.util import find_spec

import pytest

from asyncsim import check
from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.schedulers.random import Random
from kernels.reduce_scatter import builtin, hand, no_post_barrier

pytestmark = pytest.mark.benchmark(timer=time.process_time)


@pytest.mark.parametrize("ranks", [4, 16, 64])
def test_a_proof(benchmark, ranks):
    report = benchmark.pedantic(check, (builtin,), {"ranks": ranks}, rounds=3, warmup_rounds=1)
    assert report.verdict == "PROVED"


@pytest.mark.parametrize("ranks", [4, 16])
def test_a_refutation_with_its_witness(benchmark, ranks):
    report = benchmark.pedantic(check, (no_post_barrier,), {"ranks": ranks}, rounds=3, warmup_rounds=1)
    assert report.verdict == "REFUTED"


def test_a_schedule(benchmark):
    case = Case(hand, ranks=4)
    run = benchmark.pedantic(drive, (case, Random(seed=1)), rounds=20, iterations=10, warmup_rounds=1)
    assert run.ending == "complete"


if __name__ == "__main__":
    if find_spec("pytest_benchmark") is None:
        print("not measured: needs pytest-benchmark, the extra bench")
    else:
        raise SystemExit(pytest.main([__file__, "--benchmark-only"]))
