"""Step 20: a prepared program is called step by step; a sub-worker of the host checks what it gives."""

import argparse
import sys

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
parser.add_argument("--broken", action="store_true", help="a rank reads its peer before the barrier")
args = parser.parse_args()
NR, SIZE = len(args.device.split(",")), 8
CONFIG = RunConfig(
    platform="a2a3sim", distributed_config=DistributedConfig(device_ids=[int(d) for d in args.device.split(",")])
)


@pl.jit.incore
def step(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    me = pld.rank(pld.get_comm_ctx(data))
    data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
    if not args.broken:
        signal = pld.tensor.barrier(signal)
    y = pl.store(pld.tile.remote_load(data, peer=(me + 1) % NR, offsets=[0, 0], shape=[1, SIZE]), [0, 0], y)
    signal = pld.tensor.barrier(signal)
    return y


@pl.jit.incore
def double(x: pl.Tensor[[1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]]):
    return pl.store(pl.muls(pl.load(x, [0, 0], [1, SIZE]), 2.0), [0, 0], y)


@pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
def check(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Tensor[[NR, 1, SIZE], pl.FP32]):
    checked.append(bool(np.array_equal(np.asarray(y), np.roll(np.asarray(x), -1, 0))))


@pl.jit.host
def host(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    data_buf = pld.alloc_window_buffer(SIZE * 4)
    signal_buf = pld.alloc_window_buffer(NR * 4)
    for r in pl.range(NR):
        data, signal = pld.window(data_buf, [1, SIZE], dtype=pl.FP32), pld.window(signal_buf, [NR, 1], dtype=pl.INT32)
        step(x[r], y[r], data, signal, device=r)
    check(x, y)
    return y


@pl.jit.host
def alone(x: pl.Tensor[[1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]]):
    half = double(x, pl.create_tensor([1, SIZE], dtype=pl.FP32))  # without device=: the one that there is
    return double(half, y)


checked = []
x = np.zeros((NR, 1, SIZE), np.float32)
y = np.zeros_like(x)
with host.compile(x, y, config=CONFIG).prepare() as rt:
    for number in range(3):
        x[...] = np.arange(NR, dtype=np.float32).reshape(NR, 1, 1) + number
        rt(x, y, config=CONFIG)
alone.compile(x[0], y[0], config=RunConfig(distributed_config=DistributedConfig(device_ids=[0])))(x[0], y[0])
right = args.broken or (checked == [True] * 3 and np.array_equal(y[0], 4 * x[0]))
print("OK" if right else "FAILED")
sys.exit(0 if right else 1)
