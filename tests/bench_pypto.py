"""What ``asyncsim pypto`` costs over the imports of the script itself: the P = 4 reduce-scatter, in both modes.

The median of paired differences, in the processor time of whole processes, one after the other: absolute times mean
nothing on shared machines, and the time that others take is not ours. The base is a process that imports what the
script imports and no more. With torch where it is installed; ``TENSORS=numpy`` measures without.
Run with ``python tests/bench_pypto.py``.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parent / "frontends" / "pypto" / "scripts"
SCRIPT = FOLDER / "14_reduce_scatter.py"
ROUNDS = 9
TORCH = os.environ.get("TENSORS") != "numpy" and importlib.util.find_spec("torch") is not None
IMPORTS = f"import argparse, sys, {'torch' if TORCH else 'numpy'}"


def spent(*arguments: str) -> float:
    """Return the seconds of processor time that a Python with these arguments takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {**os.environ, "PYTHONPATH": str(FOLDER.parents[1]), "TENSORS": "torch" if TORCH else "numpy"}
    subprocess.run([sys.executable, *arguments], env=env, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - ours
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table."""
    modes = ("hand", "builtin")
    base: list[float] = []
    whole: dict[str, list[float]] = {mode: [] for mode in modes}
    for _ in range(ROUNDS):
        base.append(spent("-c", IMPORTS))
        for mode in modes:
            whole[mode].append(spent("-m", "asyncsim", "pypto", str(SCRIPT), "-d", "0,1,2,3", "--mode", mode))
    print(f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, Python {platform.python_version()}")
    print(f"{IMPORTS:48} {statistics.median(base):6.2f} s    1.00")
    for mode, values in whole.items():
        over = statistics.median(value - least for value, least in zip(values, base, strict=True))
        ratio = statistics.median(value / least for value, least in zip(values, base, strict=True))
        name = f"asyncsim pypto {SCRIPT.name} --mode {mode}"
        print(f"{name:48} {statistics.median(values):6.2f} s    {ratio:.2f}    {over:+.2f} s")


if __name__ == "__main__":
    main()
