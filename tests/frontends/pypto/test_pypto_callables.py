"""What a kernel calls in its own ways: lazily, by private names, through partials, decorators, objects and defaults."""

import textwrap

import pytest
from command import run
from pypto_copy import HOST, LOAD, SCRIPT


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """Return what runs the script with a body of the kernel, or of the host's loop."""
    monkeypatch.chdir(tmp_path)

    def judge(body=LOAD, host=HOST):
        source = SCRIPT.format(body=textwrap.indent(body, " " * 8), host=host)
        (tmp_path / "own.py").write_text(source, "utf-8")
        return run("pypto", "own.py")

    return judge


FORMS = {
    "any stops": f"""\
seen = []
def probe(p):
    seen.append(p)
    return pl.load(x, [0, 0], [1, SIZE]) is not None
assert any(probe(p) for p in range(3))
assert seen == [0], seen
{LOAD}""",
    "next of a local test": f"""\
def ok(p):
    return p >= 0
assert next(p for p in range(2) if ok(p)) == 0
{LOAD}""",
    "next of a method": f"assert next(p for p in range(3) if x.shape.index(1) == 0) == 0\n{LOAD}",
    "next of a function": f"assert next(p for p in range(3) if is_one(p)) == 1\n{LOAD}",
    "the first iterable is awaited": f"assert next(v for v in pl.load(data, [0, 0], [1, SIZE])[0]) == 4 * me\n{LOAD}",
    "sum runs all": "tile = sum((pl.load(data, [0, 0], [1, SIZE]) for _ in range(2)), pl.mul(row(x), -1))",
    "a star runs all": "[tile, _] = [*(pl.load(data, [0, 0], [1, SIZE]) for _ in range(2))]",
    "join runs all": f'assert len(" ".join(str(pl.read(data, [0, c])) for c in range(2)).split()) == 2\n{LOAD}',
    "a generator expression is one": f"""\
assert type(x.shape.index(p) for p in ()).__name__ == "generator"
{LOAD}""",
    "any stops at an operation": f"assert any(pl.read(data, [0, c]) >= 0 for c in range(2))\n{LOAD}",
    "next of an operation": "tile = next(pl.load(data, [0, 0], [1, SIZE]) for _ in range(1))",
    "all of a function": f"""\
def probe(p):
    return pl.read(data, [0, p]) >= 0
assert all(probe(p) for p in range(2))
{LOAD}""",
    "a sort key": f"""\
def key(c):
    return pl.read(data, [0, c])
assert sorted(range(2), key=key) == [0, 1]
{LOAD}""",
    "a cache": f"""\
@functools.lru_cache
def key(c):
    return pl.read(data, [0, c])
key(0)
{LOAD}""",
    "a private name": "tile = pl.mul(self.__private(data), self.__HIDDEN)",
    "a private name in a comprehension": "tile = [self.__private(data) for _ in range(1)][0]",
    "an object": "tile = LOADS(data)",
    "a bound method": "tile = METHOD(data)",
    "a partial": "tile = functools.partial(pl.load, data)([0, 0], [1, SIZE])",
    "a partial of a module": "tile = PARTIAL(data, shape=[1, SIZE])",
    "a partial of a function": "tile = functools.partial(row, at=(0, 0))(data)",
    "a default": "def lo(a=pl.load(data, [0, 0], [1, SIZE])):\n    return pl.mul(a, 1)\ntile = lo()",
    "a default by name": "def lo(*, a=pl.load(data, [0, 0], [1, SIZE])):\n    return a\ntile = lo()",
    "a decorator": """\
calls = []
def counted(f):
    @functools.wraps(f)
    def called(*args):
        calls.append(f.__name__)
        return f(*args)
    return called
@own
@counted
def lo():
    return pl.load(data, [0, 0], [1, SIZE])
tile = lo()
assert calls == ["lo"], calls""",
    "a library calls what comes to no operation": f"""\
def key(p):
    return x.shape.index(1) - p
assert sorted(range(3), key=key) == [2, 1, 0]
{LOAD}""",
}  # fmt: skip


@pytest.mark.parametrize("body", FORMS.values(), ids=FORMS)
def test_a_form_of_python_means_what_it_means(body, judged):
    result = judged(body)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("OK\n\nPROVED")


@pytest.mark.parametrize(
    "host",
    [
        "functools.partial(self.kernel, xs[r], ys[r])(data, signal, device=r)",
        "functools.partial(functools.partial(self.kernel, xs[r]), ys[r])(data, signal, device=r)",
        "functools.partial(self.kernel, xs[r], ys[r], device=r)(data, signal)",
    ],
)
def test_a_host_function_dispatches_by_a_partial(host, judged):
    result = judged(host=host)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("OK\n\nPROVED")


@pytest.mark.parametrize("host", ["functools.partial(is_one, 1)(device=r)", "functools.partial(is_one, device=r)(1)"])
def test_a_partial_of_what_is_no_kernel_is_refused(host, judged):
    result = judged(host=host)
    assert result.exit_code == 2
    assert "is dispatched with device=, and is no kernel" in result.stderr


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("xs[r] + 1", "compute with tensors (__add__)"),
        ("1 - xs[r]", "compute with tensors (__rsub__)"),
        ("-xs[r]", "compute with tensors (__neg__)"),
        ("np.float32(2) * xs[r]", "compute with tensors (__array_ufunc__)"),
        ("np.asarray(xs[r])", "compute with tensors (__array__)"),
        ("xs[r] if xs[r] < 3 else xs[r]", "compute with tensors (__lt__)"),
        ("xs[r].sum()", "a host tensor has no 'sum', only shape, dtype and slices"),
    ],
)
def test_arithmetic_of_a_host_function_is_refused_with_its_line(value, what, judged):
    result = judged(host=f"self.kernel({value}, ys[r], data, signal, device=r)")
    line = SCRIPT.splitlines().index("            {host}") + 1
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith(f"asyncsim: own.py:{line}: ")
    assert what in result.stderr
    assert result.stderr.endswith("it slices and dispatches: compute in a kernel, or in the script before the call\n")


@pytest.mark.parametrize("use", ["pl.write(signal, [0, 0], 0)", "pld.remote_load(signal, 1 - me, [0, 0], [1, 1])"])
def test_cells_used_as_data_are_refused_with_what_would_be_right(use, judged):
    result = judged(f"pld.system.notify(signal, 1 - me, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)\n{use}\n{LOAD}")
    assert result.exit_code == 2, result.output
    assert "use pld.system.wait and pld.system.notify for cells" in result.stderr


def test_a_loop_that_spins_on_a_cell_is_not_proved(judged, request):
    if not request.config.getoption("--thorough"):
        pytest.skip("with --thorough")
    notify = "pld.system.notify(signal, 1 - me, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)"
    result = judged(f"{notify}\nwhile pl.read(signal, [0, 0]) == 0: pass\n{LOAD}")
    assert result.exit_code in {0, 1}, result.output
    assert "SURVIVED" in result.output
