"""Host memory that two tensors of a dispatch show: fine to read, refused where one of them is written."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from pypto_dialect import SIZE, arrays, dialect

from asyncsim.trace.errors import MisuseError


@pytest.fixture
def d():
    with dialect() as found:
        yield found


def copying(d, **hints):
    """Return a kernel that stores its first tensor to its second one."""
    pl = d.pl

    def copies(x, y):
        pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], y)

    copies.__annotations__ = hints
    return pl.jit.incore(copies)


def dispatching(  # noqa: PLR0913 - both tensors, and what each rank gets of them
    d, kernel, x, y, *, of_x, of_y
):
    """Dispatch it to every rank of two, with these slices of both tensors."""
    pl, pld = d.pl, d.pld

    @pl.jit.host
    def host(x, y):
        for r in pl.range(pld.world_size()):
            kernel(of_x(x, r), of_y(y, r), device=r)  # this line

    host(x, y, config=d.run(2))


def own(tensor, r):
    return tensor[r]


def line(caught):
    file, number = caught.value.author_place
    assert file == __file__
    return Path(file).read_text("utf-8").splitlines()[number - 1]


@pytest.mark.parametrize("marked", [True, False])
def test_a_tensor_that_one_device_writes_and_another_holds_is_refused_at_the_dispatch(d, marked):
    hints = {"y": d.pl.Out[d.pl.Tensor]} if marked else {}
    words = (
        "copies: parameter y to device=0 is written and shares memory with what goes as "
        "copies: parameter y to device=1; ranks meet in windows only"
    )
    with pytest.raises(MisuseError, match=re.escape(words)) as caught:
        dispatching(d, copying(d, **hints), *arrays(), of_x=own, of_y=lambda y, _: y[0])
    assert "# this line" in line(caught)
    assert not d.session.dispatched


def test_a_write_to_what_another_device_only_reads_is_refused(d):
    x, _ = arrays()
    with pytest.raises(MisuseError, match="parameter y to device=0 is written and shares memory with what goes as"):
        dispatching(d, copying(d), x, x, of_x=own, of_y=lambda y, r: y[1 - r])


def test_a_write_to_overlapping_slices_of_one_device_is_refused(d):
    x = np.ones((2, 2, SIZE), np.float32)
    with pytest.raises(MisuseError, match="to the same device; pass the larger slice alone") as caught:
        dispatching(d, copying(d), x, x, of_x=own, of_y=lambda y, r: y[r][1:])
    assert "# this line" in line(caught)


def test_a_copy_out_of_a_window_writes_too(d):
    pl, pld = d.pl, d.pld

    @pl.jit.incore
    def gets(y, data):
        pld.tensor.get(y, 0, data)

    @pl.jit.host
    def host(y):
        data = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            gets(y[0], pld.window(data, [1, SIZE], dtype=pl.FP32), device=r)

    with pytest.raises(MisuseError, match="shares memory"):
        host(arrays()[1], config=d.run(2))


def test_what_all_devices_only_read_may_be_one(d):
    x, y = arrays()
    dispatching(d, copying(d, y=d.pl.Out[d.pl.Tensor]), x, y, of_x=lambda x, _: x[1], of_y=own)
    np.testing.assert_array_equal(y, x[[1, 1]])
    assert d.session.dispatched[0].judge(calls=1).verdict == "PROVED"


def test_slices_whose_elements_alternate_do_not_overlap(d):
    x, _ = arrays()
    y = np.zeros((1, SIZE * 2), np.float32)
    dispatching(d, copying(d), x, y, of_x=own, of_y=lambda y, r: y[:, r::2])
    np.testing.assert_array_equal(y[0, 0::2], x[0, 0])
    np.testing.assert_array_equal(y[0, 1::2], x[1, 0])
    assert d.session.dispatched[0].judge(calls=1).verdict == "PROVED"


def test_slices_that_take_too_long_to_tell_apart_count_as_overlapping(d, monkeypatch):
    monkeypatch.setattr("asyncsim.frontends.pypto.overlaps.WORK", 1)
    x, y = np.ones((2, 5, 7), np.float32), np.zeros((36, 36, 36), np.float32)
    with pytest.raises(MisuseError, match="shares memory"):
        dispatching(
            d, copying(d, y=d.pl.Out[d.pl.Tensor]), x, y,
            of_x=own, of_y=lambda y, r: y[r:17:3, 2:30:7, 1::5] if r else y[1:18:2, 1:25:4, 0:29:3],
        )  # fmt: skip
