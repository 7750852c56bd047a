"""Helpers of kernels that share their code, call each other, or are filled in later."""

from __future__ import annotations

import numpy as np
import pytest
from pypto_dialect import SIZE, arrays, dialect, dispatched


@pytest.fixture
def d():
    with dialect() as found:
        yield found


def calling(inner):
    def helper(*args):
        return inner(*args)

    return helper


def nothing(*_):
    return None


def up(pl, x, y, depth):
    if depth:
        down(pl, x, y, depth - 1)
        pl.store(pl.add(pl.load(x, [0, 0], [1, SIZE]), pl.load(y, [0, 0], [1, SIZE])), [0, 0], y)


def down(pl, x, y, depth):
    up(pl, x, y, depth)


def test_two_helpers_of_one_code_are_told_apart_by_what_they_call(d):
    pl = d.pl

    def fetched(x):
        return pl.load(x, [0, 0], [1, SIZE])

    plain, loading = calling(nothing), calling(fetched)

    @pl.jit.incore
    def kernel(x, y, data, signal):
        plain(x)
        pl.store(loading(x), [0, 0], y)

    x, y = arrays()
    dispatched(d, kernel, x, y)
    np.testing.assert_array_equal(y, x)


def test_kernels_of_one_code_are_told_apart_by_what_they_call(d):
    pl = d.pl

    def built(combine):
        @pl.jit.incore
        def kernel(x, y, data, signal):
            pl.store(combine(x), [0, 0], y)

        return kernel

    def plain(x):
        return np.full((1, SIZE), 7, np.float32)

    def loading(x):
        return pl.load(x, [0, 0], [1, SIZE])

    x, y = arrays()
    dispatched(d, built(plain), x, y)
    assert (y == 7).all()
    dispatched(d, built(loading), x, y)
    np.testing.assert_array_equal(y, x)


def test_helpers_that_call_each_other_come_to_their_operations(d):
    @d.pl.jit.incore
    def kernel(x, y, data, signal):
        up(d.pl, x, y, 2)
        down(d.pl, x, y, 1)

    x, y = arrays()
    dispatched(d, kernel, x, y)
    np.testing.assert_array_equal(y, 3 * x)


def test_helpers_that_call_each_other_may_hold_no_operation(d):
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    @d.pl.jit.incore
    def kernel(x, y, data, signal):
        d.pl.store(d.pl.mul(d.pl.load(x, [0, 0], [1, SIZE]), 2 if max([even(4)], key=odd) else 3), [0, 0], y)

    x, y = arrays()
    dispatched(d, kernel, x, y)
    np.testing.assert_array_equal(y, 2 * x)


def test_a_closure_may_be_filled_later(d):
    pl = d.pl

    def helper(*args):
        return later(*args)

    @pl.jit.incore
    def kernel(x, y, data, signal):
        pl.store(helper(x, [0, 0], [1, SIZE]), [0, 0], y)

    later = pl.load
    x, y = arrays()
    dispatched(d, kernel, x, y)
    np.testing.assert_array_equal(y, x)


def test_a_function_inside_keeps_annotations_that_only_a_type_checker_knows(d):
    pl = d.pl

    @pl.jit.incore
    def kernel(x, y, data, signal):
        def twice(tile: Nowhere) -> Nowhere:  # noqa: F821 - as under `if TYPE_CHECKING`
            return tile + tile

        assert twice.__annotations__ == {"tile": "Nowhere", "return": "Nowhere"}
        pl.store(twice(pl.load(x, [0, 0], [1, SIZE])), [0, 0], y)

    x, y = arrays()
    dispatched(d, kernel, x, y)
    np.testing.assert_array_equal(y, 2 * x)
