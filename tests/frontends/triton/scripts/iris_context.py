"""The same heap by way of a device context: every rank stores to its right neighbour, and meets all on the device."""

import iris
import torch
import triton
import triton.language as tl


@triton.jit
def pass_on(box, counts, context_tensor, rank: tl.constexpr, size: tl.constexpr, BLOCK: tl.constexpr):
    context = iris.DeviceContext.initialize(context_tensor, rank, size)
    i = tl.arange(0, BLOCK)
    right = (rank + 1) % size
    context.store(box + i, i + 100 * rank, right)
    context.atomic_add(counts, 1, right, sem="release", scope="sys")
    while tl.atomic_add(counts, 0, sem="acquire", scope="sys") != 1:
        pass


def main():
    context = iris.iris()
    rank, size = context.get_rank(), context.get_num_ranks()
    box = context.zeros(8, dtype=torch.int32)
    counts = context.zeros(1, dtype=torch.int32)
    context.device_barrier()
    pass_on[(1,)](box, counts, context.get_device_context(), rank, size, BLOCK=8)
    assert box.tolist() == [each + 100 * ((rank - 1) % size) for each in range(8)]
    assert context.broadcast(rank, 1) == 1


main()
