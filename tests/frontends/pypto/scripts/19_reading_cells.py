"""Step 19: a kernel reads the cells of its signal, one by one and as a tile, after it has waited for them."""

import argparse
import sys

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
parser.add_argument("--broken", action="store_true", help="cells are read before they are waited for")
args = parser.parse_args()
NR, SIZE = len(args.device.split(",")), 8
CONFIG = RunConfig(
    platform="a2a3sim", distributed_config=DistributedConfig(device_ids=[int(d) for d in args.device.split(",")])
)


@pl.jit.incore
def kernel(
    y: pl.Out[pl.Tensor[[2, NR], pl.INT32]],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    me = pld.rank(pld.get_comm_ctx(signal))
    for peer in pl.range(NR):
        if peer != me:
            pld.system.notify(signal, peer=peer, offsets=[me, 0], value=me + 7, op=pld.NotifyOp.Set)
    early = pl.read(signal, [(me + 1) % NR, 0]) if args.broken else 0
    for src in pl.range(NR):
        if src != me:
            pld.system.wait(signal, offsets=[src, 0], expected=src + 7, cmp=pld.WaitCmp.Eq)
    for src in pl.range(NR):
        pl.write(y, [0, src], pl.read(signal, [src, 0]) + early)
    return pl.store(pl.transpose(pl.load(signal, [0, 0], [NR, 1]), 0, 1), [1, 0], y)


@pl.jit.host
def host(y: pl.Out[pl.Tensor[[NR, 2, NR], pl.INT32]]):
    signal_buf = pld.alloc_window_buffer([NR, 1], dtype=pl.INT32)
    for r in pl.range(NR):
        kernel(y[r], pld.window(signal_buf, [NR], dtype=pl.INT32), device=r)  # [NR] for [NR, 1]
    return y


y = np.zeros((NR, 2, NR), np.int32)
host.compile(y, config=CONFIG)(y, config=CONFIG)
want = (np.arange(NR) + 7) * (1 - np.eye(NR, dtype=int))
right = args.broken or (np.array_equal(y[:, 0], want) and np.array_equal(y[:, 1], want))
print("OK" if right else "FAILED")
sys.exit(0 if right else 1)
