"""Step 13: all-gather: everybody gets everybody's chunk; by hand (a push), and as one call."""

import argparse
import sys

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from tensors import torch

SIZE = 32


def build_program(nr: int, mode: str):
    @pl.program
    class AllGather:
        @pl.function(type=pl.FunctionType.InCore)
        def hand(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, SIZE], pl.FP32]],
            gathered: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[nr, SIZE], pl.FP32]:
            my_rank = pld.rank(pld.get_comm_ctx(gathered))
            chunk = pl.load(x, [0, 0], [1, SIZE])
            for peer in pl.range(nr):
                gathered = pld.tile.remote_store(chunk, gathered, peer=peer, offsets=[my_rank, 0])
            for peer in pl.range(nr):
                if peer != my_rank:
                    pld.system.notify(signal, peer=peer, offsets=[my_rank, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            for src in pl.range(nr):
                if src != my_rank:
                    pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)
            for src in pl.range(nr):  # give the credits back: they are zero again in the end
                if src != my_rank:
                    pld.system.notify(signal, peer=my_rank, offsets=[src, 0], value=-1, op=pld.NotifyOp.AtomicAdd)
            return pl.store(pl.load(gathered, [0, 0], [nr, SIZE]), [0, 0], y)

        @pl.function(type=pl.FunctionType.InCore)
        def builtin(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, SIZE], pl.FP32]],
            chunk: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            gathered: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[nr, SIZE], pl.FP32]:
            chunk = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], chunk)
            gathered = pld.tensor.allgather(chunk, gathered, signal)
            return pl.store(pl.load(gathered, [0, 0], [nr, SIZE]), [0, 0], y)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            inputs: pl.Tensor[[nr, 1, SIZE], pl.FP32],
            outputs: pl.Out[pl.Tensor[[nr, nr, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, nr, SIZE], pl.FP32]:
            chunk_buf = pld.alloc_window_buffer(SIZE * pl.FP32.get_byte())
            gathered_buf = pld.alloc_window_buffer(nr * SIZE * pl.FP32.get_byte())
            signal_buf = pld.alloc_window_buffer(nr * pl.INT32.get_byte())
            for r in pl.range(pld.world_size()):
                gathered = pld.window(gathered_buf, [nr, SIZE], dtype=pl.FP32)
                signal = pld.window(signal_buf, [nr, 1], dtype=pl.INT32)
                if mode == "hand":
                    self.hand(inputs[r], outputs[r], gathered, signal, device=r)
                else:
                    chunk = pld.window(chunk_buf, [1, SIZE], dtype=pl.FP32)
                    self.builtin(inputs[r], outputs[r], chunk, gathered, signal, device=r)
            return outputs

    return AllGather


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
    outputs = torch.zeros(nr, nr, SIZE, dtype=torch.float32)
    compiled(inputs, outputs)

    if not torch.allclose(outputs, torch.stack([inputs.reshape(nr, SIZE)] * nr), rtol=1e-5, atol=1e-5):
        print("FAILED: not everybody's chunks")
        return 1
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
