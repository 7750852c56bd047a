# ruff: noqa: E501 - a message stands in one line, as it is raised
"""What upstream's type rules refuse is refused in their words, before anything runs; and what they leave unchecked."""

import re

import numpy as np
import pytest
from pypto_dialect import arrays, dialect, dispatched

from asyncsim.trace.errors import MisuseError

WORDS = [
    (
        "pld.tensor.reduce_scatter(data, signal, op=pld.ReduceOp.Max)",
        ValueError,
        "pld.tensor.reduce_scatter op must be ReduceOp.Sum (got int 1); Max / Min / Prod lowerings are not yet implemented",
    ),
    (
        "pld.tensor.reduce_scatter(data, signal, op=pld.ReduceOp.Prod)",
        ValueError,
        "pld.tensor.reduce_scatter op must be ReduceOp.Sum (got int 3); Max / Min / Prod lowerings are not yet implemented",
    ),
    (
        "pld.tensor.reduce_scatter(x, signal)",
        TypeError,
        "pld.tensor.reduce_scatter expects a DistributedTensor target (window-bound); got pl.Tensor[[1, 4], pl.FP32]",
    ),
    (
        "pld.tensor.reduce_scatter(data, data)",
        ValueError,
        "pld.tensor.reduce_scatter signal must have INT32 element type, got dtype fp32",
    ),
    (
        "pld.tensor.allreduce(data, signal, mode='star')",
        ValueError,
        'pld.tensor.allreduce mode must be "ring" or "mesh", got "star"',
    ),
    (
        "pld.tensor.allreduce(data, signal, mode='ring')",
        ValueError,
        "pld.tensor.allreduce mode=ring signal shape[0] (3) must equal 2*(NR-1) = 4 for NR = 3",
    ),
    (
        "pld.tensor.allreduce(data, signal, op=7)",
        ValueError,
        "pld.tensor.allreduce op must be ReduceOp.Sum, Max, Min, or Prod (got int 7)",
    ),
    (
        "pld.system.notify(signal, 0, [0, 0], 1, op=5)",
        ValueError,
        "pld.system.notify op must be NotifyOp.AtomicAdd or NotifyOp.Set (got int 5)",
    ),
    (
        "pld.system.wait(signal, [0, 0], 1, cmp=2)",
        ValueError,
        "pld.system.wait cmp must be WaitCmp.Eq or WaitCmp.Ge (got int 2)",
    ),
    (
        "pld.system.notify(signal, 0, [0], 1, op=pld.NotifyOp.Set)",
        ValueError,
        "pld.system.notify offsets rank (1) must match target tensor rank (2)",
    ),
    (
        "pld.tile.remote_load(data, 0, [0, 0], [4])",
        ValueError,
        "pld.tile.remote_load shape rank (1) must match target tensor rank (2)",
    ),
    (
        "pld.tensor.allgather(data, data, signal)",
        ValueError,
        "pld.tensor.allgather input and target must be different buffers, but the same expression was passed for both",
    ),
    (
        "pld.tensor.broadcast(data, signal, root=-1)",
        ValueError,
        "pld.tensor.broadcast root rank must be non-negative, got -1",
    ),
    (
        "pld.get_comm_ctx(x)",
        TypeError,
        "pld.system.get_comm_ctx expects a DistributedTensor (window-bound), got pl.Tensor[[1, 4], pl.FP32]",
    ),
    # Unchecked upstream; in words of ours.
    ("pld.system.notify(signal, 3, [0, 0], 1, op=pld.NotifyOp.Set)", ValueError, "pld.system.notify peer must be a rank, 0 to 2, got 3"),
    ("pld.tile.remote_load(data, -1, [0, 0], [1, 4])", ValueError, "pld.tile.remote_load peer must be a rank, 0 to 2, got -1"),
    ("pld.tensor.broadcast(data, signal, root=3)", ValueError, "pld.tensor.broadcast root rank must be less than NR = 3, got 3"),
    (
        "pld.system.wait(signal, [3, 0], 1, cmp=pld.WaitCmp.Ge)",
        ValueError,
        "pld.system.wait offsets [3, 0] leave dimension 0 of the target, whose shape is [3, 1]",
    ),
    (
        "pl.load(data, [0, 2], [1, 4])",
        ValueError,
        "pl.load offsets [0, 2] and shape [1, 4] leave dimension 1 of the target, whose shape is [3, 4]",
    ),
    (
        "pld.tensor.put(data, 0, data, [0, 0])",
        ValueError,
        "pld.tensor.put takes dst_offsets, src_offsets and shape together, or none of them",
    ),
    (
        "pld.system.notify(data, 0, [0, 0], 1, op=pld.NotifyOp.Set)",
        TypeError,
        "pld.system.notify target must have INT32 element type, got dtype fp32",
    ),
    ("pl.store(pl.load(x, [0, 0], [1, 4]), [0], data)", ValueError, "pl.store offsets rank (1) must match target tensor rank (2)"),
    ("pl.store(1.0, [0, 0], data)", TypeError, "pl.store expects a tile; got ScalarType"),
    ("pl.store(pl.cast(pl.load(x, [0, 0], [1, 4]), pl.FP16), [0, 0], data)", TypeError, "pl.store tile has dtype float16, the target fp32; use pl.cast"),
    ("pl.add(x, 1)", TypeError, "pl.add expects tiles or scalars; got pl.Tensor[[1, 4], pl.FP32]"),
    ("pl.write(y, [0, 0], y)", TypeError, "pl.write expects a scalar value; got pl.Tensor[[1, 4], pl.FP32]"),
    ("pl.load(1, [0], [1])", TypeError, "pl.load expects a Tensor or a DistributedTensor; got ScalarType"),
    ("pl.load(x, 0, [1])", TypeError, "pl.load offsets must be a list of integers, such as [0, 0]; got 0"),
    ("pl.load(x, [0, 0.5], [1, 1])", TypeError, "pl.load offsets[1] must be an integer, got 0.5"),
    ("pl.range()", ValueError, "pl.range takes a stop, a start and a stop, or these and a step; got 0 numbers"),
    ("pld.rank(data)", TypeError, "pld.rank expects a CommCtx, which pld.get_comm_ctx returns; got pld.DistributedTensor[[3, 4], pl.FP32]"),
    ("pld.tile.remote_store(pl.load(x, [0, 0], [1, 4]), data, 0, [0, 0], atomic=3)", ValueError,
     "pld.tile.remote_store atomic must be AtomicType.None_ or AtomicType.Add (got int 3)"),
    ("pld.tensor.put(data, 0, x)", ValueError, "pld.tensor.put of whole tensors takes equal shapes, got dst [3, 4], src [1, 4]"),
    ("pld.tensor.put(signal, 0, x, [0, 0], [0, 0], [1, 1])", TypeError, "pld.tensor.put dst and src must have one dtype, got int32 and fp32"),
    ("pld.tensor.allgather(y, signal, signal)", ValueError, "pld.tensor.allgather input must be one row of the target, [1, 1] of int32, got [1, 4] of fp32"),
    ("pld.tensor.all_to_all_v(x, data, signal, x, signal)", TypeError, "pld.tensor.all_to_all_v send_counts must have an integer element type, got dtype fp32"),
    ("pld.system.notify(signal, 0, [0, 0], 1)", TypeError,
     "pld.system.notify: missing a required argument: 'op'; it is pld.system.notify(target, peer, offsets, value, *, op)"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "kind", "words"), WORDS, ids=[words[2] for words in WORDS])
def test_a_kernel_is_refused_word_for_word_before_anything_runs(line, kind, words, tmp_path):
    with dialect() as d:
        kernel = written(d, tmp_path, line)
        x, y = arrays(3)
        with pytest.raises(kind) as caught:
            dispatched(d, kernel, x, y, ranks=3)
    assert str(caught.value) == words
    assert isinstance(caught.value, MisuseError)
    assert caught.traceback[-1].path  # it is raised inside
    assert any(entry.path == tmp_path / "kernel.py" and entry.lineno == 4 for entry in caught.traceback)
    assert not y.any()
    assert not d.session.dispatched


def written(d, folder, line):
    """Return a kernel of one line in a file of its own."""
    file = folder / "kernel.py"
    file.write_text(f"def kernel(x, y, data, signal):\n    first = pl.load(x, [0, 0], [1, 1])\n"
                    f"    pl.store(pl.add(first, 1), [0, 0], y)\n\n    {line}\n")  # fmt: skip
    names = {"pl": d.pl, "pld": d.pld, "__name__": "kernel"}
    exec(compile(file.read_text(), str(file), "exec"), names)  # noqa: S102 - the script of a test
    return d.pl.jit.incore(names["kernel"])


SHAPES = [
    ([2, 2, 2], [2, 1], "pld.tensor.reduce_scatter target must be 2D [NR, SIZE], got 3 dims"),
    ([2, 4], [2], "pld.tensor.reduce_scatter signal must be 2D [NR, 1], got rank 1"),
    ([3, 4], [2, 1], "pld.tensor.reduce_scatter target must have one row a rank: NR = 2, got 3 rows"),
    ([2, 4], [4, 1], "pld.tensor.reduce_scatter signal must be [NR, 1] = [2, 1], got [4, 1]"),
]


@pytest.mark.parametrize(("data", "signal", "words"), SHAPES, ids=[shape[2] for shape in SHAPES])
def test_windows_of_a_wrong_shape_are_refused(data, signal, words):
    with dialect() as d:

        @d.pl.jit.incore
        def kernel(x, y, data, signal):
            d.pld.tensor.reduce_scatter(data, signal)

        with pytest.raises(ValueError, match=re.escape(words)):
            dispatched(d, kernel, *arrays(), data=(data, d.pl.FP32), signal=(signal, d.pl.INT32))


@pytest.mark.parametrize("op", ["Max", "Min", "Prod"])
def test_reduce_scatter_takes_every_operator_when_it_is_widened(op):
    with dialect(widen=True) as d:
        pl, pld = d.pl, d.pld

        @pl.jit.incore
        def kernel(x, y, data, signal):
            for c in pl.range(2):
                data = pl.store(pl.load(x, [0, 2 * c], [1, 2]), [c, 0], data)
            data = pld.tensor.reduce_scatter(data, signal, op=pld.ReduceOp[op])
            pl.store(pl.load(data, [pld.rank(pld.get_comm_ctx(data)), 0], [1, 2]), [0, 0], y)

        x = np.arange(1, 9, dtype=np.float32).reshape(2, 1, 4)
        y = np.zeros((2, 1, 2), np.float32)
        dispatched(d, kernel, x, y, data=([2, 2], pl.FP32))
    ufunc = {"Max": np.maximum, "Min": np.minimum, "Prod": np.multiply}[op]
    np.testing.assert_array_equal(y[:, 0], ufunc(*x.reshape(2, 2, 2)))


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        ("pl", "laod", "pl has no 'laod'; did you mean 'load'?"),
        ("pld", "notifi", "pld has no 'notifi'; did you mean 'notify'?"),
        ("pld", "reduceop", "pld has no 'reduceop'; did you mean 'ReduceOp'?"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(module, name, words):
    with dialect() as d, pytest.raises(AttributeError, match=re.escape(words)) as caught:
        getattr(getattr(d, module), name)
    assert isinstance(caught.value, MisuseError)


def test_an_unknown_name_like_no_other_is_answered_with_all():
    with (
        dialect() as d,
        pytest.raises(AttributeError, match=r"pld\.tile has no 'xyzzy'; it has remote_load, remote_store"),
    ):
        d.pld.tile.xyzzy  # noqa: B018
    with dialect() as d, pytest.raises(AttributeError, match=r"pl\.jit has no 'chip'"):
        d.pl.jit.chip  # noqa: B018
