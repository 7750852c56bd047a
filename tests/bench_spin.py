"""Spin's exhaustive search beside our proof, of the same protocol, in one run.

Spin searches the states of ``spin/reduce_scatter.pml``, which is `reduce_scatter:builtin` in Promela; asyncsim checks
the kernel itself. Spin's cost grows with the states, ours with the operations. The model says what a step is in each
of its four grains; only the first has the steps of the kernel. In processor time: the search alone, without the
time to generate and compile it. A search is stopped at the limits of time and memory, and is then reported as longer.

Run with ``python tests/bench_spin.py``; needs spin and gcc.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from asyncsim import check
from kernels.reduce_scatter import builtin, no_post_barrier

MODEL = Path(__file__).parent / "spin" / "reduce_scatter.pml"
GRAINS = {0: "each access", 1: "barriers merged", 2: "all merged that commutes", 3: "data merged, too"}
# Full optimisation, assertions and end states alone. Without the partial-order reduction, which saves no state of this
# model and costs time; without compression, which costs time.
COMPILE = ("gcc", "-w", "-DSAFETY", "-DNOREDUCE")
POLLING = 0.05


@dataclass(frozen=True, slots=True)
class Search:
    """What a search came to.

    Args:
        states: how many states were stored.
        depth: of the longest path, in steps.
        errors: how many violations; the search ends with the first.
        seconds: processor time.
        megabytes: the memory in use at the end.
        complete: whether it ended by itself.

    """

    states: int
    depth: int
    errors: int
    seconds: float
    megabytes: float
    complete: bool


def missing() -> list[str]:
    """Return which of the programs that are needed are not installed."""
    return [program for program in ("spin", "gcc") if shutil.which(program) is None]


def search(  # noqa: PLR0913 - each is one choice
    ranks: int,
    *,
    grain: int,
    post: bool = True,
    seconds: float = 60,
    megabytes: int = 1024,
    optimise: str = "-O3",
) -> Search:
    """Search the model with this P and grain, with or without the second barrier, within these limits."""
    with tempfile.TemporaryDirectory() as folder:
        defines = (f"-DP={ranks}", f"-DGRAIN={grain}", f"-DPOST={post:d}")
        subprocess.run(["spin", *defines, "-a", str(MODEL)], cwd=folder, check=True, capture_output=True)  # noqa: S603, S607 - from the path, as its user set it up
        subprocess.run([*COMPILE, optimise, f"-DMEMLIM={megabytes}", "-o", "pan", "pan.c"], cwd=folder, check=True)  # noqa: S603 - the same
        return _searched(Path(folder), seconds)


def _searched(folder: Path, limit: float) -> Search:
    """Run the compiled search, and interrupt it when its time is over: it then tells how far it came."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    stopped = False
    with (folder / "out").open("w+") as out:
        pan = subprocess.Popen([str(folder / "pan")], cwd=folder, stdout=out, stderr=subprocess.STDOUT)  # noqa: S603 - compiled above
        while pan.poll() is None:
            if not stopped and _spent(pan.pid) > limit:
                stopped = True
                pan.send_signal(signal.SIGINT)
            time.sleep(POLLING)
        out.seek(0)
        text = out.read()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return understood(text, spent)


def understood(text: str, seconds: float) -> Search:
    """Read what pan prints at its end."""
    found = re.search(
        r"depth reached (\d+), errors: (\d+)\s+(\S+) states, stored.*?(\S+)\s+total actual memory", text, re.DOTALL
    )
    if found is None:
        raise ValueError(f"pan printed no summary: {text}")
    depth, errors, states, memory = found.groups()
    complete = errors != "0" or "Search not completed" not in text
    return Search(int(float(states)), int(depth), int(errors), seconds, float(memory), complete)


def _spent(pid: int) -> float:
    """Return the processor seconds of a running process; 0 once it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def proof(ranks: int) -> tuple[float, int]:
    """Return the processor seconds of our check, and the steps of the run that it rests on."""
    started = time.process_time()
    report = check(builtin, ranks=ranks)
    spent = time.process_time() - started
    if report.verdict != "PROVED":
        raise RuntimeError(f"{report.verdict} at P = {ranks}")
    return spent, report.steps


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=6, help="the largest P that Spin searches, up to 8 (default: 6)")
    parser.add_argument("--proofs", type=int, default=64, help="the largest P that is proved (default: 64)")
    parser.add_argument("--seconds", type=float, default=120, help="when a search is stopped (default: 120)")
    parser.add_argument("--megabytes", type=int, default=4096, help="how much memory it may take (default: 4096)")
    parser.add_argument("--grains", default="0,1,2,3", help="which grains of the model (default: all)")
    asked = parser.parse_args()
    if missing():
        print(f"not measured: {' and '.join(missing())} not installed")
        return
    version = subprocess.run(["spin", "-V"], check=True, capture_output=True, text=True).stdout.strip()  # noqa: S607 - as above
    load = os.getloadavg()[0]
    print(f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, Python {platform.python_version()}, {version}")
    print(f"load {load:.1f} on {os.cpu_count()} processors; times are processor time")
    proofs = _proofs(asked.proofs)
    for grain in map(int, asked.grains.split(",")):
        print(f"\nSpin, a step is {GRAINS[grain]}:")
        last = None
        for ranks in range(2, asked.ranks + 1):
            last = search(ranks, grain=grain, seconds=asked.seconds, megabytes=asked.megabytes)
            print(f"  P = {ranks}  {_told(last)}", flush=True)
        if last is not None:
            _compare(asked.ranks, last, asked.proofs, proofs[asked.proofs])
    print("\nwithout the second barrier:")
    for ranks in range(2, asked.ranks + 1):
        found = search(ranks, grain=0, post=False)
        verdict = check(no_post_barrier, ranks=ranks).verdict
        said = f"a violation at depth {found.depth}" if found.errors else "no violation"
        print(f"  P = {ranks}  Spin: {said}; asyncsim: {verdict}")


def _proofs(most: int) -> dict[int, float]:
    """Prove at P = 2, 4, 8 and so on, and last at the most; print and return the seconds."""
    print("\nasyncsim, two calls:")
    seconds: dict[int, float] = {}
    for ranks in sorted({most} | {2**n for n in range(1, most.bit_length()) if 2**n <= most}):
        seconds[ranks], steps = proof(ranks)
        print(f"  P = {ranks:<3}  PROVED  {steps:9} operations  {seconds[ranks]:8.2f} s", flush=True)
    return seconds


def _told(found: Search) -> str:
    than = " " if found.complete else ">"
    end = "" if found.complete else "  stopped"
    return f"{than}{found.states:11} states  {than}{found.seconds:8.2f} s  {than}{found.megabytes:7.0f} MB{end}"


def _compare(ranks: int, found: Search, most: int, ours: float) -> None:
    """Say whether the search took longer than our proof."""
    ratio = found.seconds / ours
    least = "" if found.complete else "more than "
    holds = "takes longer" if ratio > 1 else "takes LESS" if found.complete else "was stopped too early to tell"
    print(f"  at P = {ranks} it {holds}: {least}{ratio:.2f} times our proof at P = {most}")


if __name__ == "__main__":
    sys.exit(main())
