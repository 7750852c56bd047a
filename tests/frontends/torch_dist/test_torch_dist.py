"""The names of torch.distributed: values as measured on gloo, refusals word for word, groups, work."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest
from torch_ranks import ranks

from asyncsim.frontends import torch_dist as dist
from asyncsim.frontends.torch_dist import ReduceOp


@pytest.fixture(params=["numpy", "torch"])
def tensor(request):
    """Return what makes a tensor of a list: numpy's, and torch's where it is installed."""
    if request.param == "numpy":
        return lambda values, dtype: np.array(values).astype(dtype)
    pytest.importorskip("torch", exc_type=ImportError)
    from torch_tensors import tensor  # noqa: PLC0415 - it imports torch

    return lambda values, dtype: tensor(np.array(values).astype(dtype))


# Values.

BFLOAT16 = ml_dtypes.bfloat16
TABLE = [
    ("SUM", 2, np.float32, [[12, 14], [16, 18]]),
    ("SUM", 4, np.float32, [[64, 68], [72, 76], [80, 84], [88, 92]]),
    ("PRODUCT", 2, np.float32, [[11, 24], [39, 56]]),
    ("PRODUCT", 4, np.int64, [[7161, 16896], [29601, 45696], [65625, 89856], [118881, 153216]]),
    ("MAX", 2, np.float32, [[11, 12], [13, 14]]),
    ("MIN", 2, np.float32, [[1, 2], [3, 4]]),
    ("AVG", 2, np.float32, [[6, 7], [8, 9]]),
    ("AVG", 4, np.float32, [[16, 17], [18, 19], [20, 21], [22, 23]]),
    ("BAND", 2, np.int32, [[1, 0], [1, 4]]),
    ("BOR", 2, np.int32, [[11, 14], [15, 14]]),
    ("BXOR", 2, np.int32, [[10, 14], [14, 10]]),
]


@pytest.mark.parametrize(("op", "count", "dtype", "values"), TABLE)
def test_the_measured_values(op, count, dtype, values, tensor):
    def program(rank):
        output = tensor([0, 0], dtype)
        given = tensor(np.arange(2 * count) + 1 + 10 * rank, dtype)
        assert dist.reduce_scatter_tensor(output, given, op=getattr(ReduceOp, op)) is None
        return output.tolist()

    assert ranks(program, count) == values


@pytest.mark.parametrize(
    "dtype", ["float16", BFLOAT16, "float32", "float64", "int8", "uint8", "int32", "int64", "complex64"]
)
def test_every_dtype_is_summed(dtype, tensor):
    def program(rank):
        output = tensor([0, 0], dtype)
        dist.reduce_scatter_single(output, tensor(np.arange(4) + 1 + 10 * rank, dtype))
        return [complex(value).real for value in output.tolist()]

    assert ranks(program) == [[12, 14], [16, 18]]


def test_booleans_are_summed_to_true():
    def program(rank):
        x = np.array([True, rank == 0, False])
        dist.all_reduce(x)
        return x.tolist()

    assert ranks(program) == [[True, True, False]] * 2


def test_a_premultiplied_sum_takes_each_ranks_factor():
    def program(rank):
        x = np.array([1.0, 2.0], np.float32)
        dist.all_reduce(x, op=dist._make_nccl_premul_sum(10.0**rank))
        return x.tolist()

    assert ranks(program) == [[11, 22]] * 2


def test_two_dimensions_concatenated_and_stacked(tensor):
    def program(rank):
        given = np.arange(12) + 100 * rank
        outputs = []
        for shape in ((4, 3), (2, 2, 3)):
            output = tensor(np.zeros((2, 3)), np.float32)
            dist.reduce_scatter_tensor(output, tensor(given.reshape(shape), np.float32))
            gathered = tensor(np.zeros(shape), np.float32)
            dist.all_gather_into_tensor(gathered, output)
            outputs.append((output.tolist(), tuple(gathered.shape)))
        return outputs

    values = (2 * np.arange(12) + 100).reshape(2, 2, 3).tolist()
    assert ranks(program) == [[(value, (4, 3)), (value, (2, 2, 3))] for value in values]


def test_in_place_the_other_slices_stay_as_they_are(tensor):
    def program(rank):
        x = tensor(np.arange(4) + 10 * rank, np.float32)
        dist.reduce_scatter_tensor(x[2 * rank : 2 * rank + 2], x)
        y = tensor([rank, rank], np.float32)
        out = [tensor([0, 0], np.float32), y] if rank else [y, tensor([0, 0], np.float32)]
        dist.all_gather(out, y)
        return x.tolist(), [part.tolist() for part in out]

    assert ranks(program) == [([10, 12, 2, 3], [[0, 0], [1, 1]]), ([10, 11, 14, 16], [[0, 0], [1, 1]])]


def test_transposed_tensors_are_read_and_written_in_place(tensor):
    def program(rank):
        x = tensor(np.arange(6).reshape(2, 3) + rank, np.float32)
        dist.all_reduce(x.T)
        y = tensor(np.full((2, 3), rank), np.float32)
        dist.broadcast(y.T, src=1)
        gathered = tensor(np.zeros((6, 2)), np.float32)
        dist.all_gather_into_tensor(gathered, x.T)
        column = tensor([[rank + 1], [rank + 2]], np.float32)
        dist.all_reduce(column.T[:, :1])
        return x.tolist(), y.tolist(), gathered.tolist(), column.tolist()

    summed = [[1, 3, 5], [7, 9, 11]]
    parts = [[1, 7], [3, 9], [5, 11]]
    want = [(summed, [[1, 1, 1]] * 2, parts * 2, [[3], [second]]) for second in (2, 3)]
    assert ranks(program) == want


def test_a_tensor_with_gaps_is_refused_with_the_line_and_what_to_write(tensor):
    wide = tensor(np.arange(16).reshape(4, 4), np.float32)
    close = tensor(np.zeros((4, 2)), np.float32)
    calls = [
        dist.all_reduce,
        lambda x: dist.broadcast(x, src=0),
        lambda x: dist.reduce_scatter_tensor(close[:2], x),
        lambda x: dist.reduce_scatter_tensor(x[:2], close),
        lambda x: dist.all_gather([close, close], x),
        lambda x: dist.all_gather_into_tensor(close, x[:2]),
        lambda x: dist.all_to_all_single(x, close),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"^Tensors must be contiguous: `\w+` at \S*:\d+ is strided.*x\.copy_"):
            ranks(lambda rank, call=call: call(wide[:, ::2]))
    with pytest.raises(ValueError, match="must be contiguous"):
        ranks(lambda rank: dist.all_reduce(wide[:, 1]))


def test_what_gloo_sends_as_it_lies_in_memory_lies_alike_on_all_ranks(tensor):
    def program(rank):
        x = tensor(np.arange(6).reshape(2, 3), np.float32)
        dist.all_reduce(x if rank == 0 else tensor(np.arange(6).reshape(3, 2), np.float32).T)

    with pytest.raises(dist.CallMismatchError, match=r"in its strides: .*strides=\(1, 2\)"):
        ranks(program)


def test_transposed_tensors_are_refused_where_gloo_misplaces_their_elements(tensor):
    square = tensor(np.arange(4).reshape(2, 2), np.float32)
    out = tensor(np.zeros((2, 2)), np.float32)
    for name, call in {
        "all_to_all_single takes no transposed `input`": lambda: dist.all_to_all_single(out, square.T),
        "all_to_all_single takes no transposed `output`": lambda: dist.all_to_all_single(out.T, square),
        "reduce_scatter takes no transposed `output`": lambda: dist.reduce_scatter(out.T, [square, square]),
        r"reduce_scatter takes no transposed `input_list\[1\]`": lambda: dist.reduce_scatter(out, [square, square.T]),
    }.items():
        said = name.replace(" takes", r" at \S+:\d+ takes")
        with pytest.raises(ValueError, match=f"must be contiguous: {said}"):
            ranks(lambda rank, call=call: call())


def test_empty_in_empty_out(tensor):
    def program(rank):
        x = tensor([], np.float32)
        dist.reduce_scatter_tensor(x, tensor([], np.float32))
        dist.all_reduce(x)
        dist.all_to_all_single(x, tensor([], np.float32))
        dist.all_gather_into_tensor(x, tensor([], np.float32))
        return x.tolist()

    assert ranks(program, 3) == [[]] * 3


def test_one_rank_alone():
    def program(rank):
        x, y = np.array([3.0]), np.zeros(1)
        dist.all_reduce(x)
        dist.reduce_scatter_tensor(y, x)
        dist.all_to_all_single(x, y)
        dist.broadcast(x, 0)
        return x.tolist()

    assert ranks(program, 1) == [[3]]


def test_an_all_to_all_of_rows_with_splits_of_their_own():
    def program(rank):
        given = np.arange(6.0).reshape(3, 2) + 10 * rank
        output = np.zeros(((2, 4)[rank], 2))
        dist.all_to_all_single(output, given, [[1, 1], [2, 2]][rank], [1, 2])
        return output[:, 0].tolist()

    assert ranks(program) == [[0, 10], [2, 4, 12, 14]]


def test_operators_are_written_as_torch_writes_them():
    assert (str(ReduceOp.MIN), repr(ReduceOp.MIN)) == ("RedOpType.MIN", "<RedOpType.MIN: 3>")


@pytest.mark.parametrize("dtype", ["float16", BFLOAT16, "float32", "float64"])
@pytest.mark.parametrize("op", [ReduceOp.MIN, ReduceOp.MAX])
def test_a_nan_of_any_rank_stays_in_every_dtype_and_place(dtype, op):
    def program(rank):
        x = np.array([1 + rank if n % 3 != rank else np.nan for n in range(12)]).astype(dtype)
        y = np.zeros(4, dtype)
        dist.reduce_scatter_tensor(y, x, op)
        dist.all_reduce(x, op)
        return np.isnan(x).all() and np.isnan(y).all()

    assert all(ranks(program, count=3))


# Work, groups, and what is asked of them.


def test_asynchronous_calls_return_work_whose_wait_returns_true():
    def program(rank):
        x, y = np.ones(1), np.ones(1)
        first, second = dist.all_reduce(x, async_op=True), dist.all_reduce(y, async_op=True)
        return second.wait(), first.wait(), first.is_completed(), first.is_success(), x.tolist(), y.tolist()

    assert ranks(program) == [(True, True, True, True, [2], [2])] * 2


def test_ranks_that_poll_let_the_others_go_on():
    def program(rank):
        x = np.ones(1)
        if rank == 2:
            return dist.all_reduce(x)
        work = dist.all_reduce(x, async_op=True)
        while not work.is_completed():
            pass
        return x.tolist()

    assert ranks(program, 3) == [[3], [3], None]


def test_groups_are_sorted_and_strangers_are_warned():
    def program(rank):
        group = dist.new_group([2, 1], backend="nccl")
        x = np.array([float(rank)])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert dist.all_reduce(x, group=group) is None
            dist.barrier(group=group)
        texts = [str(warning.message) for warning in caught]
        asked = (group == -100, dist.get_rank(group), dist.get_world_size(group), x.tolist())
        return asked, texts, None if rank == 0 else dist.get_process_group_ranks(group)

    stranger, *members = ranks(program, 3)
    assert stranger[0] == (True, -1, -1, [0])
    assert stranger[1] == [
        f"Running {name} on global rank 0 which does not belong to the given group."
        for name in ("all_reduce", "barrier")
    ]
    assert members == [((False, 0, 2, [3]), [], [1, 2]), ((False, 1, 2, [3]), [], [1, 2])]
    assert dist.GroupMember.NON_GROUP_MEMBER == -100


def test_every_function_on_a_group_that_one_is_not_in_leaves_the_output_alone():
    def program(rank):
        group = dist.new_group([1])
        x, y = np.full(1, 7.0), np.zeros(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            calls = [
                dist.broadcast(x, 1, group=group),
                dist.reduce_scatter_tensor(x, y, group=group),
                dist.reduce_scatter(x, [y], group=group),
                dist.all_gather([x], y, group=group),
                dist.all_gather_into_tensor(x, y, group=group),
                dist.all_to_all_single(x, y, group=group),
            ]
        return calls, x.tolist()

    assert ranks(program) == [([None] * 6, [7]), ([None] * 6, [0])]


def test_what_groups_are_asked():
    def program(rank):
        assert dist.group.WORLD is not None
        assert (dist.is_available(), dist.is_initialized(), dist.get_backend()) == (True, True, "gloo")
        assert (dist.is_gloo_available(), dist.is_nccl_available(), dist.is_mpi_available()) == (True, False, False)
        group = dist.new_group([2, 0])
        local = dist.new_group([0, 1], use_local_synchronization=True)
        everybody = dist.new_group()
        assert dist.get_process_group_ranks() == dist.get_process_group_ranks(everybody) == [0, 1, 2]
        assert dist.get_group_rank(dist.group.WORLD, 2) == 2
        if rank != 1:
            assert (dist.get_group_rank(group, 2), dist.get_global_rank(group, 1)) == (1, 2)
            assert repr(group) == "ProcessGroup(group_1, ranks=[0, 2])"
            assert (group.size(), group.rank(), group.name(), dist.get_backend(group)) == (2, rank // 2, "gloo", "gloo")
            for asked in (lambda: dist.get_group_rank(group, 1), lambda: dist.get_global_rank(group, 2)):
                with pytest.raises(ValueError, match="is not part of group"):
                    asked()
        else:
            with pytest.raises(ValueError, match="Invalid process group specified"):
                dist.get_backend(group)
            with pytest.raises(ValueError, match="Group -100 is not registered"):
                dist.get_process_group_ranks(group)
        x = np.ones(1)
        if rank != 2:
            dist.all_reduce(x, group=local)
        assert (local == -100) is (rank == 2)
        dist.destroy_process_group(group)
        dist.destroy_process_group()
        return x.tolist(), dist.is_initialized(), dist.group.WORLD

    assert ranks(program, 3) == [([2], False, None), ([2], False, None), ([1], False, None)]


def test_a_default_group_can_be_made_again():
    def program(rank):
        dist.destroy_process_group()
        dist.init_process_group()
        x = np.ones(1)
        dist.all_reduce(x)
        return x.tolist()

    assert ranks(program) == [[2]] * 2
