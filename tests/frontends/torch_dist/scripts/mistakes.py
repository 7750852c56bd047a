"""Mistakes that ranks make together; which one says the argument. Its last line is always the mistake's."""

import sys

import numpy as np

from asyncsim.frontends import torch_dist as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
x = np.ones(4, np.float32)
dist.all_reduce(x)


def other_op():
    dist.all_reduce(x, op=dist.ReduceOp.MAX if rank == 1 else dist.ReduceOp.SUM)


def other_size():
    dist.all_reduce(x[: 2 + rank])


def other_dtype():
    dist.all_reduce(x.astype(np.float64) if rank else x)


def other_root():
    dist.broadcast(x, src=rank)


def other_operation():
    if rank:
        dist.barrier()
    else:
        dist.all_reduce(x)


def other_order():
    pair = dist.new_group([0, 1])
    for group in (None, pair) if rank else (pair, None):
        dist.all_reduce(x, group=group)


def absent():
    if rank != 1:
        dist.barrier()


def raises():
    if rank == 1:
        raise ValueError("a mistake of its own")
    dist.barrier()


def leaves():
    if rank == 1:
        sys.exit(7)


def says_why():
    sys.exit("no reason")


def undone():
    work = dist.all_reduce(x, async_op=True)
    if rank:
        work.wait()


def polls():
    if rank == 0:
        work = dist.all_reduce(x, async_op=True)
        while not work.is_completed():
            pass


globals()[sys.argv[1]]()
