"""Step 17: collectives in the host function, between dispatches: each rank runs them in its turn."""

import argparse
import sys

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
parser.add_argument("--broken", action="store_true", help="no barrier before peers are read")
args = parser.parse_args()
NR, SIZE = len(args.device.split(",")), 8
CONFIG = RunConfig(
    platform="a2a3sim", distributed_config=DistributedConfig(device_ids=[int(d) for d in args.device.split(",")])
)


@pl.jit.incore
def publish(x, data):
    return pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)


@pl.jit.incore
def consume(data, y, peer):
    tile = pl.load(data, [0, 0], [1, SIZE])
    return pl.store(pl.add(tile, pld.tile.remote_load(data, peer, [0, 0], [1, SIZE])), [0, 0], y)


@pl.jit.incore
def copy(gathered, z):
    return pl.store(pl.load(gathered, [0, 0], [NR, SIZE]), [0, 0], z)


@pl.jit.host
def host(x, y, z):
    nr = pld.system.world_size()
    buf, gathered_buf = (pld.tensor.alloc_window_buffer([rows, SIZE], dtype=pl.FP32) for rows in (1, NR))
    signal_buf = pld.alloc_window_buffer(nr * pl.INT32.get_byte())
    ring_buf = pld.alloc_window_buffer([2 * (nr - 1) + 1, nr], dtype=pl.INT32)
    data = pld.tensor.window(buf, [1, SIZE], dtype=pl.FP32)
    gathered = pld.window(gathered_buf, [NR, SIZE], dtype=pl.FP32)
    for r in pl.range(nr):
        publish(x[r], data, device=r)
    data = pld.tensor.allreduce(data, op=pld.ReduceOp.Sum, core_num=2)  # a signal is made for the call
    ring = pld.window(ring_buf, [2 * (nr - 1) + 1, nr], dtype=pl.INT32)
    data = pld.tensor.allreduce(data, ring, op=pld.ReduceOp.Sum, mode="ring")
    if not args.broken:
        pld.tensor.barrier(pld.window(signal_buf, [nr], dtype=pl.INT32))
    for r in pl.range(nr):
        consume(data, y[r], (r + 1) % nr, device=r)
    gathered = pld.tensor.allgather(x, gathered)
    for r in pl.range(nr):
        copy(gathered, z[r], device=r)
    return y


x = np.arange(NR * SIZE, dtype=np.float32).reshape(NR, 1, SIZE)
y, z = np.zeros_like(x), np.zeros((NR, NR, SIZE), np.float32)
host.compile(x, y, z, config=CONFIG)(x, y, z, config=CONFIG)
right = args.broken or (np.allclose(y, 2 * NR * x.sum(0)) and all(np.array_equal(each, x[:, 0]) for each in z))
print("OK" if right else "FAILED")
sys.exit(0 if right else 1)
