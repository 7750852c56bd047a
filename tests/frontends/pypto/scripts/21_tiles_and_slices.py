"""Step 21: parts of tiles, tensors and windows: valid shapes, assemble, slice, subscripts, matrix products, arrays."""

import argparse
import sys

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
parser.add_argument("--broken", action="store_true", help="a part of a window is sent before it is written")
args = parser.parse_args()
NR, SIZE = len(args.device.split(",")), 8
CONFIG = RunConfig(
    platform="a2a3sim", distributed_config=DistributedConfig(device_ids=[int(d) for d in args.device.split(",")])
)


@pl.jit.incore
def kernel(
    x: pl.Tensor[[2, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[4, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[2, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    me = pld.rank(pld.get_comm_ctx(data))
    counts = pl.array.create(NR, pl.INT32)
    counts[me] = 3
    with pl.at(level=pl.Level.CORE_GROUP):
        upper = pl.slice(data, [1, SIZE], [1, 0])
        part = pl.load(x, [0, 0], [1, SIZE], valid_shape=[1, counts[me]])
        upper = pl.store(pl.add(part, 1.0), [0, 0], upper)
        data[0:1, 4:] = pl.tensor.slice(x, [1, 4], [1, 4])
    if not args.broken:
        signal = pld.tensor.barrier(signal)
    row = pld.tile.remote_load(data, (me + 1) % NR, [1, 0], [1, SIZE], valid_shape=[1, 3])
    y = pl.assemble(y, row, [0, 0])
    y[1, 5] = pl.read(data, [0, 4]) + data[0, 5] + x[0][0:1][0]
    square = pl.matmul(
        pl.move(pl.load(x, [0, 0], [2, 2]), target_memory=pl.MemorySpace.Left), pl.load(x, [0, 2], [2, 2])
    )
    y = pl.store(pl.row_sum(square), [2, 0], y)
    if args.broken:
        signal = pld.tensor.barrier(signal)
    return y


@pl.jit.host
def host(x: pl.Tensor[[NR, 2, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 4, SIZE], pl.FP32]]):
    data_buf = pld.alloc_window_buffer(2 * SIZE * 4)
    signal_buf = pld.alloc_window_buffer(NR * 4)
    for r in pl.range(NR):
        data, signal = pld.window(data_buf, [2, SIZE], dtype=pl.FP32), pld.window(signal_buf, [NR, 1], dtype=pl.INT32)
        kernel(x[r], y[r], data, signal, device=r)
    return y


x = np.arange(NR * 2 * SIZE, dtype=np.float32).reshape(NR, 2, SIZE)
y = np.zeros((NR, 4, SIZE), np.float32)
host.compile(x, y, config=CONFIG)(x, y, config=CONFIG)
want = np.zeros_like(y)
want[:, 0, :3] = np.roll(x, -1, 0)[:, 0, :3] + 1
want[:, 1, 5] = x[:, 1, 4] + x[:, 1, 5] + x[:, 0, 0]
want[:, 2:, :1] = (x[:, :, :2] @ x[:, :, 2:4]).sum(-1, keepdims=True)
right = args.broken or np.array_equal(y, want)
print("OK" if right else "FAILED")
sys.exit(0 if right else 1)
