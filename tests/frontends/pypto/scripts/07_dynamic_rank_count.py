"""Step 7: one program for any number of ranks; a kernel asks how many there are."""

import argparse
import sys

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig
from tensors import torch

SIZE = 16
NR = pl.dynamic("NR")


@pl.jit.incore
def meet(signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]], rounds: pl.Scalar[pl.INT32]):
    ctx = pld.get_comm_ctx(signal)
    nranks = pld.nranks(ctx)
    if nranks == 1:
        return
    distance = 1
    while distance < nranks:
        peer = (pld.rank(ctx) + distance) % nranks
        pld.system.notify(signal, peer=peer, offsets=[distance - 1, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(signal, offsets=[distance - 1, 0], expected=rounds, cmp=pld.WaitCmp.Ge)
        distance *= 2


@pl.jit.incore
def weighted_sum(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(data)
    my_rank, nranks = pld.rank(ctx), pld.nranks(ctx)
    data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
    meet(signal, 1)
    acc = pl.mul(pl.load(data, [0, 0], [1, SIZE]), my_rank + 1)
    for step in pl.range(1, nranks):
        peer = (my_rank + step) % nranks
        recv = pld.tile.remote_load(data, peer=peer, offsets=[0, 0], shape=[1, SIZE])
        acc = pl.add(acc, pl.mul(recv, peer + 1))
    return pl.store(acc, [0, 0], y)


@pl.jit
def chip(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    return weighted_sum(x, y, data, signal)


@pl.jit.host
def host(inputs: pl.Tensor[[NR, 1, SIZE], pl.FP32], outputs: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    nr = pld.world_size()
    data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([nr, 1], dtype=pl.INT32)
    for r in pl.range(nr):
        data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [nr, 1], dtype=pl.INT32)
        chip(inputs[r], outputs[r], data, signal, device=r)
    return outputs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-p", "--platform", default="a2a3sim")
    parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
    parser.add_argument("--mode", choices=["hand"], default="hand")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    device_ids = [int(d) for d in args.device.split(",")]
    nr = len(device_ids)

    inputs = torch.arange(0, nr * SIZE, dtype=torch.float32).reshape(nr, 1, SIZE)
    outputs = torch.zeros(nr, 1, SIZE, dtype=torch.float32)
    distributed = DistributedConfig(device_ids=device_ids, num_sub_workers=0)
    compiled = host.compile(inputs, outputs, config=RunConfig(platform=args.platform, distributed_config=distributed))
    if args.compile_only:
        print(compiled.output_dir)
        return 0
    compiled(inputs, outputs, config=RunConfig(platform=args.platform))

    weights = torch.arange(1, nr + 1, dtype=torch.float32).reshape(nr, 1, 1)
    golden = outputs * 0 + (inputs * weights).sum(0)
    if not torch.allclose(outputs, golden, rtol=1e-5, atol=1e-5):
        print("FAILED: not the weighted sum")
        return 1
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
