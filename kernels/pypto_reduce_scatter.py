"""The tutorial page's reduce-scatter as it stands there, in PyPTO's own words: by hand, and as one call.

Methods with ``self``, no annotations, and the number of ranks asked of the context. It is a script for PyPTO,
not a kernel of asyncsim: ``asyncsim pypto kernels/pypto_reduce_scatter.py -d 0,1,2,3 --mode hand`` runs it as it is
and judges it. By hand, one dispatch is correct, and a second one on the same windows stages over what slow peers
still read, behind a wait that the first one's credits already satisfy. As one call, both are correct.

Source: step 14 of PyPTO's distributed tutorial; `kernels/reduce_scatter.py` has the same two in asyncsim's words.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZE = 64
"""Elements in a chunk."""


def build_program(mode: str) -> Any:  # noqa: ANN401 - whatever `pl.program` makes of a class
    """Return the program; `mode` is the method that it dispatches."""
    # Inside, because asyncsim answers these names for such a script alone, and `asyncsim list` imports this file too.
    import pypto.language as pl  # noqa: PLC0415
    import pypto.language.distributed as pld  # noqa: PLC0415

    @pl.program
    class ReduceScatter:
        @pl.function(type=pl.FunctionType.InCore)
        def hand(self, x, y, data, signal):
            ctx = pld.get_comm_ctx(data)
            my_rank = pld.rank(ctx)
            nranks = pld.nranks(ctx)
            for c in pl.range(nranks):  # stage: chunk c into the own row c
                chunk = pl.load(x, [0, c * SIZE], [1, SIZE])
                data = pl.store(chunk, [c, 0], data)
            for peer in pl.range(nranks):  # ready barrier: tell everybody, hear of everybody
                if peer != my_rank:
                    pld.system.notify(signal, peer=peer, offsets=[my_rank, 0], value=1, op=pld.NotifyOp.AtomicAdd)
            for src in pl.range(nranks):
                if src != my_rank:
                    pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)
            acc = pl.load(data, [my_rank, 0], [1, SIZE])  # reduce: the own row of every rank
            for peer in pl.range(nranks):
                if peer != my_rank:
                    recv = pld.tile.remote_load(data, peer=peer, offsets=[my_rank, 0], shape=[1, SIZE])
                    acc = pl.add(acc, recv)
            return pl.store(acc, [0, 0], y)

        @pl.function(type=pl.FunctionType.InCore)
        def builtin(self, x, y, data, signal):
            ctx = pld.get_comm_ctx(data)
            my_rank = pld.rank(ctx)
            nranks = pld.nranks(ctx)
            for c in pl.range(nranks):
                chunk = pl.load(x, [0, c * SIZE], [1, SIZE])
                data = pl.store(chunk, [c, 0], data)
            data = pld.tensor.reduce_scatter(data, signal, op=pld.ReduceOp.Sum)
            return pl.store(pl.load(data, [my_rank, 0], [1, SIZE]), [0, 0], y)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, inputs, outputs):
            nranks = pld.world_size()
            data_buf = pld.alloc_window_buffer(nranks * SIZE * pl.FP32.get_byte())
            signal_buf = pld.alloc_window_buffer(nranks * pl.INT32.get_byte())
            for r in pl.range(nranks):
                data = pld.window(data_buf, [nranks, SIZE], dtype=pl.FP32)
                signal = pld.window(signal_buf, [nranks, 1], dtype=pl.INT32)
                if mode == "hand":
                    self.hand(inputs[r], outputs[r], data, signal, device=r)
                else:
                    self.builtin(inputs[r], outputs[r], data, signal, device=r)
            return outputs

    return ReduceScatter


def main(argv: Sequence[str] | None = None) -> int:
    """Run one mode on the tutorial's numbers, print ``OK`` or what is wrong, and return the exit status.

    Args:
        argv: the arguments; those of the process if None.

    """
    from pypto import ir  # noqa: PLC0415 - as above
    from pypto.ir.distributed_compiled_program import DistributedConfig  # noqa: PLC0415 - as above

    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("-d", "--device", default="0,1,2,3", help="comma-separated device ids")
    parser.add_argument("-p", "--platform", default="a2a3sim")
    parser.add_argument("--mode", choices=["hand", "builtin"], default="hand")
    args = parser.parse_args(argv)
    device_ids = [int(d) for d in args.device.split(",")]
    nranks = len(device_ids)
    compiled = ir.compile(
        build_program(args.mode),
        platform=args.platform,
        distributed_config=DistributedConfig(device_ids=device_ids, num_sub_workers=0),
    )
    rows = [np.arange(100 * r, 100 * r + nranks * SIZE, dtype=np.float32) for r in range(nranks)]
    inputs = np.stack(rows).reshape(nranks, 1, nranks * SIZE)
    outputs = np.zeros((nranks, 1, SIZE), np.float32)
    compiled(inputs, outputs)
    golden = inputs.sum(0).reshape(nranks, 1, SIZE)
    if not np.allclose(outputs, golden, rtol=1e-5, atol=1e-5):
        print("FAILED: not the sums of the chunks")
        return 1
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
