"""Step 22: a transfer in chunks, within a group: the last device is left out, where there are more than two."""

import argparse
import sys

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
parser.add_argument("--broken", action="store_true", help="the notify goes before the put")
args = parser.parse_args()
NR, SIZE = len(args.device.split(",")), 8
CONFIG = RunConfig(
    platform="a2a3sim", distributed_config=DistributedConfig(device_ids=[int(d) for d in args.device.split(",")])
)
GROUP = max(NR - 1, 2)


@pl.jit.incore
def push(
    x: pl.Tensor[[4, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[4, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[4, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[GROUP, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(data)
    me, size = pld.rank(ctx), pld.nranks(ctx)
    right, left = (me + 1) % size, (me - 1) % size
    if args.broken:
        pld.system.notify(signal, right, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.tensor.put(data, right, x, chunk_rows=2, chunk_cols=3, pipeline=True)
    if not args.broken:
        pld.system.notify(signal, right, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal, [left, 0], 1, cmp=pld.WaitCmp.Ge)
    return pld.tensor.get(y, me, data, chunk_rows=1)


@pl.jit.host
def host(x, y):
    data_buf = pld.alloc_window_buffer(4 * SIZE * 4)
    signal_buf = pld.alloc_window_buffer(GROUP * 4)
    for r in pl.range(GROUP):
        data, signal = (
            pld.window(data_buf, [4, SIZE], dtype=pl.FP32),
            pld.window(signal_buf, [GROUP, 1], dtype=pl.INT32),
        )
        push(x[r], y[r], data, signal, device=r)
    return y


x = np.arange(NR * 4 * SIZE, dtype=np.float32).reshape(NR, 4, SIZE)
y = np.zeros_like(x)
host.compile(x, y, config=CONFIG)(x, y, config=CONFIG)
right = args.broken or (np.array_equal(y[:GROUP], np.roll(x[:GROUP], 1, 0)) and not y[GROUP:].any())
print("OK" if right else "FAILED")
sys.exit(0 if right else 1)
