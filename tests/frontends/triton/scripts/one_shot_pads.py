"""All-reduce in one shot through torch's symmetric memory: start and end are barriers on the signal pad, in PTX."""

import sys

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import triton
import triton.language as tl


@triton.jit
def send(addresses, SEM: tl.constexpr):
    tl.inline_asm_elementwise(
        f"""
        {{
            .reg .u32   %tmp<1>;
            .reg .pred  %p<1>;
            send_signal:
                atom.global.{SEM}.cas.b32 %tmp0, [$1], 0, 1;
                setp.eq.u32 %p0, %tmp0, 0;
                @!%p0 bra send_signal;
        }}
        """,
        "=r, l",
        [addresses],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def receive(addresses):
    tl.inline_asm_elementwise(
        """
        {
            .reg .u32   %tmp<1>;
            .reg .pred  %p<1>;
            wait_signal:
                atom.global.sys.acquire.cas.b32 %tmp0, [$1], 1, 0;
                setp.eq.u32 %p0, %tmp0, 1;
                @!%p0 bra wait_signal;
        }
        """,
        "=r, l",
        [addresses],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def blocks_meet(pads, block, rank: tl.constexpr, size: tl.constexpr, SEM: tl.constexpr):
    peers = tl.arange(0, size)
    table = pads.to(tl.pointer_type(tl.uint64))
    send(tl.load(table + peers).to(tl.pointer_type(tl.uint32)) + block * size + rank, SEM)
    receive(tl.load(table + rank).to(tl.pointer_type(tl.uint32)) + block * size + peers)


@triton.jit
def one_shot(
    buffers, pads, out, n, rank: tl.constexpr, size: tl.constexpr, HOW: tl.constexpr, SEM: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0)
    blocks_meet(pads, block, rank, size, SEM)
    if HOW != "--no-barrier-behind":
        tl.debug_barrier()
    table = buffers.to(tl.pointer_type(tl.uint64))
    for first in range(block * BLOCK, n, BLOCK * tl.num_programs(0)):
        i = first + tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK,), tl.float32)
        for peer in tl.static_range(size):
            part = tl.load(table + peer).to(tl.pointer_type(tl.bfloat16))
            total += tl.load(part + i, mask=i < n, other=0.0).to(tl.float32)
        tl.store(out + i, total.to(tl.bfloat16), mask=i < n)
    if HOW != "--no-end":
        if HOW != "--no-barrier-before":
            tl.debug_barrier()
        blocks_meet(pads, block, rank, size, SEM)


SEMS = {"--relaxed": "relaxed.sys", "--gpu": "release.gpu"}


def main():
    how = sys.argv[1] if len(sys.argv) > 1 else ""
    dist.init_process_group("nccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    shared = symm_mem.empty(8, dtype=torch.bfloat16, device=f"cuda:{rank}")
    handle = symm_mem.rendezvous(shared, dist.group.WORLD)
    out = torch.empty_like(shared, device="cpu")
    for call in range(1 if how in SEMS else 2):
        shared.copy_(torch.arange(8) + 10 * rank + 100 * call)
        one_shot[(1,)](
            handle.buffer_ptrs_dev, handle.signal_pad_ptrs_dev, out, 8,
            rank=rank, size=size, HOW=how, SEM=SEMS.get(how, "release.sys"), BLOCK=8, num_warps=4,
        )  # fmt: skip
        expected = size * (torch.arange(8) + 100 * call) + 10 * sum(range(size))
        torch.testing.assert_close(out, expected.bfloat16())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
