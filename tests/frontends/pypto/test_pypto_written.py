"""Kernels run as they are written, whatever of Python they use, and reports name their own lines."""

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


def an_operation_in_a_lambda(pl, pld):
    @pl.jit.incore
    def kernel(x, y, data, signal):
        column = lambda c: pl.load(x, [0, c], [1, 1])  # noqa: E731 - a lambda is the point
        for c in range(SIZE):
            pl.store(column(c), [0, c], y)

    return kernel, 1


def an_operation_in_a_class(pl, pld):
    @pl.jit.incore
    def kernel(x, y, data, signal):
        class Row:
            tile = pl.load(x, [0, 0], [1, SIZE])

            @property
            def twice(self):
                return pl.add(self.tile, pl.load(x, [0, 0], [1, SIZE]))

        pl.store(Row().twice, [0, 0], y)

    return kernel, 2


def an_operation_in_a_generator(pl, pld):
    def tiles(x):
        for c in range(SIZE):
            yield c, pl.load(x, [0, c], [1, 1])

    @pl.jit.incore
    def kernel(x, y, data, signal):
        for c, tile in tiles(x):
            pl.store(pl.mul(tile, 3), [0, c], y)

    return kernel, 3


def an_operation_that_a_library_calls(pl, pld):
    @pl.jit.incore
    def kernel(x, y, data, signal):
        order = sorted(range(SIZE), key=lambda c: -pl.read(x, [0, c]))
        assert order == [3, 2, 1, 0]
        for c, tile in enumerate(map(pl.load, [x] * SIZE, [[0, c] for c in range(SIZE)], [[1, 1]] * SIZE)):
            pl.store(tile, [0, c], y)

    return kernel, 1


FORMS = [
    an_operation_in_a_lambda,
    an_operation_in_a_class,
    an_operation_in_a_generator,
    an_operation_that_a_library_calls,
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


def test_a_name_that_the_dialect_lacks_is_refused_with_its_line(tmp_path):
    caught, file = _refused("pl.laod(x, [0, 0], [1, 1])", tmp_path)
    assert "pl has no 'laod'; did you mean 'load'?" in str(caught.value)
    assert any(entry.path == file and entry.lineno + 1 == 4 for entry in caught.traceback)


@pytest.mark.parametrize("text", ["yield pl.load(x, [0, 0], [1, 1])", "yield from []"])
def test_a_kernel_that_is_a_generator_is_refused_with_its_line(text, tmp_path):
    caught, file = _refused(text, tmp_path)
    assert "kernel yields, so a call would run nothing of it" in str(caught.value)
    assert caught.value.author_place == (str(file), 4)


def test_a_kernel_that_is_async_is_refused(tmp_path):
    caught, file = _refused("pass", tmp_path, "async def")
    assert "kernel is async, so a call would run nothing of it" in str(caught.value)
    assert caught.value.author_place == (str(file), 1)


def _refused(text, folder, define="def"):
    file = folder / "script.py"
    source = f"@pl.jit.incore\n{define} kernel(x, y, data, signal):\n    pl.load(x, [0, 0], [1, 1])\n    {text}\n"
    file.write_text(textwrap.dedent(source))
    with dialect() as d:
        names = {"pl": d.pl, "pld": d.pld, "__name__": "script"}
        with pytest.raises(MisuseError) as caught:
            _run(d, compile(source, str(file), "exec"), names)
    return caught, file


def _run(d, code, names):
    exec(code, names)  # noqa: S102 - the script of a test
    dispatched(d, names["kernel"], *arrays())


def test_a_kernel_needs_no_source_file():
    with dialect() as d:
        names = {"pl": d.pl}
        text = f"def kernel(x, y, data, signal):\n    pl.store(pl.load(x, [0, 0], [1, {SIZE}]), [0, 0], y)\n"
        exec(text, names)  # noqa: S102 - as above
        x, y = arrays()
        dispatched(d, d.pl.jit.incore(names["kernel"]), x, y)
    np.testing.assert_array_equal(y, x)


def test_an_operation_outside_a_kernel_is_refused():
    with dialect() as d, pytest.raises(MisuseError, match=r"pl\.load is called outside a kernel"):
        d.pl.load(arrays()[0], [0, 0], [1, 1])


def test_the_authors_handlers_see_what_an_operation_raises_and_their_finally_runs():
    seen = []
    with dialect() as d:
        pl = d.pl

        @pl.jit.incore
        def kernel(x, y, data, signal):
            try:
                pl.load(x, [0, 0], [1, 2 * SIZE])
            except ValueError as error:
                seen.append("leave dimension" in str(error))
            finally:
                seen.append("finally")
            pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], y)

        x, y = arrays()
        dispatched(d, kernel, x, y)
    assert set(seen) == {True, "finally"}
