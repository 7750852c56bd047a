"""Step 5: read from the right neighbour, write to it, or add to everybody's."""

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
    class RemoteLoadStore:
        @pl.function(type=pl.FunctionType.InCore)
        def load(
            self,
            x: pl.Tensor[[1, SIZE], pl.INT32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.INT32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.INT32]],
            signal: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
            right: pl.Scalar[pl.INT32],
            left: pl.Scalar[pl.INT32],
        ) -> pl.Tensor[[1, SIZE], pl.INT32]:
            data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
            pld.system.notify(signal, peer=left, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)
            pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
            return pl.store(pld.remote_load(data, peer=right, offsets=[0, 0], shape=[1, SIZE]), [0, 0], y)

        @pl.function(type=pl.FunctionType.InCore)
        def store(
            self,
            x: pl.Tensor[[1, SIZE], pl.INT32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.INT32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.INT32]],
            signal: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
            right: pl.Scalar[pl.INT32],
            left: pl.Scalar[pl.INT32],
        ) -> pl.Tensor[[1, SIZE], pl.INT32]:
            tile = pl.load(x, [0, 0], [1, SIZE])
            data = pld.tile.remote_store(tile, data, peer=left, offsets=[0, 0])
            pld.system.notify(signal, peer=left, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
            return pl.store(pl.load(data, [0, 0], [1, SIZE]), [0, 0], y)

        @pl.function(type=pl.FunctionType.InCore)
        def add(
            self,
            x: pl.Tensor[[1, SIZE], pl.INT32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.INT32]],
            data: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.INT32]],
            signal: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]],
            right: pl.Scalar[pl.INT32],
            left: pl.Scalar[pl.INT32],
        ) -> pl.Tensor[[1, SIZE], pl.INT32]:
            tile = pl.load(x, [0, 0], [1, SIZE])
            for peer in pl.range(nr):
                data = pld.tile.remote_store(tile, data, peer=peer, offsets=[0, 0], atomic=pld.AtomicType.Add)
                pld.system.notify(signal, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            pld.system.wait(signal, offsets=[0, 0], expected=nr, cmp=pld.WaitCmp.Ge)
            return pl.store(pl.load(data, [0, 0], [1, SIZE]), [0, 0], y)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            inputs: pl.Tensor[[nr, 1, SIZE], pl.INT32],
            outputs: pl.Out[pl.Tensor[[nr, 1, SIZE], pl.INT32]],
        ) -> pl.Tensor[[nr, 1, SIZE], pl.INT32]:
            data_buf = pld.alloc_window_buffer(SIZE * pl.INT32.get_byte())
            signal_buf = pld.alloc_window_buffer(pl.INT32.get_byte())
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, SIZE], dtype=pl.INT32)
                signal = pld.window(signal_buf, [1, 1], dtype=pl.INT32)
                right = (r + 1) % nr
                left = (r - 1) % nr
                if mode == "load":
                    self.load(inputs[r], outputs[r], data, signal, right, left, device=r)
                elif mode == "store":
                    self.store(inputs[r], outputs[r], data, signal, right, left, device=r)
                else:
                    self.add(inputs[r], outputs[r], data, signal, right, left, device=r)
            return outputs

    return RemoteLoadStore


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-p", "--platform", default="a2a3sim")
    parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
    parser.add_argument("--mode", choices=["load", "store", "add"], default="load")
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
    inputs = torch.arange(0, nr * SIZE, dtype=torch.int32).reshape(nr, 1, SIZE)
    outputs = torch.zeros(nr, 1, SIZE, dtype=torch.int32)
    compiled(inputs, outputs)

    golden = inputs * 0 + inputs.sum(0, dtype=torch.int32) if args.mode == "add" else torch.roll(inputs, -1, 0)
    if not torch.allclose(outputs, golden, rtol=1e-5, atol=1e-5):
        print(f"FAILED: not the golden of {args.mode}")
        return 1
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
