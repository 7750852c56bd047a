"""Step 10: all-reduce by a ring: in each round every rank reads one segment of its left neighbour."""

import argparse
import sys

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from tensors import torch

SIZE = 16


def build_program(nr: int, mode: str):
    rounds = 2 * (nr - 1)

    @pl.program
    class AllReduceRing:
        @pl.function(type=pl.FunctionType.InCore)
        def hand(
            self,
            x: pl.Tensor[[1, nr * SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, nr * SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
            ready: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
        ) -> pl.Tensor[[1, nr * SIZE], pl.FP32]:
            my_rank = pld.rank(pld.get_comm_ctx(data))
            left = (my_rank - 1) % nr
            right = (my_rank + 1) % nr
            for c in pl.range(nr):
                data = pl.store(pl.load(x, [0, c * SIZE], [1, SIZE]), [c, 0], data)
            for step in pl.range(rounds):
                segment = (my_rank - 1 - step) % nr
                pld.system.notify(ready, peer=right, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
                pld.system.wait(ready, offsets=[0, 0], expected=step + 1, cmp=pld.WaitCmp.Ge)
                recv = pld.tile.remote_load(data, peer=left, offsets=[segment, 0], shape=[1, SIZE])
                if step < nr - 1:
                    recv = pl.add(pl.load(data, [segment, 0], [1, SIZE]), recv)
                data = pl.store(recv, [segment, 0], data)
            pld.system.notify(ready, peer=my_rank, offsets=[0, 0], value=-rounds, op=pld.NotifyOp.AtomicAdd)
            for c in pl.range(nr):
                y = pl.store(pl.load(data, [c, 0], [1, SIZE]), [0, c * SIZE], y)
            return y

        @pl.function(type=pl.FunctionType.InCore)
        def builtin(
            self,
            x: pl.Tensor[[1, nr * SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, nr * SIZE], pl.FP32]],
            data: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[rounds, nr], pl.INT32]],
        ) -> pl.Tensor[[1, nr * SIZE], pl.FP32]:
            for c in pl.range(nr):
                data = pl.store(pl.load(x, [0, c * SIZE], [1, SIZE]), [c, 0], data)
            data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum, mode="ring")
            for c in pl.range(nr):
                y = pl.store(pl.load(data, [c, 0], [1, SIZE]), [0, c * SIZE], y)
            return y

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            inputs: pl.Tensor[[nr, 1, nr * SIZE], pl.FP32],
            outputs: pl.Out[pl.Tensor[[nr, 1, nr * SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, 1, nr * SIZE], pl.FP32]:
            data_buf = pld.alloc_window_buffer(nr * SIZE * pl.FP32.get_byte())
            signal_buf = pld.alloc_window_buffer(rounds * nr * pl.INT32.get_byte())
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [nr, SIZE], dtype=pl.FP32)
                if mode == "hand":
                    ready = pld.window(signal_buf, [1, 1], dtype=pl.INT32)
                    self.hand(inputs[r], outputs[r], data, ready, device=r)
                else:
                    signal = pld.window(signal_buf, [rounds, nr], dtype=pl.INT32)
                    self.builtin(inputs[r], outputs[r], data, signal, device=r)
            return outputs

    return AllReduceRing


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
    width = nr * SIZE
    inputs = torch.stack([torch.arange(100 * r, 100 * r + width, dtype=torch.float32) for r in range(nr)])
    inputs = inputs.reshape(nr, 1, width)
    outputs = torch.zeros(nr, 1, width, dtype=torch.float32)
    compiled(inputs, outputs)

    if not torch.allclose(outputs, outputs * 0 + inputs.sum(0), rtol=1e-5, atol=1e-5):
        print("FAILED: not everybody's sum")
        return 1
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
