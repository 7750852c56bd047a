# ruff: noqa: E501 - a mistake stands in one line, as an author writes it
"""Kernels keep their meaning, their names and their lines when they become async; what cannot await is refused."""

import re
import textwrap
import traceback

import numpy as np
import pytest
from pypto_dialect import SIZE, arrays, dialect, dispatched

from asyncsim.trace.errors import MisuseError

FACTOR = 3


def doubled(pl, tensor):  # called by kernels, and holds operations
    tile = pl.load(tensor, [0, 0], [1, SIZE])
    return pl.add(tile, tile)


def power(pl, tensor, n):  # calls itself
    return pl.load(tensor, [0, 0], [1, SIZE]) if n == 0 else pl.mul(power(pl, tensor, n - 1), FACTOR)


def plain(numbers):
    return sum(n for n in numbers)


def results(make, ranks=2):
    """Run the kernel that `make` returns; return the inputs and the outputs."""
    with dialect() as d:
        x, y = arrays(ranks)
        dispatched(d, make(d.pl, d.pld), x, y, ranks=ranks)
    return x, y


def helper(pl, pld):
    @pl.jit.incore
    def kernel(x, y, data, signal):
        pl.store(doubled(pl, x), [0, 0], y)

    return kernel, 2


def recursive_helper(pl, pld):
    @pl.jit.incore
    def kernel(x, y, data, signal):
        pl.store(power(pl, x, 2), [0, 0], y)

    return kernel, 9


def nested_function(pl, pld):
    @pl.jit.incore
    def kernel(x, y, data, signal):
        def scaled(tile, *, by=FACTOR):
            own = pl.load(x, [0, 0], [1, SIZE])
            return pl.add(tile, pl.mul(own, by))

        def bare(n):
            return n + 1

        pl.store(scaled(pl.load(x, [0, 0], [1, SIZE]), by=bare(1)), [0, 0], y)

    return kernel, 3


def while_and_early_return(pl, pld):
    @pl.jit.incore
    def kernel(x, y, data, signal):
        turn = 0
        acc = pl.load(x, [0, 0], [1, SIZE])
        while True:
            if turn == 2:
                return pl.store(acc, [0, 0], y)
            acc = pl.add(acc, pl.load(x, [0, 0], [1, SIZE]))
            turn += 1

    return kernel, 3


def comprehensions(pl, pld):
    @pl.jit.incore
    def kernel(x, y, data, signal):
        tiles = [pl.load(x, [0, c], [1, 1]) for c in range(SIZE) if c >= 0]
        numbers = {c: pl.read(x, [0, c]) for c in range(SIZE)}
        total = sum(pl.read(x, [0, c]) for c in range(SIZE))
        assert total == sum(numbers.values()) == plain(numbers.values())
        for c, tile in enumerate(tiles):
            pl.store(pl.mul(tile, 2), [0, c], y)

    return kernel, 2


def a_lambda_without_operations(pl, pld):
    @pl.jit.incore
    def kernel(x, y, data, signal):
        by = max([1, 2], key=lambda n: n + 1)
        order = sorted(range(SIZE), key=lambda c: -c)
        for c in order:
            pl.store(pl.mul(pl.load(x, [0, c], [1, 1]), by), [0, c], y)

    return kernel, 2


def a_kernel_calls_kernels(pl, pld):
    @pl.jit.incore
    def inner(x, y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]], by: pl.Scalar[pl.INT32] = 2):
        return pl.store(pl.mul(pl.load(x, [0, 0], [1, SIZE]), by), [0, 0], y)

    @pl.jit()
    def kernel(x, y, data, signal):
        y = inner(x, y)
        return inner(y, y, by=2)

    return kernel, 4


def try_finally_and_with(pl, pld):
    @pl.jit.incore
    def kernel(x, y, data, signal):
        tile: np.ndarray = pl.load(x, [0, 0], [1, SIZE])
        with np.errstate(all="ignore"):
            try:
                pl.load(x, [0, 0], [1, 2 * SIZE])
            except ValueError:
                tile = pl.mul(tile, 5)
            finally:
                pl.store(tile, [0, 0], y)

    return kernel, 5


FORMS = [
    helper,
    recursive_helper,
    nested_function,
    while_and_early_return,
    comprehensions,
    a_lambda_without_operations,
    a_kernel_calls_kernels,
    try_finally_and_with,
]


@pytest.mark.parametrize("make", FORMS, ids=lambda make: make.__name__)
def test_a_form_of_python_keeps_its_meaning(make):
    factor = make(*_modules())[1]
    x, y = results(lambda pl, pld: make(pl, pld)[0])
    np.testing.assert_array_equal(y, factor * x)


def _modules():
    with dialect() as d:
        return d.pl, d.pld


def test_closure_cells_are_shared_not_copied():
    with dialect() as d:
        pl = d.pl
        by = 2

        @pl.jit.incore
        def kernel(x, y, data, signal):
            nonlocal by
            pl.store(pl.mul(pl.load(x, [0, 0], [1, SIZE]), by), [0, 0], y)

        by = 7
        x, y = arrays()
        dispatched(d, kernel, x, y)
    np.testing.assert_array_equal(y, 7 * x)


def test_globals_of_the_script_are_left_as_they_are():
    before = set(globals())
    test_a_form_of_python_keeps_its_meaning(helper)
    assert set(globals()) == before
    assert doubled.__code__.co_flags & 0x80 == 0  # still a plain function


def test_an_exception_shows_the_authors_file_and_line():
    with dialect() as d:
        pl = d.pl

        @pl.jit.incore
        def kernel(x, y, data, signal):
            tile = pl.load(x, [0, 0], [1, SIZE])
            return tile / helper_that_fails()  # this line

        x, y = arrays()
        with pytest.raises(ZeroDivisionError) as caught:
            dispatched(d, kernel, x, y)
    steps = [step for step in traceback.extract_tb(caught.value.__traceback__) if step.filename == __file__]
    assert [step.name for step in steps][-2:] == ["kernel", "helper_that_fails"]
    assert "this line" in steps[-2].line
    assert steps[-1].line == "return 1 // 0"


def helper_that_fails():
    return 1 // 0


REFUSED = [
    ("(lambda r: pl.load(x, [r, 0], [1, 1]))(0)", "pl.load in a lambda; use a function with def"),
    ("sorted([1, 2], key=lambda n: pld.system.wait(signal, [n, 0], 1, cmp=pld.WaitCmp.Ge))", "pld.system.wait in a lambda"),
    ("yield pl.load(x, [0, 0], [1, 1])", "a kernel cannot yield"),
    ("yield from []", "a kernel cannot yield"),
    ("class Inside: pass", "a kernel cannot define a class"),
    ("pl.laod(x, [0, 0], [1, 1])", "pl has no 'laod'; did you mean 'load'?"),
    ("list(map(pl.load, [x], [[0, 0]], [[1, 1]]))", "pl.load is called where no kernel awaits it"),
    ("operation = pl.load\n    (lambda: operation(x, [0, 0], [1, 1]))()", "pl.load is called where no kernel awaits it"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_what_cannot_be_awaited_is_refused_with_its_line(text, words, tmp_path):
    file = tmp_path / "script.py"
    source = f"@pl.jit.incore\ndef kernel(x, y, data, signal):\n    pl.load(x, [0, 0], [1, 1])\n    {text}\n"
    file.write_text(textwrap.dedent(source))
    with dialect() as d:
        names = {"pl": d.pl, "pld": d.pld, "__name__": "script"}
        exec(compile(source, str(file), "exec"), names)  # noqa: S102 - the script of a test
        with pytest.raises(MisuseError, match=re.escape(words)) as caught:
            dispatched(d, names["kernel"], *arrays())
    place = getattr(caught.value, "author_place", None)
    last = 4 + text.count("\n")
    assert place == (str(file), last) or any(
        entry.path == file and entry.lineno + 1 == last for entry in caught.traceback
    )


def test_a_kernel_without_a_source_file_is_refused():
    with dialect() as d:
        names = {"pl": d.pl}
        exec("def kernel(x, y, data, signal):\n    pl.load(x, [0, 0], [1, 1])\n", names)  # noqa: S102 - as above
        with pytest.raises(MisuseError, match="the source of kernel cannot be read from <string>"):
            dispatched(d, d.pl.jit.incore(names["kernel"]), *arrays())
