"""The modules that a script of shmem4py imports, and the script itself."""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.shmem import allocation, atomics, collectives, locks, rma, teams, waits
from asyncsim.frontends.shmem.constants import CONSTANTS, THREAD
from asyncsim.frontends.shmem.pe import Pe, present_pe
from asyncsim.guest.answers import Answered, answering, answers
from asyncsim.guest.script import Script
from asyncsim.trace.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.guest.places import Array


@answers
def init() -> None:
    """Do nothing: importing initialises."""


@answers
def init_thread(requested: THREAD = THREAD.MULTIPLE) -> THREAD:
    """Return the thread level."""
    del requested
    return THREAD.SINGLE


@answers
def finalize() -> None:
    """Complete everything, and wait for all."""
    pe = present_pe()
    if not pe.finalised:
        pe.finish()


@answers
def global_exit(status: int = 0) -> None:
    """Refuse to end the other PEs."""
    raise RefusedError(f"global_exit({status}) ends all PEs wherever they are, which is not followed; let each end")


@answers
def pe_accessible(pe: int) -> bool:
    """Say whether there is such a PE."""
    return 0 <= pe < present_pe().size


@answers
def addr_accessible(addr: Any, pe: int) -> bool:
    """Say whether an array is symmetric."""
    block = present_pe().places.find(addr)
    return pe_accessible(pe) and block is not None and not block.private and not block.freed


@answers
def ptr(target: Any, pe: int) -> Array | None:
    """Return a symmetric array of one's own; None for another PE's, which a network adapter reaches, no load."""
    own = present_pe()
    own.symmetric("ptr", "target", target)
    return np.asarray(target) if own.number("ptr", "PE", pe, own.size) == own.me else None


def modules() -> dict[str, ModuleType]:
    """Return the modules by name."""
    shmem = Answered("shmem4py.shmem", "OpenSHMEM, on simulated PEs.")
    given = answering(sys.modules[__name__], allocation, rma, locks, atomics, waits, collectives)
    vars(shmem).update(
        given,
        **CONSTANTS, **atomics.ATOMICS, **collectives.REDUCTIONS, **waits.WAITS,
        my_pe=teams.TEAM_WORLD.my_pe, n_pes=teams.TEAM_WORLD.n_pes, **locks.HANDLES, del_array=allocation.free,
        Ctx=teams.Ctx, CTX_DEFAULT=teams.CTX_DEFAULT, CTX_INVALID=teams.CTX_INVALID,
        Team=teams.Team, TEAM_WORLD=teams.TEAM_WORLD, TEAM_SHARED=teams.TEAM_SHARED, TEAM_INVALID=teams.TEAM_INVALID,
        MAJOR_VERSION=1, MINOR_VERSION=5, VENDOR_STRING="asyncsim", query_thread=init_thread,
        info_get_version=lambda: (1, 5), info_get_name=lambda: "asyncsim", pcontrol=lambda _level=1: None,
    )  # fmt: skip
    package = ModuleType("shmem4py", "shmem4py, on simulated PEs.")
    vars(package).update(shmem=shmem, rc=SimpleNamespace(), __path__=[], __version__="1.0.0")
    return {"shmem4py": package, "shmem4py.shmem": shmem}


def script(path: str, arguments: Sequence[str] = ()) -> Script:
    """Return a script of shmem4py.

    Args:
        path: of it.
        arguments: what it finds in ``sys.argv`` behind its name.

    """
    return Script(path, arguments, partial(Pe, mail={}), modules())
