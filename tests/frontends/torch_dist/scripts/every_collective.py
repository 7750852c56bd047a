"""Every collective once, on numbers that show which rank they come from."""

# ruff: noqa: T201 - it is a script

import numpy as np

from asyncsim.frontends import torch_dist as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
own, both, sums = np.array([rank * 4 + 1]), np.zeros(2, int), np.zeros(1, int)
dist.all_gather_into_tensor(both, own)
swapped = np.zeros(2, int)
dist.all_to_all_single(swapped, np.array([0, 1]) + 2 * np.arange(2)[rank])
shared = both.copy() if rank == 1 else np.zeros(2, int)
dist.broadcast(shared, src=1)
dist.barrier()
dist.reduce_scatter_tensor(sums, both - both + 1)
dist.all_reduce(sums)
print([*both.tolist(), *swapped.tolist(), *shared.tolist(), *sums.tolist()])
dist.destroy_process_group()
