"""asyncsim proves or refutes the synchronisation of collective kernels on symmetric memory.

Write a kernel with `Window`, `Signal` and `kernel`; run it once with `simulate`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from asyncsim.trace.cells import AND, ATOMIC_ADD, MAX, MIN, OR, SET, XOR, Change, UpdateName
from asyncsim.trace.version import VERSION

if TYPE_CHECKING:
    from asyncsim.checking.record.replay import replay
    from asyncsim.checking.verdict.check import check
    from asyncsim.checking.verdict.explore import explore
    from asyncsim.checking.verdict.report import Report
    from asyncsim.checking.witness.shrink import shrink
    from asyncsim.collectives import golden
    from asyncsim.collectives.all_reduce import all_reduce, two_phase_all_reduce
    from asyncsim.collectives.all_to_all import all_to_all, all_to_all_v
    from asyncsim.collectives.allgather import allgather
    from asyncsim.collectives.barrier import barrier, settle
    from asyncsim.collectives.broadcast import broadcast
    from asyncsim.collectives.reduce import ReduceOp
    from asyncsim.collectives.reduce_scatter import reduce_scatter
    from asyncsim.machine.case import Case, Run
    from asyncsim.machine.goldens import AnyOf, Predicate
    from asyncsim.machine.kernel import Kernel, kernel
    from asyncsim.machine.rank import Rank
    from asyncsim.machine.simulate import simulate
    from asyncsim.machine.stream import Stream, StreamBarrier
    from asyncsim.schedulers.fifo import Fifo
    from asyncsim.study.audit import audit
    from asyncsim.trace.declare import Group, Signal, Window
    from asyncsim.trace.errors import AsyncsimError, DivergenceError, KernelError, MisuseError, RefusedError, TraceError
    from asyncsim.trace.finding import RAW, WAR, WAW, Expected, Finding, Side
    from asyncsim.trace.region import Cell, Condition, Region
    from asyncsim.trace.world import SignalView, WindowView, World

_HOMES = {
    "asyncsim.checking.record.replay": "replay",
    "asyncsim.checking.verdict.check": "check",
    "asyncsim.checking.verdict.explore": "explore",
    "asyncsim.checking.verdict.report": "Report",
    "asyncsim.checking.witness.shrink": "shrink",
    "asyncsim.collectives": "golden",
    "asyncsim.collectives.all_reduce": "all_reduce two_phase_all_reduce",
    "asyncsim.collectives.all_to_all": "all_to_all all_to_all_v",
    "asyncsim.collectives.allgather": "allgather",
    "asyncsim.collectives.barrier": "barrier settle",
    "asyncsim.collectives.broadcast": "broadcast",
    "asyncsim.collectives.reduce": "ReduceOp",
    "asyncsim.collectives.reduce_scatter": "reduce_scatter",
    "asyncsim.machine.case": "Case Run",
    "asyncsim.machine.goldens": "AnyOf Predicate",
    "asyncsim.machine.kernel": "Kernel kernel",
    "asyncsim.machine.rank": "Rank",
    "asyncsim.machine.simulate": "simulate",
    "asyncsim.machine.stream": "Stream StreamBarrier",
    "asyncsim.schedulers.fifo": "Fifo",
    "asyncsim.study.audit": "audit",
    "asyncsim.trace.declare": "Group Signal Window",
    "asyncsim.trace.errors": "AsyncsimError DivergenceError KernelError MisuseError RefusedError TraceError",
    "asyncsim.trace.finding": "RAW WAR WAW Expected Finding Side",
    "asyncsim.trace.region": "Cell Condition Region",
    "asyncsim.trace.world": "SignalView WindowView World",
}
"""Where the public names are made, by module: what is not asked for is not imported."""
_PLACES = {name: module for module, names in _HOMES.items() for name in names.split()}

__version__ = VERSION

AtomicAdd = UpdateName(ATOMIC_ADD)
"""What ``rank.notify`` does to a cell unless told otherwise: add. Called, it is an update: ``then=AtomicAdd(-1)``."""
Set = UpdateName(SET)
"""What ``rank.notify(..., op=Set)`` does to a cell: overwrite."""
And = UpdateName(AND)
"""Keep of a cell the bits that the amount has."""
Or = UpdateName(OR)
"""Set in a cell the bits that the amount has."""
Xor = UpdateName(XOR)
"""Turn over in a cell the bits that the amount has."""
Min = UpdateName(MIN)
"""Set a cell to the amount if that is less."""
Max = UpdateName(MAX)
"""Set a cell to the amount if that is more."""

__all__ = [
    "RAW",
    "WAR",
    "WAW",
    "And",
    "AnyOf",
    "AsyncsimError",
    "AtomicAdd",
    "Case",
    "Cell",
    "Change",
    "Condition",
    "DivergenceError",
    "Expected",
    "Fifo",
    "Finding",
    "Group",
    "Kernel",
    "KernelError",
    "Max",
    "Min",
    "MisuseError",
    "Or",
    "Predicate",
    "Rank",
    "ReduceOp",
    "RefusedError",
    "Region",
    "Report",
    "Run",
    "Set",
    "Side",
    "Signal",
    "SignalView",
    "Stream",
    "StreamBarrier",
    "TraceError",
    "Window",
    "WindowView",
    "World",
    "Xor",
    "__version__",
    "all_reduce",
    "all_to_all",
    "all_to_all_v",
    "allgather",
    "audit",
    "barrier",
    "broadcast",
    "check",
    "explore",
    "golden",
    "kernel",
    "reduce_scatter",
    "replay",
    "settle",
    "shrink",
    "simulate",
    "two_phase_all_reduce",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever has this name
    module = _PLACES.get(name)
    if module is None:
        raise AttributeError(f"module 'asyncsim' has no attribute {name!r}")
    home = import_module(module)
    value = globals()[name] = getattr(home, name) if hasattr(home, name) else import_module(f"{module}.{name}")
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
