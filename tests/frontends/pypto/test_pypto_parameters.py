"""Parameters of kernels: by name only, any number of them, and scalars, which are held in their dtype."""

from __future__ import annotations

import re

import numpy as np
import pytest
from pypto_dialect import SIZE, arrays, dialect

from asyncsim.trace.errors import MisuseError


@pytest.fixture
def d():
    with dialect() as found:
        yield found


def dispatching(d, call):
    """Call a kernel for every rank of two; return the inputs, the outputs, and the program."""
    pl, pld = d.pl, d.pld

    @pl.jit.host
    def host(x, y):
        buffers = [pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32) for _ in range(2)]
        for r in pl.range(pld.world_size()):
            call(x[r], y[r], *(pld.window(buffer, [1, SIZE], dtype=pl.FP32) for buffer in buffers), r)

    x, y = arrays()
    host(x, y, config=d.run(2))
    return x, y, d.session.dispatched[0]


def scaled(d, x, y, by):
    return d.pl.store(d.pl.mul(d.pl.load(x, [0, 0], [1, SIZE]), by), [0, 0], y)


def test_a_parameter_that_is_taken_by_name_only(d):
    @d.pl.jit.incore
    def inner(x, y, *, by=2.0):
        return scaled(d, x, y, by)

    @d.pl.jit
    def outer(x, y, *, by):
        inner(x, y)
        inner(y, y, by=by)

    x, y, _ = dispatching(d, lambda x, y, _, __, r: outer(x, y, by=3, device=r))
    np.testing.assert_array_equal(y, 6 * x)


def test_any_number_of_windows_and_options(d):
    pl, pld = d.pl, d.pld

    @pl.jit.incore
    def inner(x, y, *windows: pld.DistributedTensor[[1, SIZE], pl.FP32], **options: pl.Scalar[pl.INT32]):
        assert pld  # annotations are texts in this file: a name that the body has, too, is found
        for window in windows:
            pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], window)
        found = [pl.load(window, [0, 0], [1, SIZE]) for window in windows]
        pl.store(pl.mul(pl.add(*found), options["by"]), [0, 0], y)

    @pl.jit
    def outer(x, y, *windows, **options):
        inner(x, y, *windows, **options)

    x, y, program = dispatching(d, lambda x, y, a, b, r: outer(x, y, a, b, by=3, device=r))
    np.testing.assert_array_equal(y, 6 * x)
    assert [each.name for each in program.kernel.memory] == ["windows_0", "windows_1"]
    with pytest.raises(MisuseError, match=re.escape("inner: parameter windows[1] takes a DistributedTensor")):
        dispatching(d, lambda x, y, a, _, r: inner(x, y, a, x, by=3, device=r))
    with pytest.raises(MisuseError, match=re.escape("inner: parameter options[by] takes a Scalar of int32")):
        dispatching(d, lambda x, y, a, b, r: inner(x, y, a, b, by=0.5, device=r))


def test_a_method_takes_arguments_by_name_only_too(d):
    pl, pld = d.pl, d.pld

    @pl.program
    class Scaling:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, x, *outputs, by):
            scaled(d, x, *outputs, by)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x, y, *, by=4):
            for r in pl.range(pld.world_size()):
                self.kernel(x[r], y[r], by=by, device=r)

    x, y = arrays()
    d.ir.compile(Scaling, distributed_config=d.config(2))(x, y)
    np.testing.assert_array_equal(y, 4 * x)


HELD = [
    ("INT32", 3, 3),
    ("INT32", 3.0, 3),
    ("INT8", np.int64(-128), -128),
    ("INDEX", 2**40, 2**40),
    ("BOOL", 1, True),
    ("FP32", 2**24 + 1, float(2**24)),
    ("FP32", 0.1, float(np.float32(0.1))),
    ("FP32", np.float32(0.5), 0.5),
    ("FP16", 1e9, float("inf")),
    ("BF16", 257, 256.0),
]
NOT_HELD = [
    ("INT32", 2.5, "does not hold 2.5"),
    ("INT32", 2**40, f"does not hold {2**40}"),
    ("INT64", 2**70, f"does not hold {2**70}"),
    ("INT32", float("nan"), "does not hold nan"),
    ("UINT8", -1, "does not hold -1"),
    ("BOOL", 2, "does not hold 2"),
    ("FP32", 10**400, "does not hold 1000"),
]


@pytest.mark.parametrize(("dtype", "value", "held"), HELD)
def test_a_scalar_is_held_in_its_dtype(d, dtype, value, held):
    found = []

    def kernel(x, y, s):
        found.append(s)

    kernel.__annotations__ = {"s": d.pl.Scalar[getattr(d.pl, dtype)]}
    kernel = d.pl.jit.incore(kernel)
    dispatching(d, lambda x, y, _, __, r: kernel(x, y, value, device=r))
    assert [(type(each), each) for each in found] == [(type(held), held)] * len(found)
    assert found


@pytest.mark.parametrize(("dtype", "value", "words"), NOT_HELD)
def test_a_scalar_that_its_dtype_does_not_hold_is_refused(d, dtype, value, words):
    def kernel(x, y, s):
        pass

    kernel.__annotations__ = {"s": d.pl.Scalar[getattr(d.pl, dtype)]}
    kernel = d.pl.jit.incore(kernel)
    with pytest.raises(
        MisuseError, match=re.escape(f"kernel: parameter s takes a Scalar of {dtype.lower()}, which {words}")
    ):
        dispatching(d, lambda x, y, _, __, r: kernel(x, y, value, device=r))


def test_a_tensor_is_no_scalar(d):
    def kernel(x, y, s):
        pass

    kernel.__annotations__ = {"s": d.pl.Scalar}
    kernel = d.pl.jit.incore(kernel)
    with pytest.raises(
        MisuseError, match=re.escape("kernel: parameter s takes a Scalar, got pl.Tensor[[1, 4], pl.FP32]")
    ):
        dispatching(d, lambda x, y, _, __, r: kernel(x, y, y, device=r))
