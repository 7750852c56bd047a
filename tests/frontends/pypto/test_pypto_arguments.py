# ruff: noqa: E501 - a mistake and its message stand in one line
"""Annotations, decorators and host functions: what does not fit is refused with the name of what it is."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from pypto_dialect import arrays, dialect, dispatched

from asyncsim.trace.errors import MisuseError


@pytest.fixture
def d():
    with dialect() as found:
        yield found


def annotated(d, **hints):
    """Return a kernel with these annotations of x, y, data and signal."""

    def kernel(x, y, data, signal):
        pass

    kernel.__annotations__ = hints
    return d.pl.jit.incore(kernel)


FITTING = {
    "x": lambda d: d.pl.Tensor[[1, 4], d.pl.FP32],
    "y": lambda d: d.pl.Out[d.pl.Tensor],
    "data": lambda d: d.pl.InOut[d.pld.DistributedTensor[[d.pl.dynamic("NR"), d.pl.dynamic("SIZE")], d.pl.FP32]],
    "signal": lambda d: d.pld.DistributedTensor[[d.pl.dynamic("NR"), 1]],
}
OTHERS = [
    ("x", lambda d: d.pl.Tensor[[1, 5], d.pl.FP32], "kernel: parameter x takes shape [1, 5], got [1, 4]"),
    ("x", lambda d: d.pl.Tensor[[4], d.pl.FP32], "kernel: parameter x takes shape [4], got [1, 4]"),
    ("y", lambda d: d.pl.Out[d.pl.Tensor[[1, 4], d.pl.INT8]], "kernel: parameter y takes dtype int8, got fp32"),
    (
        "data",
        lambda d: d.pl.Scalar[d.pl.INT32],
        "kernel: parameter data takes a Scalar, got pld.DistributedTensor[[2, 4], pl.FP32]",
    ),
    (
        "x",
        lambda d: d.pld.DistributedTensor,
        "kernel: parameter x takes a DistributedTensor, got pl.Tensor[[1, 4], pl.FP32]",
    ),
    (
        "signal",
        lambda d: d.pld.DistributedTensor[[d.pl.dynamic("NR"), d.pl.dynamic("NR")]],
        "kernel: parameter signal takes shape [NR, NR], NR = 2, got [2, 1]",
    ),
]


def test_what_fits_the_annotations_is_dispatched(d):
    dispatched(d, annotated(d, **{name: hint(d) for name, hint in FITTING.items()}), *arrays())
    assert d.session.dispatched


@pytest.mark.parametrize(("name", "hint", "words"), OTHERS, ids=[words for *_, words in OTHERS])
def test_an_argument_that_does_not_fit_is_refused_with_its_parameter(d, name, hint, words):
    hints = {each: make(d) for each, make in (FITTING | {name: hint}).items()}
    with pytest.raises(MisuseError, match=re.escape(words)):
        dispatched(d, annotated(d, **hints), *arrays())


def test_a_kernel_that_another_calls_has_its_annotations_checked(d):
    inner = annotated(d, x=d.pl.Tensor[[1, 9], d.pl.FP32])

    @d.pl.jit
    def outer(x, y, data, signal):
        inner(x, y, data, signal)

    with pytest.raises(ValueError, match=re.escape("kernel: parameter x takes shape [1, 9], got [1, 4]")) as caught:
        dispatched(d, outer, *arrays())
    assert any(entry.name == "outer" for entry in caught.traceback)


def test_annotations_may_be_texts(d):
    pl = d.pl
    wide = 5

    @pl.jit.incore
    def kernel(x: pl.Tensor[[1, wide], pl.FP32], y, data, signal):
        assert pl
        assert wide

    assert isinstance(kernel.raw.__annotations__["x"], str)  # this file's annotations are texts
    with pytest.raises(ValueError, match=re.escape("kernel: parameter x takes shape [1, 5], got [1, 4]")):
        dispatched(d, kernel, *arrays())

    @pl.jit.incore
    def unknown(x: nowhere.Tensor, y, data, signal):  # noqa: F821 - nobody keeps it
        pass

    dispatched(d, unknown, *arrays())


BRACKETS = [
    (lambda d: d.pl.Tensor[4], "Tensor[...] takes a shape and a dtype: Tensor[[1, 64], pl.FP32]"),
    (lambda d: d.pl.Tensor[[1.5], d.pl.FP32], "Tensor[...]: an extent is an integer or pl.dynamic('NR'); got 1.5"),
    (lambda d: d.pl.Tensor[[1], np.float32], "Tensor[...] takes a dtype of pl's, such as pl.FP32; got"),
    (lambda d: d.pl.Scalar[int], "Scalar[...] takes a dtype of pl's"),
    (lambda d: d.pl.Out[d.pl.Scalar], "Out[...] takes a tensor: Out[pl.Tensor[[1, 64], pl.FP32]]"),
    (lambda d: d.pl.InOut[4], "InOut[...] takes a tensor"),
    (lambda d: d.pl.function(lambda self: None, type="InCore"), "pl.function: type='InCore'; give one of pl.FunctionType"),
    (lambda d: d.pl.function(lambda self: None, level=1), "pl.function: level=1; give one of pl.Level"),
    (lambda d: d.pl.program(lambda: None), "@pl.program stands on a class"),
    (lambda d: d.ir.compile(object), "ir.compile expects a class under @pl.program, got type"),
    (lambda d: d.ir.compile(d.pl.program(type("Empty", (), {}))), "program Empty has 0 host functions; give one method"),
    (lambda d: d.pl.jit(lambda: None).compile(), "<lambda> is no host function; compile the one under @pl.jit.host"),
    (lambda d: d.pl.jit.host(lambda: None).compile(), "<lambda>: how many ranks are there? Give distributed_config"),
    (lambda d: d.pl.jit.incore(lambda: None)(), "<lambda> runs on a device; call it in a host function"),
    (lambda d: d.config(0), "DistributedConfig device_ids=[]; give different integers, such as [0, 1]"),
    (lambda d: d.pl.cast("x", d.pl.FP32), "pl.cast expects a tile or a scalar; got str"),
    (lambda d: d.pl.cast(1, np.float32), "pl.cast: dtype="),
    (lambda d: d.pl.add(np.ones(1, np.int8), np.ones(1, np.int16)), "pl.add takes tiles of one dtype, got int8 and int16"),
    (lambda d: d.pl.range(np.True_), "pl.range bound must be an integer, got"),
    (lambda d: d.pld.window(1, [1], d.pl.FP32), "pld.window belongs into the host function"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "words"), BRACKETS, ids=[words for _, words in BRACKETS])
def test_a_wrong_declaration_is_refused(d, make, words):
    with pytest.raises(MisuseError, match=re.escape(words)):
        make(d)


def test_arithmetic_of_scalars_gives_numbers_of_python(d):
    pl = d.pl
    assert (pl.add(1, 2), pl.sub(1, 2), pl.mul(1.5, 2)) == (3, -1, 3.0)
    assert pl.range(np.array(3)) == range(3)
    assert list(pl.range(1, 7, 2)) == [1, 3, 5]
    assert pl.add(np.ones(2, np.float16), 1).dtype == np.float16
    assert pl.cast(np.full(1, 2.7, np.float32), pl.INT32).tolist() == [2]
    assert pl.cast(2.7, target_type=pl.INT8) == 2
    assert [pl.FP32.get_byte(), pl.BF16.get_byte(), pl.INDEX.get_byte(), str(pl.INT8)] == [4, 2, 8, "int8"]


HOSTS = [
    (lambda h: h.pld.alloc_window_buffer(0), "pld.alloc_window_buffer size_in_bytes must be positive, got 0"),
    (lambda h: h.pld.alloc_window_buffer([2, 2]), "pld.alloc_window_buffer of a shape takes dtype=, such as pl.FP32"),
    (lambda h: h.pld.alloc_window_buffer([2, -2], dtype=h.pl.FP32), "extents must be positive, got [2, -2]"),
    (lambda h: h.pld.window(h.x, [1], dtype=h.pl.FP32), "expects what pld.alloc_window_buffer returns, got HostTensor"),
    (lambda h: h.pld.window(h.buf, [h.pl.dynamic("NR")], dtype=h.pl.FP32), "pld.window shape holds NR, which only annotations know"),
    (lambda h: h.pld.window(h.buf, [1]), "pld.window: dtype=None; give one of pl's, such as pl.FP32"),
    (lambda h: h.x["a"], "a host tensor of shape [2, 1, 4]"),
    (lambda h: h.x[[0, 1]], "a host tensor is sliced by integers and slices"),
    (lambda h: h.x.__setitem__(0, 1.0), "a host function cannot store to a tensor; kernels write what they are passed"),
    (lambda h: h.kernel(h.x[0], h.x[0], h.x, "no", device=0), "kernel: parameter signal got str; a kernel takes tensors"),
    (lambda h: h.kernel(device=0), "kernel: missing a required argument: 'x'"),
    (lambda h: h.kernel(1, 1, 1, 1, device=0.5), "kernel device must be an integer, got 0.5"),
    (lambda h: h.pl.load(h.x, [0], [1]), "pl.load is called outside a kernel"),
    (lambda h: None, "the host function dispatches nothing; call a kernel with device= for every rank"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "words"), HOSTS, ids=[words for _, words in HOSTS])
def test_what_a_host_function_cannot_do_is_refused(d, make, words):
    pl, pld = d.pl, d.pld
    kernel = annotated(d)

    @pl.jit.host
    def host(x):
        make(SimpleNamespace(pl=pl, pld=pld, x=x, buf=pld.alloc_window_buffer(64), kernel=kernel))

    with pytest.raises(MisuseError, match=re.escape(words)):
        host.compile(arrays()[0], config=d.run(2))


def test_a_kernel_calls_neither_the_host_function_nor_with_a_device(d):
    inner, host = annotated(d), d.pl.jit.host(lambda: None)

    def calling(call):
        @d.pl.jit
        def outer(x, y, data, signal):
            call(x, y, data, signal)

        return outer

    with pytest.raises(MisuseError, match="<lambda> is a host function; a kernel cannot call it"):
        dispatched(d, calling(host), *arrays())

    @d.pl.jit
    def outer(x, y, data, signal):
        inner(x, y, data, signal, device=0)

    with pytest.raises(MisuseError, match="device= belongs into the host function; a kernel calls on its own device"):
        dispatched(d, outer, *arrays())


def test_what_the_host_function_returns_is_what_was_passed(d):
    pl, pld = d.pl, d.pld
    kernel = annotated(d, x=pl.Tensor, y=pl.Out[pl.Tensor], data=pl.InOut[pl.Tensor])

    @pl.jit.host
    def host(x, y):
        for r in pl.range(pld.world_size()):
            first, second = kernel(x[r], y[r], x[r], 0, device=r)
            y[r] = first
            assert second.shape == (1, 4)
        return x, y, y[0], 7

    x, y = arrays()
    first, second, part, number = host.compile(x, y, config=d.run(2))(x, y)
    assert first is x
    assert second is y
    assert np.shares_memory(part, y)
    assert number == 7


def test_a_class_is_refused_when_it_is_compiled_if_its_annotations_say_enough(d, capsys):
    pl, pld = d.pl, d.pld

    def program(shape):
        class Wrong:
            @pl.function(type=pl.FunctionType.InCore)
            def kernel(self, x, n):
                pl.load(x, [0], [8])
                if pl.read(n, [0]) > 3:
                    pl.load(x, [0], [9])

            def host(self, x, n):
                print("host")  # noqa: T201 - to see how often it runs
                for r in pl.range(pld.world_size()):
                    self.kernel(x[r], n[r], device=r)

        Wrong.host.__annotations__ = {"x": pl.Tensor[shape, pl.FP32], "n": pl.Tensor[[2, 1], pl.INT32]}
        Wrong.host = pl.function(Wrong.host, level=pl.Level.HOST, role=pl.Role.Orchestrator)
        return pl.program(Wrong)

    compiled = d.ir.compile(program([2, 8]), distributed_config=d.config(2))  # a value decides: left to the run
    assert capsys.readouterr().out == ""
    compiled(np.zeros((2, 8), np.float32), np.zeros((2, 1), np.int32))
    assert capsys.readouterr().out == "host\n"
    with pytest.raises(ValueError, match=re.escape("pl.load offsets [0] and shape [9] leave dimension 0")):
        compiled(np.zeros((2, 8), np.float32), np.full((2, 1), 4, np.int32))
    d.ir.compile(program([2, pl.dynamic("N")]), distributed_config=d.config(2))  # so does a shape
    with pytest.raises(ValueError, match=re.escape("pl.load offsets [0] and shape [8] leave dimension 0")):
        d.ir.compile(program([2, 7]), distributed_config=d.config(2))
    with pytest.raises(TypeError, match=re.escape("host: parameter x takes a Tensor, got ScalarType")):
        compiled(1, 2)


def test_methods_and_helpers_of_a_class_hold_operations(d):
    pl, pld = d.pl, d.pld

    @pl.program
    class Twice:
        def doubled(self, tile):
            return pl.add(tile, pl.load(self.kept, [0, 0], [1, 4]))

        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, x, y):
            self.kept = x
            return pl.store(self.doubled(pl.load(x, [0, 0], [1, 4])), [0, 0], y)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x, y):
            for r in pl.range(pld.world_size()):
                self.kernel(x[r], y[r], device=r)

    x, y = arrays()
    d.ir.compile(Twice, distributed_config=d.config(2))(x, y)
    np.testing.assert_array_equal(y, 2 * x)
    assert Twice.__name__ == "Twice"
