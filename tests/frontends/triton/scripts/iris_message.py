"""A producer puts tiles into a consumer's heap and raises a flag for each, as scripts of Iris do."""

import argparse

import iris
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import triton
import triton.language as tl


@triton.jit
def produce(source, target, flags, n, producer: tl.constexpr, consumer: tl.constexpr, heap_bases, SEM: tl.constexpr,
            SCOPE: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    block = tl.program_id(0)
    i = block * BLOCK + tl.arange(0, BLOCK)
    iris.put(source + i, target + i, producer, consumer, heap_bases, mask=i < n)
    iris.atomic_xchg(flags + block, 1, producer, consumer, heap_bases, sem=SEM, scope=SCOPE)


@triton.jit
def consume(target, flags, out, n, consumer: tl.constexpr, heap_bases, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    done = 0
    while done == 0:
        done = iris.atomic_cas(flags + block, 1, 0, consumer, consumer, heap_bases, sem="acquire", scope="sys")
    i = block * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, iris.load(target + i, consumer, consumer, heap_bases, mask=i < n), mask=i < n)


def worker(rank, world, args):
    dist.init_process_group("nccl", rank=rank, world_size=world)
    context = iris.iris(1 << 20)
    rank, n, block = context.get_rank(), 16, 8
    source = context.arange(n, dtype=torch.float32)
    target = context.zeros(n, dtype=torch.float32)
    flags = context.zeros((n // block,), dtype=torch.int32)
    if not args.no_barrier:
        context.barrier()
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)  # noqa: E731 - as scripts write it
    if rank == 0:
        produce[grid](source, target, flags, n, 0, 1, context.get_heap_bases(), args.sem, args.scope, BLOCK=block)
    else:
        out = torch.empty(n, device="cuda")
        consume[grid](target, flags, out, n, 1, context.get_heap_bases(), BLOCK=block)
        torch.cuda.synchronize()
        assert torch.equal(out.cpu(), torch.arange(n, dtype=torch.float32)), "the message is another one"
        print("received")  # noqa: T201 - a script prints
    context.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sem", default="release")
    parser.add_argument("--scope", default="sys")
    parser.add_argument("--no-barrier", action="store_true")
    parsed = parser.parse_args()
    mp.spawn(worker, args=(2, parsed), nprocs=2, join=True)
