"""Step 18: a loop that carries values hands each stage of a pipeline on; extents are computed from a dynamic one."""

import argparse
import sys

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
parser.add_argument("--broken", action="store_true", help="a stage does not wait for the one before")
args = parser.parse_args()
NR, SIZE = len(args.device.split(",")), 8
CONFIG = RunConfig(
    platform="a2a3sim", distributed_config=DistributedConfig(device_ids=[int(d) for d in args.device.split(",")])
)
M = pl.dynamic("M")


@pl.jit.incore
def stages(
    x: pl.Tensor[[M, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, M * SIZE], pl.FP32]],
    data: pld.DistributedTensor[[M, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[M, 1], pl.INT32],
):
    me, step = pld.rank(pld.get_comm_ctx(data)), pl.const(2, pl.INT32)
    right = (me + 1) % NR
    for c, (held, most) in pl.range(0, M, 1, init_values=(data, pl.load(x, [0, 0], [1, SIZE]))):
        window = pld.tile.remote_store(pl.load(x, [c, 0], [1, SIZE]), held, right, [c, 0])
        pld.system.notify(signal, right, [c, 0], step, op=pld.NotifyOp.Set)
        if not args.broken:
            pld.system.wait(signal, [c, 0], pl.min(step, 9), cmp=pld.WaitCmp.Ge)
        staged, total = pl.yield_(window, pl.maximum(most, pl.tile.load(window, [c, 0], [1, SIZE])))
    for c in pl.unroll(M):
        y = pl.tensor.store(pl.load(staged, [c, 0], [1, SIZE]), [0, c * SIZE], y)
    return pl.store(total, [0, (M - 3) * SIZE], y)


@pl.jit.host
def host(x: pl.Tensor[[NR, M, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, M * SIZE], pl.FP32]]):
    data_buf = pld.alloc_window_buffer(M * SIZE * pl.FP32.get_byte())
    signal_buf = pld.alloc_window_buffer([M, 1], dtype=pl.INT32)
    for r in pl.range(NR):
        data, signal = pld.window(data_buf, [M, SIZE], dtype=pl.FP32), pld.window(signal_buf, [M, 1], dtype=pl.INT32)
        stages(x[r], y[r], data, signal, device=r)
    return y


x = np.arange(NR * 3 * SIZE, dtype=np.float32).reshape(NR, 3, SIZE)
y = np.zeros((NR, 1, 3 * SIZE), np.float32)
host.compile(x, y, config=CONFIG)(x, y, config=CONFIG)
left = np.roll(x, 1, 0)
want = left.copy()
want[:, 0] = np.maximum(x[:, 0], left.max(1))
right = np.array_equal(y.reshape(want.shape), want)
print("OK" if right else "FAILED")
sys.exit(0 if right else 1)
