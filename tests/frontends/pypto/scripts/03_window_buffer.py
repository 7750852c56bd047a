"""Step 3: a window buffer, and two typed views of the same bytes; every rank uses its own alone."""

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
    class WindowBuffer:
        @pl.function(type=pl.FunctionType.InCore)
        def swap_halves(
            self,
            x: pl.Tensor[[1, 2 * SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, 2 * SIZE], pl.FP32]],
            flat: pl.InOut[pld.DistributedTensor[[1, 2 * SIZE], pl.FP32]],
            rows: pl.InOut[pld.DistributedTensor[[2, SIZE], pl.FP32]],
        ) -> pl.Tensor[[1, 2 * SIZE], pl.FP32]:
            flat = pl.store(pl.load(x, [0, 0], [1, 2 * SIZE]), [0, 0], flat)
            for half in pl.range(2):
                tile = pl.load(rows, [half, 0], [1, SIZE])
                y = pl.store(tile, [0, (1 - half) * SIZE], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(
            self,
            x: pl.Tensor[[1, 2 * SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, 2 * SIZE], pl.FP32]],
            flat: pl.InOut[pld.DistributedTensor[[1, 2 * SIZE], pl.FP32]],
            rows: pl.InOut[pld.DistributedTensor[[2, SIZE], pl.FP32]],
        ) -> pl.Tensor[[1, 2 * SIZE], pl.FP32]:
            return self.swap_halves(x, y, flat, rows)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            inputs: pl.Tensor[[nr, 1, 2 * SIZE], pl.FP32],
            outputs: pl.Out[pl.Tensor[[nr, 1, 2 * SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, 1, 2 * SIZE], pl.FP32]:
            if mode == "bytes":
                buf = pld.alloc_window_buffer(2 * SIZE * pl.FP32.get_byte())
            else:
                buf = pld.alloc_window_buffer([2, SIZE], dtype=pl.FP32)
            for r in pl.range(pld.world_size()):
                flat = pld.window(buf, [1, 2 * SIZE], dtype=pl.FP32)
                rows = pld.window(buf, [2, SIZE], dtype=pl.FP32)
                self.chip(inputs[r], outputs[r], flat, rows, device=r)
            return outputs

    return WindowBuffer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-p", "--platform", default="a2a3sim")
    parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
    parser.add_argument("--mode", choices=["bytes", "shape"], default="bytes")
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
    inputs = torch.arange(0, nr * 2 * SIZE, dtype=torch.float32).reshape(nr, 1, 2 * SIZE)
    outputs = torch.zeros(nr, 1, 2 * SIZE, dtype=torch.float32)
    compiled(inputs, outputs)

    if not torch.allclose(outputs, torch.roll(inputs, SIZE, 2), rtol=1e-5, atol=1e-5):
        print("FAILED: the halves are not swapped")
        return 1
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
