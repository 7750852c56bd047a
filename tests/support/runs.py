"""Toy programs on the real machine, each step checked against the oracle."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from brute import COMPARE, Final, replay
from programs import kernel_of
from toy import LOAD, POLL, TAKE, TEST

from asyncsim.machine.case import Case
from asyncsim.machine.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toy import Program

    from asyncsim.trace.event import Trace
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


class RandomSchedule:
    """Chooses among the ready operations with equal chances."""

    def __init__(self, seed: int) -> None:
        """Make the same choices for the same seed."""
        self._rng = random.Random(seed)  # noqa: S311 - dice, no secret

    def begin(self, actors: Sequence[Actor]) -> None:
        """Need to know nothing of the run."""

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return one of them."""
        return self._rng.choice(ready)


@dataclass(frozen=True, slots=True)
class Ran:
    """A run of the machine, and the state that the oracle reaches by the same choices."""

    trace: Trace
    final: Final
    case: Case


async def run_once(program: Program, seed: int) -> Ran:
    """Run a program on the machine, and check that it loaded what the oracle loads on that path."""
    case = Case(kernel_of(program), ranks=len(program.actors), calls=program.calls)
    run = await simulate.aio(case, RandomSchedule(seed), record=f"random:seed={seed}")
    assert run.trace is not None
    final = replay(program, map(int, run.choices))
    expected = "overflow" if final.overflow else "deadlock" if _unfinished(program, final) else "complete"
    assert run.ending == expected, f"the run ended with {run.ending}, not {expected}: {program}"
    assert _loaded(program, run.trace) == final.loaded, f"loads of a run differ from the oracle's: {program}"
    return Ran(run.trace, final, case)


def _unfinished(program: Program, final: Final) -> bool:
    return final.positions != tuple(map(len, program.streams))


def _loaded(program: Program, trace: Trace) -> tuple[tuple[float | None, ...], ...]:
    """Read from a trace what each rank's loads and tests gave; and check that events are the program's."""
    dtype = np.float32 if program.floats else np.int64
    streams = program.streams
    got: list[list[float | None]] = [[] for _ in streams]
    at = [0] * len(streams)
    for event in trace.events:
        actor = int(event.op.actor.name)
        op = streams[actor][at[actor]]
        at[actor] += 1
        assert (event.op.cell is None) == op.on_data
        assert event.op.consume == (op.kind == TAKE)
        if op.kind in (LOAD, POLL):
            assert isinstance(event.data, bytes)
            got[actor].append(np.frombuffer(event.data, dtype)[0].item())
        elif op.kind == TEST:
            assert event.have is not None
            got[actor].append(COMPARE[op.how](event.have, op.value))
    for actor, stream in enumerate(streams):
        missing = sum(op.kind in (LOAD, POLL, TEST) for op in stream[at[actor] :])
        got[actor] += [None] * missing
    return tuple(map(tuple, got))
