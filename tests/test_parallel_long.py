"""A hundred thousand schedules in flat memory. It takes minutes: ``pytest -m slow --thorough``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUNS = 100_000
PROGRAM = """
import sys
from pathlib import Path

from asyncsim import explore
from kernels.reduce_scatter import hand


def resident():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) // 1024


marks = {}


def note(now):
    tenth = now.done * 10 // now.total
    if tenth not in marks:
        marks[tenth] = resident()


report = explore(hand, ranks=4, runs=int(sys.argv[1]), jobs=2, progress=note)
print(report.verdict, report.schedules, len(report.findings), report.notes[-1], sep="; ", file=sys.stderr)
print(f"{report.seconds:.0f} s", file=sys.stderr)
print(*marks.values())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux how much memory is resident")
def test_a_hundred_thousand_schedules_keep_memory_flat(pytestconfig):
    if not pytestconfig.getoption("--thorough"):
        pytest.skip("takes minutes; --thorough")
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(RUNS)], capture_output=True, text=True, check=True)  # noqa: S603
    sizes = [int(size) for size in done.stdout.split()]
    assert f"REFUTED; {RUNS + 1}; 1; " in done.stderr
    assert len(sizes) >= 10
    # Megabytes. The first tenth fills what is bounded: the behaviours, and the caches.
    assert max(sizes[2:]) - sizes[1] <= 20, sizes
