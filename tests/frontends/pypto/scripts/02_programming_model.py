"""Step 2: one program in the two forms, a class or functions: every rank scales its slice and adds its number."""

import argparse
import sys

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig
from tensors import torch

SIZE = 16
SCALE = 2.0
NR = pl.dynamic("NR")


def build_program(nr: int):
    @pl.program
    class ScaleAndAdd:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            rank: pl.Scalar[pl.INT32],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            tile = pl.load(x, [0, 0], [1, SIZE])
            return pl.store(pl.add(pl.mul(tile, SCALE), rank), [0, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            rank: pl.Scalar[pl.INT32],
        ) -> pl.Tensor[[1, SIZE], pl.FP32]:
            return self.kernel(x, y, rank)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            inputs: pl.Tensor[[nr, 1, SIZE], pl.FP32],
            outputs: pl.Out[pl.Tensor[[nr, 1, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, 1, SIZE], pl.FP32]:
            for r in pl.range(pld.world_size()):
                self.chip(inputs[r], outputs[r], r, device=r)
            return outputs

    return ScaleAndAdd


@pl.jit.incore
def kernel(x: pl.Tensor[[1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]], rank: pl.Scalar[pl.INT32]):
    tile = pl.load(x, [0, 0], [1, SIZE])
    scaled = pl.mul(tile, SCALE)
    return pl.store(pl.add(scaled, rank), [0, 0], y)


@pl.jit
def chip(x: pl.Tensor[[1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]], rank: pl.Scalar[pl.INT32]):
    return kernel(x, y, rank)


@pl.jit.host
def host(inputs: pl.Tensor[[NR, 1, SIZE], pl.FP32], outputs: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        chip(inputs[r], outputs[r], r, device=r)
    return outputs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-p", "--platform", default="a2a3sim")
    parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
    parser.add_argument("--mode", choices=["class", "function"], default="class")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    device_ids = [int(d) for d in args.device.split(",")]
    nr = len(device_ids)

    inputs = torch.arange(0, nr * SIZE, dtype=torch.float32).reshape(nr, 1, SIZE)
    outputs = torch.zeros(nr, 1, SIZE, dtype=torch.float32)
    distributed = DistributedConfig(device_ids=device_ids, num_sub_workers=0)
    if args.mode == "class":
        compiled = ir.compile(build_program(nr), platform=args.platform, distributed_config=distributed)
        options = {}
    else:
        config = RunConfig(platform=args.platform, distributed_config=distributed)
        compiled = host.compile(inputs, outputs, config=config)
        options = {"config": RunConfig(platform=args.platform)}
    if args.compile_only:
        print(compiled.output_dir)
        return 0
    compiled(inputs, outputs, **options)

    ranks = torch.arange(0, nr, dtype=torch.float32).reshape(nr, 1, 1)
    if not torch.allclose(outputs, inputs * SCALE + ranks, rtol=1e-5, atol=1e-5):
        print("FAILED: not 2 x + rank")
        return 1
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
