"""What the names of torch.distributed refuse, word for word."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from torch_ranks import ranks

from asyncsim.frontends import torch_dist as dist
from asyncsim.frontends.torch_dist import ReduceOp, launch


def refused(call):
    """Return what a call raises on two ranks, the same on both."""

    def program(rank):
        try:
            call(rank)
        except (ValueError, RuntimeError, TypeError, AssertionError) as error:
            return f"{type(error).__name__}: {error}"
        return None

    first, second = ranks(program)
    assert first == second or "[0]" in first or "rank" in first
    return first


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


REFUSED = {
    "RuntimeError: result type Float can't be cast to the desired output type Int": (
        lambda rank: dist.all_reduce(ones(2, dtype=np.int32), op=ReduceOp.AVG)
    ),
    "RuntimeError: Cannot use ReduceOp.BAND with non-integral dtype": (
        lambda rank: dist.all_reduce(ones(2), ReduceOp.BAND)
    ),
    "ValueError: all_reduce does not support RedOpType.MAX on complex tensors": (
        lambda rank: dist.all_reduce(ones(2, dtype=np.complex64), ReduceOp.MAX)
    ),
    "RuntimeError: reduce_scatter_tensor does not support RedOpType.BXOR on complex tensors": (
        lambda rank: dist.reduce_scatter_tensor(ones(1, dtype=np.complex64), ones(2, dtype=np.complex64), ReduceOp.BXOR)
    ),
    "RuntimeError: reduce_scatter does not support RedOpType.MIN on complex tensors": (
        lambda rank: dist.reduce_scatter(ones(1, dtype=complex), [ones(1, dtype=complex)] * 2, ReduceOp.MIN)
    ),
    "RuntimeError: Invalid scalar type: all_reduce of int16; give one of bool, int8,": (
        lambda rank: dist.all_reduce(ones(2, dtype=np.int16))
    ),
    "RuntimeError: Invalid scalar type: broadcast of int16": lambda rank: dist.broadcast(ones(2, dtype=np.int16), 0),
    "RuntimeError: Invalid scalar type: all_gather of uint32": (
        lambda rank: dist.all_gather([ones(1, dtype=np.uint32) for _ in range(2)], ones(1, dtype=np.uint32))
    ),
    "RuntimeError: Invalid scalar type: all_gather_into_tensor of int16": (
        lambda rank: dist.all_gather_into_tensor(ones(2, dtype=np.int16), ones(1, dtype=np.int16))
    ),
    "RuntimeError: Invalid scalar type: all_to_all_single of uint16": (
        lambda rank: dist.all_to_all_single(ones(2, dtype=np.uint16), ones(2, dtype=np.uint16))
    ),
    "ValueError: `input` has a byte order different from the native byte order": (
        lambda rank: dist.all_to_all_single(ones(2), ones(2, dtype=np.dtype(np.float32).newbyteorder("S")))
    ),
    "TypeError: all_reduce: PREMUL_SUM needs its factor": lambda rank: dist.all_reduce(ones(2), ReduceOp.PREMUL_SUM),
    "TypeError: all_reduce: op must be a ReduceOp such as ReduceOp.SUM, got 'sum'": (
        lambda rank: dist.all_reduce(ones(2), "sum")
    ),
    "TypeError: _make_nccl_premul_sum takes a number, got str": lambda rank: dist._make_nccl_premul_sum("2"),
    "RuntimeError: all_reduce: PREMUL_SUM multiplies by a real number": (
        lambda rank: dist.all_reduce(ones(2, dtype=bool), dist._make_nccl_premul_sum(2))
    ),
    "TypeError: Invalid function argument. Expected parameter `tensor` of type torch.Tensor": (
        lambda rank: dist.all_reduce([1, 2])
    ),
    "TypeError: `tensor` holds object": lambda rank: dist.all_reduce(np.array([None])),
    "TypeError: group must be a process group of new_group, or None, got str": (
        lambda rank: dist.all_reduce(ones(2), group="all")
    ),
    "ValueError: `tensor` is read-only": lambda rank: dist.all_reduce(np.frombuffer(bytes(8), np.float32)),
    "RuntimeError: reduce_scatter_tensor: output.numel() * world_size must be input.numel(), but 2 * 2 = 4 is not 2; "
    "what fits: an output of 1 element, or an input of 4 elements": (
        lambda rank: dist.reduce_scatter_tensor(ones(2), ones(2))
    ),
    "RuntimeError: reduce_scatter_tensor: output.numel() * world_size must be input.numel(), but 1 * 2 = 2 is not 3; "
    "what fits: an input of 2 elements": lambda rank: dist.reduce_scatter_tensor(ones(1), ones(3)),
    "RuntimeError: all_gather_into_tensor: input.numel() * world_size must be output.numel(), but 2 * 2 = 4 is not 6; "
    "what fits: an input of 3 elements, or an output of 4": lambda rank: dist.all_gather_into_tensor(ones(6), ones(2)),
    "ValueError: Invalid usage of tensors with different dtypes: reduce_scatter_tensor got float32 and float64": (
        lambda rank: dist.reduce_scatter_tensor(ones(1), ones(2, dtype=np.float64))
    ),
    "RuntimeError: invalid input tensor list size, must be world size: got 1 tensors for 2 ranks": (
        lambda rank: dist.reduce_scatter(ones(2), [ones(2)])
    ),
    "TypeError: Invalid function argument. Expected parameter `input_list` of type List[torch.Tensor]": (
        lambda rank: dist.reduce_scatter(ones(2), ones(4))
    ),
    "RuntimeError: reduce_scatter: the output has 3 elements, input_list[": (
        lambda rank: dist.reduce_scatter(ones(3), [ones(2), ones(2)])
    ),
    "RuntimeError: invalid output tensor list (expected length 2, got 1)": (
        lambda rank: dist.all_gather([ones(2)], ones(2))
    ),
    "RuntimeError: invalid tensor size at index 1 (expected (4,), got (2, 2))": (
        lambda rank: dist.all_gather([ones(4), ones(2, 2)], ones(4))
    ),
    "ValueError: Must specify global_rank or group_rank": lambda rank: dist.broadcast(ones(1)),
    "ValueError: Can't specify both group_rank and global_rank": lambda rank: dist.broadcast(ones(1), 0, group_src=0),
    "ValueError: Global rank 5 is not part of the group, whose ranks are [0, 1]": (
        lambda rank: dist.broadcast(ones(1), 5)
    ),
    "ValueError: Group rank 5 is not part of the group, which has 2 members": (
        lambda rank: dist.broadcast(ones(1), group_src=5)
    ),
    "RuntimeError: Split sizes doesn't match total dim 0 size: input_split_sizes=[1, 2], dim 0 is 4": (
        lambda rank: dist.all_to_all_single(ones(4), ones(4), [2, 2], [1, 2])
    ),
    "RuntimeError: Number of tensor splits not equal to group size: input_split_sizes has 1": (
        lambda rank: dist.all_to_all_single(ones(4), ones(4), None, [4])
    ),
    "RuntimeError: all_to_all_single: the input has 3 rows, which 2 ranks do not divide evenly; give input_split_": (
        lambda rank: dist.all_to_all_single(ones(4), ones(3))
    ),
    "ValueError: ranks list must not contain duplicate entries, got [0, 0]": lambda rank: dist.new_group([0, 0]),
    "ValueError: Rank 7 is out of range. Valid ranks are 0 to 1 (world_size=2)": lambda rank: dist.new_group([0, 7]),
    "ValueError: new_group: asyncsim sorts the ranks": lambda rank: dist.new_group([0], sort_ranks=False),
    "ValueError: trying to initialize the default process group twice!": lambda rank: dist.init_process_group("gloo"),
}  # fmt: skip


@pytest.mark.parametrize("said", REFUSED)
def test_refusals_word_for_word(said):
    assert refused(REFUSED[said]).startswith(said)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, rank: dist.reduce_scatter_tensor(x[1:3], x),
        lambda x, rank: dist.reduce_scatter_tensor(x[2 - 2 * rank :][:2], x),
        lambda x, rank: dist.reduce_scatter(x[1:3], [x[:2], x[2:]]),
        lambda x, rank: dist.all_gather_into_tensor(x, x[1:3]),
        lambda x, rank: dist.all_gather([x[:2], x[2:]], x[1:3]),
        lambda x, rank: dist.all_to_all_single(x, x),
    ],
)
def test_partial_overlap_is_refused_with_the_rule(call):
    said = refused(lambda rank: call(np.arange(4.0), rank))
    assert said.startswith("RuntimeError: ")
    assert ": output and input partially overlap; " in said


def test_before_and_after_the_default_group():
    not_initialised = "Default process group has not been initialized, please make sure to call init_process_group."

    def program():
        for call in (dist.get_rank, dist.barrier, dist.new_group):
            with pytest.raises(ValueError, match=re.escape(not_initialised)):
                call()
        assert not dist.is_initialized()
        with pytest.raises(AssertionError, match="Process group cannot be None"):
            dist.destroy_process_group()
        for wrong in ({"world_size": 3}, {"rank": 5}):
            with pytest.raises(ValueError, match=r"but asyncsim launched this as rank \d of 2"):
                dist.init_process_group(**wrong)
        return True

    assert launch(program, ranks=2).results == [True, True]
    with pytest.raises(ValueError, match=re.escape(not_initialised)):
        dist.get_world_size()
    with pytest.raises(RuntimeError, match=r"asyncsim torchrun -n P SCRIPT\.py"):
        dist.init_process_group()


class Looks:
    """Looks like a torch tensor: asyncsim imports no torch, and knows one by its looks."""

    def __init__(self, array, dtype="torch.float32", device="cpu", *, sparse=False):
        """Hold what it shares."""
        self.array, self.dtype, self.is_sparse = array, dtype, sparse
        self.device = SimpleNamespace(type=device)

    def detach(self):
        return self

    def view(self, dtype):
        return Looks(self.array.view(dtype))

    def numpy(self):
        return self.array


def test_what_looks_like_a_torch_tensor_is_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(int16=np.int16))

    def program(rank):
        x, y = np.array([1.0, 2.0], np.float32), np.array([3.0], ml_dtypes.bfloat16)
        dist.all_reduce(Looks(x))
        dist.all_reduce(Looks(y, "torch.bfloat16"))
        return x.tolist(), y.astype(float).tolist()

    assert ranks(program) == [([2, 4], [6])] * 2
    assert "`tensor` is sparse" in refused(lambda rank: dist.all_reduce(Looks(ones(1), sparse=True)))
    assert "asyncsim takes dense tensors on the CPU" in refused(
        lambda rank: dist.all_reduce(Looks(ones(1), device="meta"))
    )


def test_an_overlap_that_is_too_hard_to_look_for_is_taken_to_be_there(monkeypatch):
    def gives_up(*_, **__):
        raise np.exceptions.TooHardError

    monkeypatch.setattr(np, "shares_memory", gives_up)
    assert "partially overlap" in refused(lambda rank: dist.all_to_all_single(ones(2), ones(2)))


def test_torch_tensors_that_asyncsim_cannot_share_are_refused():
    torch = pytest.importorskip("torch", exc_type=ImportError)

    assert "sparse" in refused(lambda rank: dist.all_reduce(torch.eye(2).to_sparse()))
    assert "on meta" in refused(lambda rank: dist.all_reduce(torch.ones(2, device="meta")))


def test_names_are_as_documented():
    assert dist.__all__ == sorted(dist.__all__, key=lambda name: (not name[0].isupper(), name))
    for name in dist.__all__:
        assert getattr(dist, name).__doc__
