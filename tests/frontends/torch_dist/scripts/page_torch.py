"""The reference page's example: every rank brings [rank + 1, rank + 2]; how long the output is says an argument."""

# ruff: noqa: T201 - it is a script

import sys

import torch
import torch.distributed as dist

op, length = sys.argv[1:]
dist.init_process_group("gloo")
rank = dist.get_rank()
given = torch.tensor([rank + 1, rank + 2])
output = torch.zeros(int(length), dtype=given.dtype)
dist.reduce_scatter_tensor(output, given, op=getattr(dist.ReduceOp, op))
print(f"rank {rank}: {output.tolist()}")
dist.destroy_process_group()
