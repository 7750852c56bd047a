"""A real program with real threads, instrumented by hand: an example of a trace that asyncsim did not record.

Each thread is a rank. It knows what it does itself, in its own order, and notes that; nobody notes who was
first. The log of a run is a header and the notes of the ranks, one rank after the other. Run as a script it
writes such a log:

    python tests/trace/instrumented.py buggy > shift.jsonl
    asyncsim explain shift.jsonl
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import numpy as np


class Machine:
    """Memory that all threads see: one window of one number a rank, and two counters a rank."""

    def __init__(self, ranks):
        """Start with nothing written and all counters 0."""
        self.box = np.full((ranks, 1), np.nan, np.float32)
        self.cells = {(name, rank): 0 for name in ("ready", "read") for rank in range(ranks)}
        self.changed = threading.Condition()


class Rank:
    """What one thread does, with its notes."""

    def __init__(self, machine, rank, ranks):
        """Start without notes."""
        self.machine, self.id, self.size = machine, rank, ranks
        self.call = 0
        self.notes = []

    def store(self, value):
        """Write the own number."""
        self.machine.box[self.id, 0] = value
        self._note("store", accesses=[{"window": "box"}], value=[float(np.float32(value))])

    def load(self, owner):
        """Read a peer's number."""
        got = float(self.machine.box[owner, 0])
        self._note("remote_load", accesses=[{"window": "box", "owner": owner}], value=[got])
        return got

    def notify(self, signal, owner, value):
        """Add to a counter."""
        with self.machine.changed:
            self.machine.cells[signal, owner] += value
            self.machine.changed.notify_all()
        self._note("notify", cell={"signal": signal, "owner": owner}, value=value)

    def wait(self, signal, value):
        """Wait until an own counter is large enough, and take that off it."""
        with self.machine.changed:
            self.machine.changed.wait_for(lambda: self.machine.cells[signal, self.id] >= value)
            self.machine.cells[signal, self.id] -= value
        self._note("wait", cell={"signal": signal}, how="Ge", need=value, consume=True)

    def _note(self, op, **fields):
        line = sys._getframe(2).f_lineno
        place = {"at": [f"{Path(__file__).name}:{line}"]}
        self.notes.append({"event": "step", "rank": self.id, "call": self.call, "op": op, **fields, **place})


def shift(rank, *, acknowledged):
    """Pass one number to the right; with `acknowledged`, nobody writes the next before the last was read."""
    left, right = (rank.id - 1) % rank.size, (rank.id + 1) % rank.size
    rank.store(10.0 * rank.call + rank.id)
    rank.notify("ready", right, 1)
    rank.wait("ready", 1)
    rank.load(left)
    if acknowledged:
        rank.notify("read", left, 1)
        rank.wait("read", 1)


def header(ranks, calls, **more):
    """Return the header of a log: who there is, and the memory."""
    return {
        "event": "header", "format": 1, "recorded": "elsewhere", "kernel": "shift.cu:shift", "ranks": ranks,
        "calls": calls,
        "declarations": [
            {"window": "box", "shape": [1], "dtype": "float32"},
            {"signal": "ready", "shape": [1], "dtype": "int32", "start": 0},
            {"signal": "read", "shape": [1], "dtype": "int32", "start": 0},
        ],
        **more,
    }  # fmt: skip


def run(*, acknowledged, ranks=3, calls=2):
    """Run the threads to their end, and return the notes of each."""
    machine = Machine(ranks)
    threads = []
    noted = [Rank(machine, rank, ranks) for rank in range(ranks)]

    def live(rank):
        for rank.call in range(calls):
            shift(rank, acknowledged=acknowledged)

    for rank in noted:
        threads.append(threading.Thread(target=live, args=(rank,), daemon=True))
        threads[-1].start()
    for thread in threads:
        thread.join(timeout=60)
    return [rank.notes for rank in noted]


def log(notes, *, calls=2, footer=True, **more):
    """Return the text of a log."""
    lines = [header(len(notes), calls, **more), *(note for own in notes for note in own)]
    return text_of([*lines, {"event": "footer"}] if footer else lines)


def text_of(lines):
    """Return lines as JSON Lines."""
    return "".join(json.dumps(line) + "\n" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(log(run(acknowledged=sys.argv[1:] != ["buggy"])))
