"""Wrong PyPTO programs, one a kind: what is wrong, on which line, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass

HERE = "# here"
"""Marks the line that is to blame."""

_PROGRAM = '''"""A program with one mistake."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

NR, SIZE = 3, 4
{before}


@pl.jit.incore
def kernel(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: {data},
    signal: {signal},
):
    ctx = pld.get_comm_ctx(data)
    my_rank = pld.rank(ctx)
    {body}
    return y


@pl.jit.host
def host(x: pl.Tensor[[NR, NR, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    {host}
    return y


x = np.zeros((NR, NR, SIZE), {dtype})
y = np.zeros((NR, 1, SIZE), np.float32)
config = RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=[0, 1, 2], num_sub_workers=0))
compiled = host.compile(x, y, config=config){compiles}
compiled(x, y, config=config)
print("OK")
'''

_DATA = "pld.DistributedTensor[[NR, SIZE], pl.FP32]"
_SIGNAL = "pld.DistributedTensor[[NR, 1], pl.INT32]"
_HOST = """\
data_buf = pld.alloc_window_buffer(NR * SIZE * 4)
signal_buf = pld.alloc_window_buffer(NR * 4)
for r in pl.range(pld.world_size()):
    data = pld.window(data_buf, [NR, SIZE], dtype=pl.FP32)
    signal = pld.window(signal_buf, [NR, 1], dtype=pl.INT32)
    kernel(x[r], y[r], data, signal, device=r)"""


@dataclass(frozen=True)
class Wrong:
    """A mistake.

    Args:
        name: what it is.
        said: what the message must hold, word for word.
        body: the statements of the kernel; the mistaken line is marked.
        host: the statements of the host function.
        before: statements above the kernel.
        data: the annotation of the kernel's window.
        signal: the annotation of its signal.
        dtype: of the input.
        compiles: what stands behind the line that compiles.

    """

    name: str
    said: str
    body: str = "y = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], y)"
    host: str = _HOST
    before: str = ""
    data: str = _DATA
    signal: str = _SIGNAL
    dtype: str = "np.float32"
    compiles: str = ""

    def source(self) -> str:
        """Return the whole script."""
        return _PROGRAM.format(
            before=self.before,
            body=_indented(self.body),
            host=_indented(self.host),
            data=self.data,
            signal=self.signal,
            dtype=self.dtype,
            compiles=self.compiles,
        )

    def line(self) -> int:
        """Return the number of the line to blame."""
        (found,) = [number for number, line in enumerate(self.source().splitlines(), 1) if HERE in line]
        return found


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")


def _host(old: str, new: str) -> str:
    assert old in _HOST
    return _HOST.replace(old, new)


WRONG = [
    # What the type rules of upstream refuse, in their words.
    Wrong(
        "an operator that notify does not have",
        "pld.system.notify op must be NotifyOp.AtomicAdd or NotifyOp.Set (got int 7)",
        "pld.system.notify(signal, peer=0, offsets=[my_rank, 0], value=1, op=7)  # here",
    ),
    Wrong(
        "a comparison that wait does not have",
        "pld.system.wait cmp must be WaitCmp.Eq or WaitCmp.Ge (got int 5)",
        "pld.system.wait(signal, offsets=[my_rank, 0], expected=0, cmp=5)  # here",
    ),
    Wrong(
        "offsets of another rank than the signal's",
        "pld.system.notify offsets rank (1) must match target tensor rank (2)",
        "pld.system.notify(signal, peer=0, offsets=[my_rank], value=1, op=pld.NotifyOp.Set)  # here",
    ),
    Wrong(
        "a shape of another rank than the window's",
        "pld.tile.remote_load shape rank (1) must match target tensor rank (2)",
        "pld.tile.remote_load(data, peer=0, offsets=[0, 0], shape=[SIZE])  # here",
    ),
    Wrong(
        "a reduce-scatter with Max",
        "pld.tensor.reduce_scatter op must be ReduceOp.Sum (got int 1); "
        "Max / Min / Prod lowerings are not yet implemented",
        "pld.tensor.reduce_scatter(data, signal, op=pld.ReduceOp.Max)  # here",
    ),
    Wrong(
        "a reduce-scatter of a plain tensor",
        "pld.tensor.reduce_scatter expects a DistributedTensor target (window-bound); got pl.Tensor[[3, 4], pl.FP32]",
        "pld.tensor.reduce_scatter(x, signal)  # here",
    ),
    Wrong(
        "a signal of floating numbers",
        "pld.tensor.reduce_scatter signal must have INT32 element type, got dtype fp32",
        "pld.tensor.reduce_scatter(data, signal)  # here",
        host=_host("[NR, 1], dtype=pl.INT32", "[NR, 1], dtype=pl.FP32"),
        signal="pld.DistributedTensor[[NR, 1], pl.FP32]",
    ),
    Wrong(
        "a target of three dimensions",
        "pld.tensor.reduce_scatter target must be 2D [NR, SIZE], got 3 dims",
        "pld.tensor.reduce_scatter(data, signal)  # here",
        host=_host("[NR, SIZE]", "[NR, 2, 2]"),
        data="pld.DistributedTensor[[NR, 2, 2], pl.FP32]",
    ),
    Wrong(
        "a signal of one dimension",
        "pld.tensor.barrier signal must be 2D [NR, 1], got rank 1",
        "pld.tensor.barrier(signal)  # here",
        host=_host("[NR, 1]", "[NR]"),
        signal="pld.DistributedTensor[[NR], pl.INT32]",
    ),
    Wrong(
        "a ring's signal of the mesh's shape",
        "pld.tensor.allreduce mode=ring signal shape[0] (3) must equal 2*(NR-1) = 4 for NR = 3",
        'pld.tensor.allreduce(data, signal, mode="ring")  # here',
    ),
    Wrong(
        "a mode that all-reduce does not have",
        'pld.tensor.allreduce mode must be "ring" or "mesh", got "star"',
        'pld.tensor.allreduce(data, signal, mode="star")  # here',
    ),
    Wrong(
        "an operator that all-reduce does not have",
        "pld.tensor.allreduce op must be ReduceOp.Sum, Max, Min, or Prod (got int 9)",
        "pld.tensor.allreduce(data, signal, op=9)  # here",
    ),
    Wrong(
        "an all-gather from a buffer into itself",
        "pld.tensor.allgather input and target must be different buffers, but the same expression was passed for both",
        "pld.tensor.allgather(data, data, signal)  # here",
    ),
    Wrong(
        "a negative root",
        "pld.tensor.broadcast root rank must be non-negative, got -1",
        "pld.tensor.broadcast(data, signal, root=-1)  # here",
    ),
    Wrong(
        "the context of a plain tensor",
        "pld.system.get_comm_ctx expects a DistributedTensor (window-bound), got pl.Tensor[[3, 4], pl.FP32]",
        "pld.get_comm_ctx(x)  # here",
    ),
    # What upstream leaves unchecked, or Python says in its own words.
    Wrong(
        "a notify without op",
        "pld.system.notify: missing a required argument: 'op'; "
        "it is pld.system.notify(target, peer, offsets, value, *, op)",
        "pld.system.notify(signal, peer=0, offsets=[my_rank, 0], value=1)  # here",
    ),
    Wrong(
        "a peer that is not there",
        "pld.tile.remote_load peer must be a rank, 0 to 2, got 3",
        "pld.tile.remote_load(data, peer=my_rank + 1, offsets=[0, 0], shape=[1, SIZE])  # here",
    ),
    Wrong(
        "a root that is not there",
        "pld.tensor.broadcast root rank must be less than NR = 3, got 3",
        "pld.tensor.broadcast(data, signal, root=3)  # here",
    ),
    Wrong(
        "offsets outside the shape",
        "pl.load offsets [1, 1] and shape [1, 4] leave dimension 1 of the target, whose shape is [3, 4]",
        "pl.load(data, [1, 1], [1, SIZE])  # here",
    ),
    Wrong(
        "a target with too few rows",
        "pld.tensor.reduce_scatter target must have one row a rank: NR = 3, got 1 rows",
        "pld.tensor.reduce_scatter(data, signal)  # here",
        host=_host("[NR, SIZE]", "[1, SIZE]"),
        data="pld.DistributedTensor[[1, SIZE], pl.FP32]",
    ),
    Wrong(
        "two of the three arguments of a region",
        "pld.tensor.put takes dst_offsets, src_offsets and shape together, or none of them",
        "pld.tensor.put(data, 0, x, dst_offsets=[0, 0], src_offsets=[0, 0])  # here",
    ),
    Wrong(
        "a name that pld does not have",
        "pld.system has no 'notfy'; did you mean 'notify'?",
        "pld.system.notfy(signal, peer=0, offsets=[my_rank, 0], value=1, op=pld.NotifyOp.Set)  # here",
    ),
    Wrong(
        "the number of ranks asked in a kernel as on the host",
        "pld.world_size belongs into the host function; a kernel asks pld.nranks(ctx) for the number of ranks",
        "nranks = pld.world_size()  # here",
    ),
    Wrong(
        "a kernel that is a generator",
        "kernel yields, so a call would run nothing of it; a kernel calls its operations in turn",
        "yield pl.load(data, [0, 0], [1, SIZE])  # here",
    ),
    # What the host function gets wrong.
    Wrong(
        "a window larger than its buffer",
        "pld.window of shape [3, 8] and fp32 takes 96 bytes; the buffer has 48, allocated at wrong.py:28",
        host=_host(
            "data = pld.window(data_buf, [NR, SIZE], dtype=pl.FP32)",
            "data = pld.window(data_buf, [NR, 2 * SIZE], dtype=pl.FP32)  # here",
        ),
    ),
    Wrong(
        "a window of another shape than the kernel's parameter",
        "kernel: parameter data takes shape [3, 4], got [4, 3]",
        host=_host("[NR, SIZE]", "[SIZE, NR]").replace("device=r)", "device=r)  # here"),
    ),
    Wrong(
        "a window of another dtype than the kernel's parameter",
        "kernel: parameter data takes dtype fp32, got int32",
        host=_host("[NR, SIZE], dtype=pl.FP32", "[NR, SIZE], dtype=pl.INT32").replace("device=r)", "device=r)  # here"),
    ),
    Wrong(
        "an input of another dtype than the host's parameter",
        "host: parameter x takes dtype fp32, got int32",
        dtype="np.int32",
        compiles="  # here",
    ),
    Wrong(
        "one device for all ranks",
        "kernel is dispatched to device=0 3 times, and nothing to the ranks 1, 2",
        host=_host("device=r)", "device=0)  # here"),
    ),
    Wrong(
        "a device that is not there",
        "kernel: device=3; the devices are 0 to 2",
        host=_host("device=r)", "device=r + 1)  # here"),
    ),
    Wrong(
        "a dispatch without a device",
        "kernel is called without device=, which means the one device there is, and there are 3; dispatch one to "
        "each rank: kernel(..., device=r)",
        host=_host(", device=r)", ")  # here"),
    ),
    Wrong(
        "a kernel that is not decorated",
        "plain is dispatched with device=, and is no kernel; decorate it with",
        before="\n\ndef plain(x, y, data, signal):\n    return pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], y)",
        host=_host("kernel(x[r], y[r], data, signal, device=r)", "plain(x[r], y[r], data, signal, device=r)  # here"),
    ),
    Wrong(
        "a buffer allocated in the loop",
        "allocate it once, before the loop over the ranks, and pass it to every rank",
        host=_host(
            "    signal = pld.window(signal_buf",
            "    signal_buf = pld.alloc_window_buffer(NR * 4)  # here\n    signal = pld.window(signal_buf",
        ),
    ),
]
