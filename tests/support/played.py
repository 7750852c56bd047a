"""Programs of two ranks, played with a script on memory where things land late; and what to play them on."""

from __future__ import annotations

import numpy as np
from schedules import Scripted

from asyncsim import Case, Signal, Window, kernel, simulate

ROW = Window("row", (4,), np.int32)
KNOWN = Window("row", (4,), np.int32, initialised=True)
CELL = Signal("cell", ("P",))
LATE = ("ldst", "nic")


class Played:
    """A run, what could go at each step, and what lay in the window of each rank at the end."""

    def __init__(self, program, memory, *order, model="nic", **options):
        """Call a program once, on two ranks; the actors of `order` go first."""
        script = Scripted(*order)
        case = Case(kernel(memory=memory)(program), **{"ranks": 2, "calls": 1, "memory": model, **options})
        self.run = simulate(case, script, record="script")
        self.ready = script.names
        self.outputs = self.run.outputs[0]
        self.events = self.run.trace.events

    def landings(self, step):
        """Return the wires that could go at a step."""
        return [name for name in self.ready[step] if ">" in name]

    def row(self, rank):
        """Return what lies in the first window of a rank."""
        return self.run.windows[rank].tolist()


def only(rank_id, program):
    """Let one rank do something."""

    async def body(rank, *memory):
        return await program(rank, *memory) if rank.id == rank_id else None

    return body


def tiles(*numbers):
    return np.array(numbers, np.int32)
