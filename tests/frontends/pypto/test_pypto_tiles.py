"""Operators on tiles give what numpy gives, and what is valid of a tile goes with it."""

from __future__ import annotations

import numpy as np
import pytest
from pypto_dialect import dialect

from asyncsim.trace.errors import MisuseError

A = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
B = A[::-1].copy()


@pytest.fixture
def pl():
    with dialect() as d:
        yield d.pl


@pytest.mark.parametrize(
    ("name", "operands", "right"),
    [
        ("div", (A, B), A / B),
        ("divs", (A, 2), A / 2),
        ("minimum", (A, B), np.minimum(A, B)),
        ("neg", (A,), -A),
        ("rsqrt", (A,), 1 / np.sqrt(A)),
        ("recip", (A,), 1 / A),
        ("relu", (A - 5,), np.maximum(A - 5, 0)),
        ("row_max", (A,), A.max(1, keepdims=True)),
        ("col_sum", (A,), A.sum(0, keepdims=True)),
        ("row_expand_mul", (A, A[:, :1]), A * A[:, :1]),
        ("col_expand_sub", (A, A[:1]), A - A[:1]),
        ("matmul", (A, A.T.copy()), A @ A.T),
        ("matmul_acc", (A @ A.T, A, A.T.copy()), 2 * (A @ A.T)),
        ("reshape", (A, [2, 6]), A.reshape(2, 6)),
    ],
)
def test_an_operator_gives_what_numpy_gives(pl, name, operands, right):
    given = getattr(pl, name)(*operands)
    np.testing.assert_allclose(given, right, rtol=1e-6)
    assert given.dtype == right.dtype


def test_scalars_stay_numbers_and_integers_are_multiplied_in_int32(pl):
    assert (pl.max(2, 3), pl.exp(0.0), pl.div(6, 3)) == (3, 1.0, 2.0)
    assert pl.matmul(np.full((1, 2), 100, np.int8), np.full((2, 1), 100, np.int8)).tolist() == [[20000]]
    assert pl.create_tile([1, 2], pl.INT16, target_memory=pl.MemorySpace.Vec).dtype == np.int16


def test_a_prepared_program_and_a_sub_worker_have_their_order(pl):
    with dialect() as d:

        @d.pl.jit.incore
        def kernel(x):
            d.pl.store(d.pl.load(x, [0], [1]), [0], x)

        @d.pl.function(level=d.pl.Level.HOST, role=d.pl.Role.SubWorker)
        def check(x):
            pass

        @d.pl.jit.host
        def host(x):
            check(x)
            kernel(x, device=0)

        x = np.zeros(1, np.float32)
        with pytest.raises(MisuseError, match="kernel is dispatched after a sub-worker, check"):
            host.compile(x, config=d.run(1))

        @d.pl.jit.host
        def right(x):
            kernel(x, device=0)

        with (
            right.compile(x, config=d.run(1)).prepare() as rt,
            pytest.raises(MisuseError, match="a prepared program has no 'alloc'"),
        ):
            rt.alloc(4)


def test_a_host_collective_is_refused_as_one_of_a_kernel(pl):
    with dialect() as d:
        calls = []

        @d.pl.jit.host
        def host(x):
            calls[0](x)

        def refuses(call, words):
            calls[:] = [call]
            with pytest.raises(MisuseError, match=words):
                host.compile(np.zeros((2, 4), np.float32), config=d.run(2))

        def window(shape=(2, 4), dtype=d.pl.FP32):
            return d.pld.window(d.pld.alloc_window_buffer(list(shape), dtype=dtype), list(shape), dtype=dtype)

        tensor = d.pld.tensor
        refuses(tensor.allreduce, r"expects a DistributedTensor target \(window-bound\); got pl\.Tensor")
        refuses(lambda _: tensor.broadcast(window()), "missing a required argument: 'root'")
        refuses(
            lambda x: tensor.allgather(x[0], window()), r"local takes a tensor with a slice a rank, \[2, ...\], got"
        )
