"""Step 15: all-to-all: row d of rank s becomes row s of rank d; by hand (a push), as one call, with counts."""

import argparse
import sys

import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from tensors import torch

SIZE = 32
MOST = 4  # rows of a block


def build_program(nr: int, mode: str):
    rows = [nr * MOST, SIZE // MOST] if mode == "counts" else [nr, SIZE]

    @pl.program
    class AllToAll:
        @pl.function(type=pl.FunctionType.InCore)
        def hand(
            self,
            x: pl.Tensor[[nr, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, SIZE], pl.FP32]],
            received: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[nr, SIZE], pl.FP32]:
            my_rank = pld.rank(pld.get_comm_ctx(received))
            for dst in pl.range(nr):
                row = pl.load(x, [dst, 0], [1, SIZE])
                received = pld.tile.remote_store(row, received, peer=dst, offsets=[my_rank, 0])
                pld.system.notify(signal, peer=dst, offsets=[my_rank, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            for src in pl.range(nr):
                pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)
                y = pl.store(pl.load(received, [src, 0], [1, SIZE]), [src, 0], y)
            return y

        @pl.function(type=pl.FunctionType.InCore)
        def builtin(
            self,
            x: pl.Tensor[[nr, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[nr, SIZE], pl.FP32]],
            sent: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
            received: pl.InOut[pld.DistributedTensor[[nr, SIZE], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[nr, SIZE], pl.FP32]:
            sent = pl.store(pl.load(x, [0, 0], [nr, SIZE]), [0, 0], sent)
            received = pld.tensor.all_to_all(sent, received, signal)
            return pl.store(pl.load(received, [0, 0], [nr, SIZE]), [0, 0], y)

        @pl.function(type=pl.FunctionType.InCore)
        def counts(
            self,
            x: pl.Tensor[[nr * MOST, SIZE // MOST], pl.FP32],
            y: pl.Out[pl.Tensor[[nr * MOST, SIZE // MOST], pl.FP32]],
            send_counts: pl.Tensor[[nr, 1], pl.INT32],
            received: pl.InOut[pld.DistributedTensor[[nr * MOST, SIZE // MOST], pl.FP32]],
            signal: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
            recv_counts: pl.InOut[pld.DistributedTensor[[nr, 1], pl.INT32]],
        ) -> pl.Tensor[[nr * MOST, SIZE // MOST], pl.FP32]:
            received = pld.tensor.all_to_all_v(x, received, signal, send_counts, recv_counts)
            for src in pl.range(nr):
                count = pl.read(recv_counts, [src, 0])
                if count > 0:
                    part = pl.load(received, [src * MOST, 0], [count, SIZE // MOST])
                    y = pl.store(part, [src * MOST, 0], y)
            return y

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(
            self,
            inputs: pl.Tensor[[nr, *rows], pl.FP32],
            outputs: pl.Out[pl.Tensor[[nr, *rows], pl.FP32]],
            send_counts: pl.Tensor[[nr, nr, 1], pl.INT32],
        ) -> pl.Tensor[[nr, *rows], pl.FP32]:
            sent_buf = pld.alloc_window_buffer(nr * SIZE * pl.FP32.get_byte())
            received_buf = pld.alloc_window_buffer(nr * SIZE * pl.FP32.get_byte())
            signal_buf = pld.alloc_window_buffer(nr * pl.INT32.get_byte())
            counts_buf = pld.alloc_window_buffer(nr * pl.INT32.get_byte())
            for r in pl.range(pld.world_size()):
                received = pld.window(received_buf, rows, dtype=pl.FP32)
                signal = pld.window(signal_buf, [nr, 1], dtype=pl.INT32)
                if mode == "hand":
                    self.hand(inputs[r], outputs[r], received, signal, device=r)
                elif mode == "builtin":
                    sent = pld.window(sent_buf, [nr, SIZE], dtype=pl.FP32)
                    self.builtin(inputs[r], outputs[r], sent, received, signal, device=r)
                else:
                    recv_counts = pld.window(counts_buf, [nr, 1], dtype=pl.INT32)
                    self.counts(inputs[r], outputs[r], send_counts[r], received, signal, recv_counts, device=r)
            return outputs

    return AllToAll


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-p", "--platform", default="a2a3sim")
    parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
    parser.add_argument("--mode", choices=["hand", "builtin", "counts"], default="hand")
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
    inputs = torch.arange(0, nr * nr * SIZE, dtype=torch.float32).reshape(nr, nr, SIZE)
    ranks = torch.arange(0, nr, dtype=torch.int32)
    counts = (ranks.reshape(nr, 1) + 2 * ranks.reshape(1, nr)) % MOST + 1  # what rank s sends to rank d: counts[s, d]
    sent = inputs.reshape(nr, nr * MOST, SIZE // MOST) if args.mode == "counts" else inputs
    outputs = 0 * sent
    compiled(sent, outputs, counts.reshape(nr, nr, 1))

    golden = inputs.swapaxes(0, 1)
    if args.mode == "counts":
        within = torch.arange(0, MOST, dtype=torch.int32).reshape(1, 1, MOST, 1) < counts.swapaxes(0, 1).reshape(
            nr, nr, 1, 1
        )
        golden = golden.reshape(nr, nr, MOST, SIZE // MOST) * within
    golden = golden.reshape(outputs.shape)
    if not torch.allclose(outputs, golden, rtol=1e-5, atol=1e-5):
        print("FAILED: not the transposed rows")
        return 1
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
