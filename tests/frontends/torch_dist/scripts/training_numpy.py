"""A training loop with sharded gradients: reduce-scatter, step on the own shard, all-gather; two layers.

training_numpy.py FILE     under a launcher; rank 0 writes the parameters
training_numpy.py FILE -   alone, with all the data
"""

# ruff: noqa: T201 - it is a script

import sys

import numpy as np

STEPS, BATCH, INPUTS, HIDDEN, RATE, MOMENTUM = 5, 6, 4, 3, 0.1, 0.9
SIZES = (INPUTS * HIDDEN, HIDDEN)


def data(step):
    rng = np.random.default_rng([1, step])
    x = rng.standard_normal((BATCH, INPUTS))
    return x, np.sin(x.sum(axis=1))


def gradient(parameters, x, y):
    first, second = parameters[: SIZES[0]].reshape(INPUTS, HIDDEN), parameters[SIZES[0] : sum(SIZES)]
    hidden = np.tanh(x @ first)
    off = 2 * (hidden @ second - y) / len(y)
    inner = np.outer(off, second) * (1 - hidden**2)
    return np.concatenate([(x.T @ inner).ravel(), hidden.T @ off])


def start(padding):
    return np.concatenate([np.random.default_rng(0).standard_normal(sum(SIZES)), np.zeros(padding)])


def train_alone():
    parameters = start(0)
    moving = np.zeros_like(parameters)
    for step in range(STEPS):
        moving = MOMENTUM * moving + gradient(parameters, *data(step))
        parameters = parameters - RATE * moving
    return parameters


def train_sharded(dist):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parameters = start(-sum(SIZES) % ranks)
    length = len(parameters) // ranks
    own = slice(rank * length, (rank + 1) * length)
    moving = np.zeros(length)
    for step in range(STEPS):
        x, y = data(step)
        part = slice(rank * BATCH // ranks, (rank + 1) * BATCH // ranks)
        whole = np.zeros_like(parameters)
        whole[: sum(SIZES)] = gradient(parameters, x[part], y[part])
        shard = np.zeros(length)
        dist.reduce_scatter_tensor(shard, whole, op=dist.ReduceOp.AVG)
        moving = MOMENTUM * moving + shard
        updated = parameters[own] - RATE * moving
        dist.all_gather_into_tensor(parameters, updated)
    return parameters[: sum(SIZES)]


if sys.argv[2:]:
    np.save(sys.argv[1], train_alone())
else:
    from asyncsim.frontends import torch_dist as dist

    dist.init_process_group("gloo")
    trained = train_sharded(dist)
    if dist.get_rank() == 0:
        np.save(sys.argv[1], trained)
    print(f"rank {dist.get_rank()}: {trained.sum():.9f}")
    dist.destroy_process_group()
