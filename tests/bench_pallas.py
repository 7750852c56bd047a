"""Executions a second of JAX Pallas' TPU interpret mode with race detection, beside our schedules a second.

The same protocol on both sides, at the same sizes, in one run, in interleaved rounds: an in-place reduce-scatter,
two calls back to back, with remote DMA and semaphores. A DMA of Pallas pushes, so this is no kernel of
``kernels/reduce_scatter.py``: each rank stages its rows, pushes row p to peer p, sums what arrived, waits until
everybody has done so, and stores the result in place. An execution of theirs is one schedule, which the operating
system chose, and a search for races in the order that was seen. One of ours is either one schedule and the
comparison of its results; or recorded and analysed for all schedules too.

The broken variant does not wait for the last of its peers. In how many runs does it show?

Run with ``python tests/bench_pallas.py --install`` (which puts JAX into a scratch environment), or with
``--python PATH`` of a Python that has it. Not part of CI.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim import WAR, Signal, Window, kernel
from asyncsim.analysis.analyse import analyse
from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.random import Random
from kernels.reduce_scatter import golden, inputs, post_barrier_off_by_one

if TYPE_CHECKING:
    from asyncsim import Rank, SignalView, WindowView

SIZE = 64
WORKER = Path(__file__).parent / "pallas" / "exchange.py"
JAX = "jax>=0.10,<0.11"
TRIALS = 60

ROWS = [Window("data", ("P", SIZE), np.float32), Window("slots", ("P", SIZE), np.float32)]
ARRIVED = Signal("arrived", ("P",), self_cleaning=True)


@kernel(memory=[*ROWS, ARRIVED, Signal("done", (1,), self_cleaning=True)], inputs=inputs, golden=golden)
async def exchange(  # noqa: PLR0913, PLR0917 - its memory
    rank: Rank,
    x: np.ndarray[Any, Any],
    data: WindowView,
    slots: WindowView,
    arrived: SignalView,
    done: SignalView,
    *,
    missing: int = 0,
) -> np.ndarray[Any, Any]:
    """Push row p to peer p, sum what arrived, and go on when all but `missing` peers have."""
    for c in range(rank.size):
        await rank.store(data[c], x[c * SIZE : (c + 1) * SIZE])
    for peer in rank.peers:
        await rank.put_signal(slots.at(peer)[rank.id], data[peer], arrived.at(peer)[rank.id])
    for peer in rank.peers:
        await rank.wait(arrived[peer] >= 1, consume=True)
    acc = await rank.load(data[rank.id])
    for peer in rank.peers:
        acc = acc + await rank.load(slots[peer])
    for peer in rank.peers:
        await rank.notify(done.at(peer)[0], 1)
    await rank.wait(done[0] >= len(rank.peers) - missing, consume=True)
    await rank.store(data[rank.id], acc)
    return await rank.load(data[rank.id])


off_by_one = exchange.variant(
    about="The barrier goes on when one peer is still missing, which may be one that still reads.",
    memory=[*ROWS, ARRIVED, Signal("done", (1,))],
    missing=1,
    finds=WAR("next call"),
)


def explored(case: Case, runs: int) -> float:
    """Return the processor seconds of one schedule and the comparison of its results."""
    judge, scheduler = Judge(case), Random(seed=1)
    started = time.process_time()
    for _ in range(runs):
        if judge.findings(drive(case, scheduler)):
            raise RuntimeError("the correct exchange gives a wrong result")
    return (time.process_time() - started) / runs


def analysed(case: Case, runs: int) -> float:
    """Return the processor seconds of one schedule, recorded and analysed for every schedule."""
    scheduler = Random(seed=1)
    fair = drive(case, Fifo(), record="fifo").trace
    started = time.process_time()
    for _ in range(runs):
        trace = drive(case, scheduler, record="random:seed=1").trace
        assert trace is not None
        if analyse(trace, fair=fair).findings:
            raise RuntimeError("the correct exchange has a finding")
    return (time.process_time() - started) / runs


def raced(case: Case, trials: int) -> int:
    """Return in how many runs, each of another schedule, the analysis finds the race."""
    fair = drive(case, Fifo(), record="fifo").trace
    found = 0
    for seed in range(trials):
        trace = drive(case, Random(seed=seed), record=f"random:seed={seed}").trace
        assert trace is not None
        found += any(finding.kind == "race" for finding in analyse(trace, fair=fair).findings)
    return found


class Pallas:
    """A process that executes the exchange in Pallas."""

    def __init__(self, python: str, ranks: int, *, missing: int = 0, dma: str = "on_wait") -> None:
        """Start it, and have it compile."""
        command = [python, str(WORKER), f"--ranks={ranks}", f"--missing={missing}", f"--dma={dma}"]
        self._process = subprocess.Popen(  # noqa: S603 - ours, with the Python that was asked for
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.jax = self.execute(1)["jax"]

    def execute(self, runs: int) -> dict[str, Any]:
        """Execute so often; return the seconds in all (wall, processor), and how many runs raced and were wrong."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(runs, file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self.close()
            raise RuntimeError(f"{WORKER.name} ended with status {self._process.returncode}; is {JAX} installed there?")
        return json.loads(line)  # type: ignore[no-any-return]

    def close(self) -> None:
        """End it."""
        with suppress(BrokenPipeError):
            self._process.communicate()


def compare(python: str, ranks: int, *, rounds: int, executions: int) -> None:
    """Print the row of one P."""
    case = Case(exchange, ranks)
    pallas = Pallas(python, ranks)
    theirs, wall, ours, judged = [], [], [], []
    for _ in range(rounds):
        told = pallas.execute(executions)
        if told["raced"] or told["wrong"]:
            raise RuntimeError(f"Pallas finds fault with the correct exchange: {told}")
        theirs.append(told["processor"] / executions)
        wall.append(told["wall"] / executions)
        ours.append(explored(case, max(800 // ranks**2, 4)))
        judged.append(analysed(case, max(400 // ranks**2, 2)))
    pallas.close()
    ratios = [statistics.median(a / b for a, b in zip(theirs, other, strict=True)) for other in (ours, judged)]
    rates = "  ".join(f"{1 / statistics.median(values):9.2f}" for values in (wall, theirs, ours, judged))
    print(f"{ranks:3}  {rates}  {ratios[0]:8.0f} x  {ratios[1]:8.0f} x", flush=True)


def off_by_one_found(python: str, ranks: int) -> None:
    """Print in how many runs the barrier that is off by one is found."""
    print(f"\nthe barrier that is off by one, P = {ranks}, of {TRIALS} runs:")
    for dma in ("on_wait", "eager"):
        pallas = Pallas(python, ranks, missing=1, dma=dma)
        told = pallas.execute(TRIALS)
        pallas.close()
        print(f"  Pallas, DMA {dma:8} a race in {told['raced']:2}, a wrong result in {told['wrong']:2}", flush=True)
    print(f"  asyncsim              a race in {raced(Case(off_by_one, ranks), TRIALS)}")
    builtin = raced(Case(post_barrier_off_by_one, ranks), TRIALS)
    print(f"  asyncsim, reduce_scatter:post_barrier_off_by_one: a race in {builtin}")


def installed(folder: str) -> str:
    """Set up a scratch environment with JAX, and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)  # noqa: S603 - our own Python
    python = str(Path(folder) / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", JAX], check=True)  # noqa: S603 - from the environment just made
    return python


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="set up a scratch environment with JAX, and remove it")
    parser.add_argument("--python", help="a Python that has JAX 0.10")
    parser.add_argument("--ranks", default="2,4,8", help="which P (default: 2,4,8)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--executions", type=int, default=5, help="of Pallas in a round (default: 5)")
    asked = parser.parse_args()
    if not asked.install and not asked.python:
        print("not measured: give --install, or --python PATH of a Python with JAX")
        return
    with tempfile.TemporaryDirectory() as folder:
        python = asked.python or installed(folder)
        probe = Pallas(python, 2)
        probe.close()
        print(f"{time.strftime('%Y-%m-%d')}, {platform.machine()}, Python {platform.python_version()}, JAX {probe.jax}")
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        print("a second:  wall is theirs by the clock, the others and the ratios are by processor time")
        print("  P       wall     Pallas   explored   analysed    ÷ explored   ÷ analysed")
        for ranks in map(int, asked.ranks.split(",")):
            compare(python, ranks, rounds=asked.rounds, executions=asked.executions)
        off_by_one_found(python, 4)


if __name__ == "__main__":
    main()
