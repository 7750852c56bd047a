"""Step 16: an optimizer step on partitioned gradients: reduce-scatter, update the own slice, all-gather."""

import argparse
import sys

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig
from tensors import torch

SIZE = 16
RATE = 0.5
NR = pl.dynamic("NR")


def build_program(nr: int):
    @pl.program
    class OptimizerStep:
        @pl.function(type=pl.FunctionType.InCore)
        def meet(self, signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]], expected: pl.Scalar[pl.INT32]):
            my_rank = pld.rank(pld.get_comm_ctx(signal))
            for peer in pl.range(nr):
                if peer != my_rank:
                    pld.system.notify(signal, peer=peer, offsets=[my_rank, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            for src in pl.range(nr):
                if src != my_rank:
                    pld.system.wait(signal, offsets=[src, 0], expected=expected, cmp=pld.WaitCmp.Ge)

        @pl.function(type=pl.FunctionType.InCore)
        def step(
            self,
            grads: pl.Tensor[[nr, SIZE], pl.FP32],
            weights: pl.InOut[pl.Tensor[[nr, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[nr, SIZE], pl.FP32]:
            my_rank = pld.rank(pld.get_comm_ctx(data))
            data = pl.store(pl.load(grads, [0, 0], [nr, SIZE]), [0, 0], data)
            self.meet(signal, 1)
            acc = pl.load(data, [my_rank, 0], [1, SIZE])
            for peer in pl.range(nr):
                if peer != my_rank:
                    acc = pl.add(acc, pld.tile.remote_load(data, peer=peer, offsets=[my_rank, 0], shape=[1, SIZE]))
            updated = pl.sub(pl.load(weights, [my_rank, 0], [1, SIZE]), pl.mul(acc, RATE))
            data = pl.store(updated, [my_rank, 0], data)
            self.meet(signal, 2)
            for src in pl.range(nr):
                part = pld.tile.remote_load(data, peer=src, offsets=[src, 0], shape=[1, SIZE])
                weights = pl.store(part, [src, 0], weights)
            return weights

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            grads: pl.Tensor[[nr, nr, SIZE], pl.FP32],
            weights: pl.InOut[pl.Tensor[[nr, nr, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, nr, SIZE], pl.FP32]:
            data_buf = pld.alloc_window_buffer(nr * SIZE * pl.FP32.get_byte())
            signal_buf = pld.alloc_window_buffer(nr * pl.INT32.get_byte())
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [nr, SIZE], dtype=pl.FP32)
                signal = pld.window(signal_buf, [nr, 1], dtype=pl.INT32)
                self.step(grads[r], weights[r], data, signal, device=r)
            return weights

    return OptimizerStep


@pl.jit.incore
def reduce_and_update(
    grads: pl.Tensor[[NR, SIZE], pl.FP32],
    weights: pl.InOut[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(data)
    my_rank, nranks = pld.rank(ctx), pld.nranks(ctx)
    data = pl.store(pl.load(grads, [0, 0], [nranks, SIZE]), [0, 0], data)
    data = pld.tensor.reduce_scatter(data, signal)
    total = pl.load(data, [my_rank, 0], [1, SIZE])
    return pl.store(pl.sub(pl.load(weights, [my_rank, 0], [1, SIZE]), pl.mul(total, RATE)), [my_rank, 0], weights)


@pl.jit.incore
def gather(
    weights: pl.InOut[pl.Tensor[[NR, SIZE], pl.FP32]],
    chunk: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    gathered: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    ctx = pld.get_comm_ctx(gathered)
    my_rank, nranks = pld.rank(ctx), pld.nranks(ctx)
    chunk = pl.store(pl.load(weights, [my_rank, 0], [1, SIZE]), [0, 0], chunk)
    gathered = pld.tensor.allgather(chunk, gathered, signal)
    return pl.store(pl.load(gathered, [0, 0], [nranks, SIZE]), [0, 0], weights)


@pl.jit
def one_step(
    grads: pl.Tensor[[NR, SIZE], pl.FP32],
    weights: pl.InOut[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    chunk: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
    gathered: pl.InOut[pld.DistributedTensor[[NR, SIZE], pl.FP32]],
    signal: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    weights = reduce_and_update(grads, weights, data, signal)
    return gather(weights, chunk, gathered, signal)


@pl.jit.host
def builtin_host(grads: pl.Tensor[[NR, NR, SIZE], pl.FP32], weights: pl.InOut[pl.Tensor[[NR, NR, SIZE], pl.FP32]]):
    nr = pld.world_size()
    data_buf = pld.alloc_window_buffer(nr * SIZE * pl.FP32.get_byte())
    chunk_buf = pld.alloc_window_buffer(SIZE * pl.FP32.get_byte())
    gathered_buf = pld.alloc_window_buffer(nr * SIZE * pl.FP32.get_byte())
    signal_buf = pld.alloc_window_buffer(nr * pl.INT32.get_byte())
    for r in pl.range(nr):
        data = pld.window(data_buf, [nr, SIZE], dtype=pl.FP32)
        chunk = pld.window(chunk_buf, [1, SIZE], dtype=pl.FP32)
        gathered = pld.window(gathered_buf, [nr, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [nr, 1], dtype=pl.INT32)
        one_step(grads[r], weights[r], data, chunk, gathered, signal, device=r)
    return weights


@pl.jit.host
def loops_host(grads: pl.Tensor[[NR, NR, SIZE], pl.FP32], weights: pl.InOut[pl.Tensor[[NR, NR, SIZE], pl.FP32]]):
    nr = pld.world_size()
    data_buf = pld.alloc_window_buffer(nr * SIZE * pl.FP32.get_byte())
    chunk_buf = pld.alloc_window_buffer(SIZE * pl.FP32.get_byte())
    gathered_buf = pld.alloc_window_buffer(nr * SIZE * pl.FP32.get_byte())
    signal_buf = pld.alloc_window_buffer(nr * pl.INT32.get_byte())
    for r in pl.range(nr):
        data = pld.window(data_buf, [nr, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [nr, 1], dtype=pl.INT32)
        reduce_and_update(grads[r], weights[r], data, signal, device=r)
    for r in pl.range(nr):
        chunk = pld.window(chunk_buf, [1, SIZE], dtype=pl.FP32)
        gathered = pld.window(gathered_buf, [nr, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [nr, 1], dtype=pl.INT32)
        gather(weights[r], chunk, gathered, signal, device=r)
    return weights


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-p", "--platform", default="a2a3sim")
    parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
    parser.add_argument("--mode", choices=["hand", "builtin", "loops"], default="hand")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    device_ids = [int(d) for d in args.device.split(",")]
    nr = len(device_ids)

    grads = torch.arange(0, nr * nr * SIZE, dtype=torch.float32).reshape(nr, nr, SIZE)
    before = torch.arange(0, nr * SIZE, dtype=torch.float32).reshape(nr, SIZE)
    weights = torch.stack([before] * nr)
    distributed = DistributedConfig(device_ids=device_ids, num_sub_workers=0)
    if args.mode == "hand":
        compiled = ir.compile(build_program(nr), platform=args.platform, distributed_config=distributed)
        options = {}
    else:
        host = builtin_host if args.mode == "builtin" else loops_host
        compiled = host.compile(
            grads, weights, config=RunConfig(platform=args.platform, distributed_config=distributed)
        )
        options = {"config": RunConfig(platform=args.platform)}
    if args.compile_only:
        print(compiled.output_dir)
        return 0
    compiled(grads, weights, **options)

    golden = before - RATE * grads.sum(0)
    if not torch.allclose(weights, weights * 0 + golden, rtol=1e-5, atol=1e-5):
        print("FAILED: not the weights of an unpartitioned step")
        return 1
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
