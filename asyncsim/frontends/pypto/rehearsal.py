"""The rehearsal: each rank alone, before anything runs, so that what cannot be right is refused first.

Nothing takes effect: loads give zeros, waits pass at once. So every operation that the ranks come to is checked as
it will be when it runs, and it is seen which windows hold data and which hold signals. A rank whose way depends on a
value that only the run will know is followed up to there.
"""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.pypto.launch import DeviceProgram, Launch, Memory
from asyncsim.frontends.pypto.values import UnknownValueError
from asyncsim.machine.rank import Rank
from asyncsim.trace.errors import AsyncsimError
from asyncsim.trace.kinds import LOAD, READ_CELL, REMOTE_LOAD
from asyncsim.trace.world import World

if TYPE_CHECKING:
    from asyncsim.frontends.pypto.launch import Uses

STEPS = 5_000
"""A rank that goes on for longer waits for a value that no rehearsal gives."""


def rehearse(launch: Launch, *, unknown: bool = False) -> Uses:
    """Take each rank through its program, alone.

    Args:
        launch: what was dispatched.
        unknown: the values of the tensors are not known either: the program is being compiled.

    Returns:
        What each view was used for.

    Raises:
        AsyncsimError: an operation, or a kernel, that is refused. Other errors are left to the run.

    """
    memory = Memory(launch, None)
    world = World(launch.ranks, memory.declared)
    program = DeviceProgram(launch, memory, unknown=unknown)
    for actor in world.actors:  # each prints only when it runs
        arrays = tuple(array.copy() for array in launch.parts[actor.rank].arrays)
        with redirect_stdout(StringIO()):
            _alone(program(Rank(actor, world), arrays, *world.views(actor.rank)))
    return program.uses


def _alone(coroutine: Any) -> None:  # noqa: ANN401 - a coroutine
    """Answer the operations of one rank; of its errors raise only those that the run would raise, too."""
    made_up = False
    outcome: Any = None
    try:
        for _ in range(STEPS):
            op = coroutine.send(outcome)
            outcome = None
            if op.kind in (LOAD, REMOTE_LOAD):
                region = op.accesses[0].region
                outcome = np.zeros(region.shape, region.dtype)
                # The kernel may go by any element, now or when it has stored it: zero is a guess from here on.
                made_up = True
            elif op.kind == READ_CELL:
                outcome = 0
                made_up = True
    except (StopIteration, UnknownValueError):
        return
    except AsyncsimError:
        if not made_up:
            raise
    except Exception:  # noqa: BLE001 - the run will show it, with the true values
        return
    finally:
        coroutine.close()
