"""Programs in both forms: windows, arguments, tensors that are shared, results, and what is dispatched where."""

import re
import sys

import ml_dtypes
import numpy as np
import pytest
from pypto_dialect import SIZE, arrays, dialect, dispatched

from asyncsim.frontends.pypto.session import StuckError
from asyncsim.trace.errors import MisuseError


def negated(pl):
    @pl.jit.incore
    def kernel(x, y, data, signal):
        return pl.store(pl.sub(0, pl.load(x, [0, 0], [1, SIZE])), [0, 0], y)

    return kernel


def test_results_are_the_tensors_that_were_passed():
    with dialect() as d:
        x, y = arrays()
        returned = dispatched(d, negated(d.pl), x, y)
    assert returned is y
    np.testing.assert_array_equal(y, -x)


def test_a_class_without_annotations_runs_given_arrays():
    with dialect() as d:
        pl, pld = d.pl, d.pld

        @pl.program
        class Shift:
            """Pass a row on."""

            @pl.function(type=pl.FunctionType.InCore)
            def step(self, x, y, data, signal):
                ctx = pld.get_comm_ctx(data)
                me, nranks = pld.rank(ctx), pld.nranks(ctx)
                data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
                signal = pld.tensor.barrier(signal)
                return pl.store(pld.remote_load(data, (me + 1) % nranks, [0, 0], [1, SIZE]), [0, 0], y)

            @pl.function(type=pl.FunctionType.Orchestration)
            def chip(self, x, y, data, signal):
                return self.step(x, y, data, signal)

            @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
            def host(self, inputs, outputs):
                data = pld.alloc_window_buffer(SIZE * pl.FP32.get_byte())
                signal = pld.alloc_window_buffer((pld.world_size(), 1), dtype=pl.INT32)
                for r in pl.range(pld.world_size()):
                    self.chip(
                        inputs[r], outputs[r], pld.window(data, [1, SIZE], dtype=pl.FP32),
                        pld.window(signal, [pld.world_size(), 1], dtype=pl.INT32), device=r,
                    )  # fmt: skip

        compiled = d.ir.compile(Shift, platform="a2a3sim", distributed_config=d.config(3))
        assert compiled.output_dir.is_dir()
        assert compiled.output_dir == compiled.output_dir
        x, y = arrays(3)
        assert compiled(x, y) is None
        np.testing.assert_array_equal(y, np.roll(x, -1, 0))
        (program,) = d.session.dispatched
        assert program.judge(calls=1).verdict == "PROVED"
        assert {finding.hazard for finding in program.judge(calls=2).findings} == {"WAR"}
    assert not compiled.output_dir.exists()


def test_a_host_function_can_be_called_without_compiling_it_first():
    with dialect() as d:
        pl, pld = d.pl, d.pld
        kernel = negated(pl)

        @pl.jit.host
        def host(x, y):
            for r in pl.range(pld.world_size()):
                y[r] = kernel(x[r], y[r], None or 0, 0, device=r)
            return y

        x, y = arrays()
        assert host(x, y, config=d.run(2)) is y
    np.testing.assert_array_equal(y, -x)


def test_a_slice_of_a_host_tensor_writes_through():
    with dialect() as d:
        pl, pld = d.pl, d.pld

        @pl.jit.incore
        def kernel(row: pl.Out[pl.Tensor[[2], pl.INT32]], by: pl.Scalar[pl.INT32], factor: pl.Scalar[pl.FP32]):
            pl.write(row, [1], pl.cast(by * factor, target_type=pl.INT32))

        @pl.jit.host
        def host(y):
            assert len(y) == y.shape[0] == 2
            for r in pl.range(pld.world_size()):
                kernel(y[r, 1:][0], r + 1, 2.0, device=r)

        y = np.zeros((2, 2, 2), np.int32)
        host.compile(y, config=d.run(2))(y)
    assert y.tolist() == [[[0, 0], [0, 2]], [[0, 0], [0, 4]]]


def test_two_loops_run_one_after_the_other_on_each_device():
    with dialect() as d:
        pl, pld = d.pl, d.pld

        @pl.jit.incore
        def stage(x, data):
            pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)

        @pl.jit.incore
        def fetch(y, data):
            me = pld.rank(pld.get_comm_ctx(data))
            pl.store(pld.remote_load(data, 1 - me, [0, 0], [1, SIZE]), [0, 0], y)

        @pl.jit.host
        def host(x, y):
            buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            for r in pl.range(pld.world_size()):
                stage(x[r], pld.window(buf, [1, SIZE], dtype=pl.FP32), device=r)
            for r in pl.range(pld.world_size()):
                fetch(y[r], pld.window(buf, [1, SIZE], dtype=pl.FP32), device=r)

        x, y = arrays()
        host.compile(x, y, config=d.run(2))(x, y)
        report = d.session.dispatched[0].judge(calls=1)
    # Nothing orders the devices: a slow one's stage races with the other's fetch.
    assert [(finding.kind, finding.hazard, finding.pairs) for finding in report.findings] == [("race", "RAW", 2)]


def test_views_of_one_buffer_share_their_memory_and_their_races():
    with dialect() as d:
        pl, pld = d.pl, d.pld

        @pl.jit.incore
        def kernel(y, wide, rows):
            me = pld.rank(pld.get_comm_ctx(wide))
            pl.store(pl.add(pl.load(rows, [me, 0], [1, 2]), me + 1), [me, 0], rows)
            pl.store(pld.remote_load(wide, 1 - me, [0, 0], [1, 4]), [0, 0], y)

        @pl.jit.host
        def host(y):
            buf = pld.alloc_window_buffer(16)
            for r in pl.range(pld.world_size()):
                kernel(y[r], pld.window(buf, [1, 4], dtype=pl.INT32), pld.window(buf, [2, 2], dtype=pl.INT32), device=r)

        y = np.zeros((2, 1, 4), np.int32)
        host.compile(y, config=d.run(2))(y)
        (program,) = d.session.dispatched
        report = program.judge(calls=1)
    assert y.tolist() == [[[0, 0, 2, 2]], [[1, 1, 0, 0]]]
    assert [window.over for window in program.kernel.memory] == ["", "wide"]
    assert {(finding.kind, finding.hazard) for finding in report.findings} == {("race", "RAW")}
    assert report.refuted


def test_data_behind_the_cells_of_a_signal_is_fine_and_over_them_is_refused():
    def run(row):
        with dialect() as d:
            pl, pld = d.pl, d.pld

            @pl.jit.incore
            def kernel(y, data, signal):
                signal = pld.tensor.barrier(signal)
                pl.store(pl.load(data, [row, 0], [1, 2]), [0, 0], y)

            @pl.jit.host
            def host(y):
                buf = pld.alloc_window_buffer(16)
                for r in pl.range(pld.world_size()):
                    data, signal = pld.window(buf, [2, 2], dtype=pl.INT32), pld.window(buf, [2, 1], dtype=pl.INT32)
                    kernel(y[r], data, signal, device=r)

            y = np.ones((2, 1, 2), np.int32)
            host.compile(y, config=d.run(2))(y)
            return y

    assert not run(1).any()
    with pytest.raises(MisuseError, match=r"pl\.load touches bytes that are cells of a signal: the first 8 of the"):
        run(0)


def test_views_of_one_buffer_are_one_signal():
    with dialect() as d:
        pl, pld = d.pl, d.pld

        @pl.jit.incore
        def kernel(y, one, other):
            pld.system.notify(one, 0, [1, 0], 1, op=pld.NotifyOp.AtomicAdd)
            if pld.rank(pld.get_comm_ctx(one)) == 0:
                pld.system.wait(other, [1], 2, cmp=pld.WaitCmp.Eq)
                pl.store(pl.load(other, [0], [2]), [0], y)

        @pl.jit.host
        def host(y):
            buf = pld.alloc_window_buffer(8)
            for r in pl.range(pld.world_size()):
                kernel(y[r], pld.window(buf, [2, 1], dtype=pl.INT32), pld.window(buf, [2], dtype=pl.INT32), device=r)

        y = np.ones((2, 2), np.int32)
        host.compile(y, config=d.run(2))(y)
        assert y.tolist() == [[0, 2], [1, 1]]
        (program,) = d.session.dispatched
        assert program.judge(calls=1).verdict == "PROVED"


def test_a_use_that_only_the_run_comes_to_is_learnt():
    with dialect() as d:
        pl, pld = d.pl, d.pld

        @pl.jit.incore
        def kernel(x, y, data, signal):
            me = pld.rank(pld.get_comm_ctx(data))
            pl.store(pl.add(pl.load(y, [0, 0], [1, SIZE]), 1), [0, 0], y)
            pl.write(data, [me, 0], 7.0)
            if pl.read(data, [me, 0]) == 7.0:  # a rehearsal reads zero here
                pld.system.notify(signal, 1 - me, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
                pld.system.wait(signal, [1 - me, 0], 1, cmp=pld.WaitCmp.Eq)

        x, y = arrays()
        dispatched(d, kernel, x, y)
        (program,) = d.session.dispatched
        assert program.judge(calls=1).verdict == "PROVED"
    assert (y == 1).all()  # not 2: what the first attempt wrote was taken back


def test_a_rehearsal_refuses_only_what_a_run_would():
    with dialect() as d:
        pl = d.pl

        @pl.jit.incore
        def kernel(x, y, data, signal):
            pl.write(data, [0, 0], 1.0)
            at = pl.cast(pl.read(data, [0, 0]), pl.INT32) - 1  # -1 with the zero of a rehearsal
            while pl.read(data, [0, 0]) < 1:
                pass  # for ever, in a rehearsal
            pl.store(pl.load(x, [0, at], [1, 1]), [0, at], y)

        x, y = arrays()
        dispatched(d, kernel, x + 1, y)
    assert y[0, 0, 0] == 1


def test_a_rehearsal_knows_no_element_of_a_tile_either_also_when_it_was_stored():
    with dialect() as d:
        pl = d.pl

        @pl.jit.incore
        def kernel(x, y, data, signal):
            pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
            pl.store(pl.load(data, [0, 0], [1, SIZE]), [0, 0], y)
            pl.load(data, [0, int(pl.read(y, [0, 1])) - 1], [1, 1])  # -1 with the zeros of a rehearsal

        x, y = arrays()
        dispatched(d, kernel, x * 0 + 1, y)
    assert (y == 1).all()


def test_a_hang_stops_the_script_and_is_judged():
    with dialect() as d:
        pl, pld = d.pl, d.pld

        @pl.jit.incore
        def kernel(x, y, data, signal):
            pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)

        x, y = arrays()
        with pytest.raises(StuckError, match="deadlock"):
            dispatched(d, kernel, x, y)
        report = d.session.dispatched[0].judge(calls=1)
    assert [finding.kind for finding in report.findings] == ["deadlock"]


def test_the_same_program_is_noted_once_and_another_shape_is_another_program():
    with dialect() as d:
        kernel = negated(d.pl)
        for _ in range(2):
            dispatched(d, kernel, *arrays())
        dispatched(d, kernel, *arrays(3), ranks=3)
        noted = [(program.name, program.times, program.launch.ranks) for program in d.session.dispatched]
        kernels = [program.kernel.ref for program in d.session.dispatched]
    assert noted == [("host", 2, 2), ("host#2", 1, 3)]
    assert kernels == ["test.py:host", "test.py:host#2"]


def test_other_inputs_keep_what_is_only_written_and_what_is_read_value_by_value():
    with dialect() as d:
        pl, pld = d.pl, d.pld

        @pl.jit.incore
        def kernel(x, n, flags, y: pl.Out[pl.Tensor]):
            for c in range(pl.read(n, [0])):
                pl.store(pl.load(x, [0, c], [1, 1]), [0, c], y)
            pl.load(flags, [0], [2])

        @pl.jit.host
        def host(x, n, flags, y):
            for r in pl.range(pld.world_size()):
                kernel(x[r], n[r], flags[r], y[r], device=r)

        x = np.arange(8, dtype=np.int8).reshape(2, 1, 4)
        n, flags, y = np.full((2, 1), 3), np.zeros((2, 2), bool), np.full((2, 1, 4), -1, np.int8)
        host.compile(x, n, flags, y, config=d.run(2))(x, n, flags, y)
        made = d.session.dispatched[0].kernel
        first, again, second = (made.make_inputs(2, call, 0) for call in (0, 0, 1))
    for rank in range(2):
        for a, b in zip(first[rank], again[rank], strict=True):
            np.testing.assert_array_equal(a, b)
        assert (first[rank][0] != second[rank][0]).any()
        assert second[rank][0].min() >= 0
        assert second[rank][1] == 3
        assert second[rank][2].dtype == bool
        assert (second[rank][3] == -1).all()


def test_other_inputs_keep_only_those_elements_that_are_read():
    with dialect() as d:
        pl = d.pl

        @pl.jit.incore
        def kernel(x, y, data, signal):
            pl.read(x, [0, 1])
            pl.read(x, [0, 3])

        x, y = arrays()
        dispatched(d, kernel, x, y)
        second = d.session.dispatched[0].kernel.make_inputs(2, 1, 0)
    for rank in range(2):
        assert ((second[rank][0] == x[rank]) == [False, True, False, True]).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.int16, np.int8])
def test_every_dtype_is_shared_as_it_is(dtype):
    with dialect() as d:
        x, y = (array.astype(dtype) for array in arrays())
        names = {np.dtype(np.float16): "FP16", np.dtype(ml_dtypes.bfloat16): "BF16"}
        assert getattr(d.pl, names.get(x.dtype, x.dtype.name.upper())).numpy == dtype
        dispatched(d, negated(d.pl), x, y)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, -x)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16", "int32"])
def test_torch_tensors_are_shared_without_a_copy(name):
    torch = pytest.importorskip("torch")
    x = torch.arange(8).reshape(2, 1, 4).to(getattr(torch, name)).requires_grad_(name == "float32")
    y = torch.zeros(2, 1, 4, dtype=getattr(torch, name))
    with dialect() as d:
        assert dispatched(d, negated(d.pl), x, y) is y
    assert torch.equal(y, -x)


class Tensor:
    """A tensor as torch's: asyncsim knows it by what it answers."""

    def __init__(self, array, *, dtype="torch.float32", device="cpu", fails=False):
        """Hold an array, under a dtype's name of torch's."""
        self._array, self.dtype, self.device, self._fails = array, dtype, device, fails
        self.requires_grad = True

    def detach(self):
        return self

    def view(self, dtype):
        return Tensor(self._array.view(dtype))

    def numpy(self):
        if self._fails:
            raise RuntimeError("it is sparse")
        return self._array


def test_a_tensor_is_known_by_what_it_answers(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", type("torch", (), {"int16": np.int16}))
    with dialect() as d:
        x, y = (Tensor(array.astype(ml_dtypes.bfloat16), dtype="torch.bfloat16") for array in arrays())
        assert dispatched(d, negated(d.pl), x, y) is y
    assert (y._array == -x._array).all()


WRONG_TENSORS = [
    (Tensor(np.zeros(1), device="cuda:0"), "an argument is on cuda:0; asyncsim works on tensors of the CPU"),
    (Tensor(np.zeros(1), fails=True), "an argument cannot be shared as an array: it is sparse"),
    (np.zeros(1, np.complex64), "a tensor has dtype complex64; the dialect has FP32"),
]


@pytest.mark.parametrize(("tensor", "words"), WRONG_TENSORS, ids=[words for _, words in WRONG_TENSORS])
def test_a_tensor_that_cannot_be_shared_is_refused(tensor, words):
    with dialect() as d, pytest.raises(MisuseError, match=re.escape(words)):
        dispatched(d, negated(d.pl), tensor, tensor)
