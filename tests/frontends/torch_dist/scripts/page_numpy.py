"""The reference page's example: every rank brings [rank + 1, rank + 2]; how long the output is says an argument."""

# ruff: noqa: T201 - it is a script

import sys

import numpy as np

from asyncsim.frontends import torch_dist as dist

op, length = sys.argv[1:]
dist.init_process_group("gloo")
rank = dist.get_rank()
given = np.array([rank + 1, rank + 2])
output = np.zeros(int(length), given.dtype)
dist.reduce_scatter_tensor(output, given, op=getattr(dist.ReduceOp, op))
print(f"rank {rank}: {output.tolist()}")
dist.destroy_process_group()
