"""A training loop with sharded gradients: reduce-scatter, step on the own shard, all-gather; two layers.

training_torch.py FILE     under a launcher; rank 0 writes the parameters
training_torch.py FILE -   alone, with all the data
"""

# ruff: noqa: T201 - it is a script

import sys

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

STEPS, BATCH = 5, 6
alone = bool(sys.argv[2:])
if not alone:
    dist.init_process_group("gloo")
rank, ranks = (0, 1) if alone else (dist.get_rank(), dist.get_world_size())

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).double()
flat = nn.utils.parameters_to_vector(model.parameters()).detach()
total = flat.numel()
length = -(-total // ranks)
flat = torch.cat([flat, flat.new_zeros(length * ranks - total)])
shard = nn.Parameter(flat[rank * length : (rank + 1) * length].clone())
optimizer = torch.optim.SGD([shard], lr=0.1, momentum=0.9)

for step in range(STEPS):
    x = torch.randn(BATCH, 4, generator=torch.Generator().manual_seed(step), dtype=torch.float64)
    y = torch.sin(x.sum(dim=1, keepdim=True))
    part = slice(rank * BATCH // ranks, (rank + 1) * BATCH // ranks)
    model.zero_grad()
    nn.functional.mse_loss(model(x[part]), y[part]).backward()
    whole = torch.zeros_like(flat)
    whole[:total] = torch.cat([p.grad.reshape(-1) for p in model.parameters()])
    shard.grad = torch.zeros_like(shard)
    if alone:
        shard.grad.copy_(whole)
    else:
        dist.reduce_scatter_tensor(shard.grad, whole, op=dist.ReduceOp.AVG)
    optimizer.step()
    if alone:
        flat.copy_(shard.detach())
    else:
        dist.all_gather_into_tensor(flat, shard.detach())
    nn.utils.vector_to_parameters(flat[:total].clone(), model.parameters())

if rank == 0:
    np.save(sys.argv[1], flat[:total].numpy())
print(f"rank {rank}: {flat[:total].sum():.9f}")
if not alone:
    dist.destroy_process_group()
