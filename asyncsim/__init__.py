"""asyncsim proves or refutes the synchronisation of collective kernels on symmetric memory.

Write a kernel with `Window`, `Signal` and `kernel`; run it once with `simulate`.
"""

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
from asyncsim.machine.kernel import Kernel, kernel
from asyncsim.machine.rank import Rank
from asyncsim.machine.simulate import simulate
from asyncsim.machine.stream import Stream, StreamBarrier
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.cells import ATOMIC_ADD, SET
