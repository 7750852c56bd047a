"""Step 4: a barrier, by hand and as one call: stage, meet everybody, read the right neighbour."""

import argparse
import sys

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from tensors import torch

SIZE = 16


def build_program(nr: int, mode: str):
    @pl.program
    class Barrier:
        @pl.function(type=pl.FunctionType.InCore)
        def hand(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            ctx = pld.get_comm_ctx(data)
            my_rank = pld.rank(ctx)
            data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
            for peer in pl.range(nr):
                if peer != my_rank:
                    pld.system.notify(signal, peer=peer, offsets=[my_rank, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            for src in pl.range(nr):
                if src != my_rank:
                    pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)
            recv = pld.tile.remote_load(data, peer=(my_rank + 1) % nr, offsets=[0, 0], shape=[1, SIZE])
            return pl.store(recv, [0, 0], y)

        @pl.function(type=pl.FunctionType.InCore)
        def builtin(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            my_rank = pld.rank(pld.get_comm_ctx(data))
            data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
            signal = pld.tensor.barrier(signal)
            recv = pld.tile.remote_load(data, peer=(my_rank + 1) % nr, offsets=[0, 0], shape=[1, SIZE])
            return pl.store(recv, [0, 0], y)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            inputs: pl.Tensor[[nr, 1, SIZE], pl.FP32],
            outputs: pl.Out[pl.Tensor[[nr, 1, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, 1, SIZE], pl.FP32]:
            data_buf = pld.alloc_window_buffer(SIZE * pl.FP32.get_byte())
            signal_buf = pld.alloc_window_buffer(nr * pl.INT32.get_byte())
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
                signal = pld.window(signal_buf, [nr, 1], dtype=pl.INT32)
                if mode == "hand":
                    self.hand(inputs[r], outputs[r], data, signal, device=r)
                else:
                    self.builtin(inputs[r], outputs[r], data, signal, device=r)
            return outputs

    return Barrier


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-p", "--platform", default="a2a3sim")
    parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
    parser.add_argument("--mode", choices=["hand", "builtin"], default="hand")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    device_ids = [int(d) for d in args.device.split(",")]
    nr = len(device_ids)

    compiled = ir.compile(
        build_program(nr, args.mode),
        platform=args.platform,
        distributed_config=DistributedConfig(device_ids=device_ids, num_sub_workers=0),
    )
    if args.compile_only:
        print(compiled.output_dir)
        return 0
    inputs = torch.arange(0, nr * SIZE, dtype=torch.float32).reshape(nr, 1, SIZE)
    outputs = torch.zeros(nr, 1, SIZE, dtype=torch.float32)
    compiled(inputs, outputs)

    if not torch.allclose(outputs, torch.roll(inputs, -1, 0), rtol=1e-5, atol=1e-5):
        print("FAILED: not the right neighbour's slice")
        return 1
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
