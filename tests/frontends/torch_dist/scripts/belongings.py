"""What a rank takes for its process's own: environment, arguments, main module, random numbers."""

# ruff: noqa: NPY002, S311, T201 - it is a script

import os
import random
import sys

import numpy as np
import torch.distributed as dist

dist.init_process_group(init_method="env://", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
rank = dist.get_rank()
os.environ["MINE"] = str(rank)
np.random.seed(rank)
random.seed(10 + rank)
sys.argv.append(f"seen by {rank}")
sys.modules["__main__"].mine = rank
first = np.random.rand()
dist.barrier()
again = np.random.RandomState(rank)
assert first == again.rand()
assert np.random.rand() == again.rand()
assert random.random() == random.Random(10 + rank).random()
assert os.environ["MINE"] == str(rank)
assert mine == rank  # noqa: F821 - set through the main module
assert (__name__, os.environ["LOCAL_RANK"], os.environ["MASTER_PORT"]) == ("__main__", str(rank), "29500")
print(*sys.argv[1:], end="")
print()
print("unfinished", file=sys.stderr, end="")
