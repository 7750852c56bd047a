"""Step 6: put a row into every peer's window, or get one from each of them."""

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
    class PutGet:
        @pl.function(type=pl.FunctionType.InCore)
        def put(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, SIZE], pl.FP32]],
            inbox: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[nr, SIZE], pl.FP32]:
            my_rank = pld.rank(pld.get_comm_ctx(inbox))
            for peer in pl.range(nr):
                pld.tensor.put(inbox, peer, x, dst_offsets=[my_rank, 0], src_offsets=[0, 0], shape=[1, SIZE])
                pld.system.notify(signal, peer=peer, offsets=[my_rank, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            for src in pl.range(nr):
                pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)
            return pl.store(pl.load(inbox, [0, 0], [nr, SIZE]), [0, 0], y)

        @pl.function(type=pl.FunctionType.InCore)
        def get(
            self,
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, SIZE], pl.FP32]],
            inbox: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            outbox: pl.InOut[pld.DistributedTensor[[1, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[nr, SIZE], pl.FP32]:
            my_rank = pld.rank(pld.get_comm_ctx(outbox))
            outbox = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], outbox)
            for peer in pl.range(nr):
                pld.system.notify(signal, peer=peer, offsets=[my_rank, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            for src in pl.range(nr):
                pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)
                pld.tensor.get(inbox, src, outbox)
                y = pl.store(pl.load(inbox, [0, 0], [1, SIZE]), [src, 0], y)
            return y

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            inputs: pl.Tensor[[nr, 1, SIZE], pl.FP32],
            outputs: pl.Out[pl.Tensor[[nr, nr, SIZE], pl.FP32]],
        ) -> pl.Tensor[[nr, nr, SIZE], pl.FP32]:
            inbox_buf = pld.alloc_window_buffer(nr * SIZE * pl.FP32.get_byte())
            outbox_buf = pld.alloc_window_buffer(SIZE * pl.FP32.get_byte())
            signal_buf = pld.alloc_window_buffer(nr * pl.INT32.get_byte())
            for r in pl.range(pld.world_size()):
                signal = pld.window(signal_buf, [nr, 1], dtype=pl.INT32)
                if mode == "put":
                    inbox = pld.window(inbox_buf, [nr, SIZE], dtype=pl.FP32)
                    self.put(inputs[r], outputs[r], inbox, signal, device=r)
                else:
                    inbox = pld.window(inbox_buf, [1, SIZE], dtype=pl.FP32)
                    outbox = pld.window(outbox_buf, [1, SIZE], dtype=pl.FP32)
                    self.get(inputs[r], outputs[r], inbox, outbox, signal, device=r)
            return outputs

    return PutGet


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-p", "--platform", default="a2a3sim")
    parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
    parser.add_argument("--mode", choices=["put", "get"], default="put")
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

    golden = torch.stack([inputs.reshape(nr, SIZE)] * nr)
    if not torch.allclose(outputs, golden, rtol=1e-5, atol=1e-5):
        print("FAILED: not everybody's rows")
        return 1
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
