"""The modules that a script of mpi4py imports, and the script itself."""

from __future__ import annotations

from functools import partial
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

from asyncsim.frontends.mpi import comm, win
from asyncsim.frontends.mpi.datatypes import DATATYPES, OPS, Datatype, Op
from asyncsim.frontends.mpi.proc import Proc
from asyncsim.guest.answers import Answered
from asyncsim.guest.party import WORLD
from asyncsim.guest.script import Script

if TYPE_CHECKING:
    from collections.abc import Sequence


def modules() -> dict[str, ModuleType]:
    """Return the modules by name."""
    mpi = Answered("mpi4py.MPI", "MPI, on simulated ranks.")
    numbers = {name: value for home in (comm, win) for name, value in vars(home).items() if name.isupper()}
    vars(mpi).update(
        {name: value for name, value in numbers.items() if isinstance(value, int | str)},
        **DATATYPES, **OPS, Datatype=Datatype, Op=Op, Win=win.Win, Comm=comm.Comm, Intracomm=comm.Comm,
        Group=comm.Group, Request=comm.Request, COMM_WORLD=comm.Comm(WORLD), COMM_NULL=comm.Comm(None, ()),
        INFO_NULL=None, COMM_TYPE_SHARED=0, Wtime=lambda: 0.0, Init=lambda: None, Finalize=lambda: None,
        Is_initialized=lambda: True, Is_finalized=lambda: False, Get_processor_name=lambda: "simulated",
    )  # fmt: skip
    package = ModuleType("mpi4py", "mpi4py, on simulated ranks.")
    vars(package).update(MPI=mpi, rc=SimpleNamespace(), __path__=[], __version__="4.1.0")
    return {"mpi4py": package, "mpi4py.MPI": mpi}


def script(path: str, arguments: Sequence[str] = ()) -> Script:
    """Return a script of mpi4py.

    Args:
        path: of it.
        arguments: what it finds in ``sys.argv`` behind its name.

    """
    return Script(path, arguments, partial(Proc, mail={}), modules())
