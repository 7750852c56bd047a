"""asyncsim proves or refutes the synchronisation of collective kernels on symmetric memory.

Write a kernel with `Window`, `Signal` and `kernel`; run it once with `simulate`.
"""

from asyncsim.collectives.barrier import barrier, settle
from asyncsim.machine.case import Case, Run
from asyncsim.machine.kernel import Kernel, kernel
from asyncsim.machine.rank import Rank
from asyncsim.machine.simulate import simulate
from asyncsim.machine.stream import Stream, StreamBarrier
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.declare import Signal, Window
from asyncsim.trace.errors import AsyncsimError, DivergenceError, KernelError, MisuseError, RefusedError, TraceError
from asyncsim.trace.finding import RAW, WAR, WAW, Expected, Finding
from asyncsim.trace.op import ATOMIC_ADD, SET
from asyncsim.trace.version import VERSION
from asyncsim.trace.world import SignalView, WindowView, World

__version__ = VERSION

AtomicAdd = ATOMIC_ADD
"""What ``rank.notify`` does to a cell unless told otherwise: add."""
Set = SET
"""What ``rank.notify(..., op=Set)`` does to a cell: overwrite."""

__all__ = [
    "RAW",
    "WAR",
    "WAW",
    "AsyncsimError",
    "AtomicAdd",
    "Case",
    "DivergenceError",
    "Expected",
    "Fifo",
    "Finding",
    "Kernel",
    "KernelError",
    "MisuseError",
    "Rank",
    "RefusedError",
    "Run",
    "Set",
    "Signal",
    "SignalView",
    "Stream",
    "StreamBarrier",
    "TraceError",
    "Window",
    "WindowView",
    "World",
    "__version__",
    "barrier",
    "kernel",
    "settle",
    "simulate",
]
