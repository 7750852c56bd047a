"""Step 11: all that the steps before did is one call; here with each operator, by a mesh or by a ring."""

import argparse
import sys

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig
from tensors import torch

SIZE = 16
NR = pl.dynamic("NR")
ROUNDS = pl.dynamic("ROUNDS")


@pl.jit.incore
def mesh_sum(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    nranks = pld.nranks(pld.get_comm_ctx(data))
    data = pl.store(pl.load(x, [0, 0], [nranks, SIZE]), [0, 0], data)
    data = pld.tensor.allreduce(data, signal)
    return pl.store(pl.load(data, [0, 0], [nranks, SIZE]), [0, 0], y)


@pl.jit.incore
def mesh_max(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    nranks = pld.nranks(pld.get_comm_ctx(data))
    data = pl.store(pl.load(x, [0, 0], [nranks, SIZE]), [0, 0], data)
    data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Max)
    return pl.store(pl.load(data, [0, 0], [nranks, SIZE]), [0, 0], y)


@pl.jit.incore
def ring_sum(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[ROUNDS, NR], pl.INT32]],
):
    nranks = pld.nranks(pld.get_comm_ctx(data))
    data = pl.store(pl.load(x, [0, 0], [nranks, SIZE]), [0, 0], data)
    data = pld.tensor.allreduce(data, signal, mode="ring")
    return pl.store(pl.load(data, [0, 0], [nranks, SIZE]), [0, 0], y)


@pl.jit.host
def mesh_sum_host(x: pl.Tensor[[NR, NR, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]]):
    nr = pld.world_size()
    data_buf = pld.alloc_window_buffer(nr * SIZE * pl.FP32.get_byte())
    signal_buf = pld.alloc_window_buffer(nr * pl.INT32.get_byte())
    for r in pl.range(nr):
        data = pld.window(data_buf, [nr, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [nr, 1], dtype=pl.INT32)
        mesh_sum(x[r], y[r], data, signal, device=r)
    return y


@pl.jit.host
def mesh_max_host(x: pl.Tensor[[NR, NR, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]]):
    nr = pld.world_size()
    data_buf = pld.alloc_window_buffer(nr * SIZE * pl.FP32.get_byte())
    signal_buf = pld.alloc_window_buffer(nr * pl.INT32.get_byte())
    for r in pl.range(nr):
        data = pld.window(data_buf, [nr, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [nr, 1], dtype=pl.INT32)
        mesh_max(x[r], y[r], data, signal, device=r)
    return y


@pl.jit.host
def ring_sum_host(x: pl.Tensor[[NR, NR, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]]):
    nr = pld.world_size()
    rounds = 2 * (nr - 1)
    data_buf = pld.alloc_window_buffer(nr * SIZE * pl.FP32.get_byte())
    signal_buf = pld.alloc_window_buffer(rounds * nr * pl.INT32.get_byte())
    for r in pl.range(nr):
        data = pld.window(data_buf, [nr, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [rounds, nr], dtype=pl.INT32)
        ring_sum(x[r], y[r], data, signal, device=r)
    return y


HOSTS = {"mesh": mesh_sum_host, "max": mesh_max_host, "ring": ring_sum_host}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-p", "--platform", default="a2a3sim")
    parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
    parser.add_argument("--mode", choices=HOSTS, default="mesh")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    device_ids = [int(d) for d in args.device.split(",")]
    nr = len(device_ids)

    x = torch.arange(0, nr * nr * SIZE, dtype=torch.float32).reshape(nr, nr, SIZE)
    y = torch.zeros(nr, nr, SIZE, dtype=torch.float32)
    distributed = DistributedConfig(device_ids=device_ids, num_sub_workers=0)
    compiled = HOSTS[args.mode].compile(x, y, config=RunConfig(platform=args.platform, distributed_config=distributed))
    if args.compile_only:
        print(compiled.output_dir)
        return 0
    compiled(x, y, config=RunConfig(platform=args.platform))

    golden = torch.amax(x, 0) if args.mode == "max" else x.sum(0)
    if not torch.allclose(y, y * 0 + golden, rtol=1e-5, atol=1e-5):
        print(f"FAILED: not the golden of {args.mode}")
        return 1
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
