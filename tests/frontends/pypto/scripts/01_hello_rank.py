"""Step 1: every rank says who it is, and how many there are."""

import argparse
import sys

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig
from tensors import torch

NR = pl.dynamic("NR")


@pl.jit.incore
def hello(y: pl.Out[pl.Tensor[[1, 2], pl.INT32]], data: pld.DistributedTensor[[1, 2], pl.INT32]):
    ctx = pld.get_comm_ctx(data)
    pl.write(y, [0, 0], pld.rank(ctx))
    pl.write(y, [0, 1], pld.nranks(ctx))
    return y


@pl.jit
def chip(y: pl.Out[pl.Tensor[[1, 2], pl.INT32]], data: pld.DistributedTensor[[1, 2], pl.INT32]):
    return hello(y, data)


@pl.jit.host
def host(y: pl.Out[pl.Tensor[[NR, 1, 2], pl.INT32]]):
    buf = pld.alloc_window_buffer(2 * pl.INT32.get_byte())
    for r in pl.range(pld.world_size()):
        data = pld.window(buf, [1, 2], dtype=pl.INT32)
        chip(y[r], data, device=r)
    return y


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-p", "--platform", default="a2a3sim")
    parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
    parser.add_argument("--mode", choices=["hand"], default="hand")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    device_ids = [int(d) for d in args.device.split(",")]
    nr = len(device_ids)

    y = torch.zeros(nr, 1, 2, dtype=torch.int32)
    distributed = DistributedConfig(device_ids=device_ids, num_sub_workers=0)
    compiled = host.compile(y, config=RunConfig(platform=args.platform, distributed_config=distributed))
    if args.compile_only:
        print(compiled.output_dir)
        return 0
    compiled(y, config=RunConfig(platform=args.platform))

    for r in range(nr):
        print(f"hello from rank {int(y[r, 0, 0])} of {int(y[r, 0, 1])}")
        if (int(y[r, 0, 0]), int(y[r, 0, 1])) != (r, nr):
            return 1
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
