"""Kernels are found by module, by short name and by file; what cannot be found is explained."""

from __future__ import annotations

import sys
import textwrap

import pytest
from command import KERNELS, run_process

from asyncsim.checking.record import locate as page
from asyncsim.checking.record.locate import all_kernels, is_shipped, locate
from asyncsim.machine.case import Case
from asyncsim.machine.kernel import Kernel
from asyncsim.machine.simulate import simulate
from asyncsim.trace.errors import MisuseError

KERNEL = '''
"""A kernel file."""
import numpy as np
from asyncsim.machine.kernel import kernel
from asyncsim.trace.declare import Window

data = Window("data", ("P",), np.float32)
number = 7

@kernel(memory=[data])
async def one(rank, data):
    """Store a number."""
    await rank.store(data[0], 1.0)
'''


class First:
    """Always the first that is ready."""

    def begin(self, actors):
        """Nothing to forget."""

    def choose(self, ready):
        """Return the first."""
        return ready[0]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty present folder; what tests import from it is forgotten again."""
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def write(path, text=KERNEL):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))


# ---- modules and short names


def test_a_kernel_is_found_by_its_module_and_by_its_short_name():
    assert locate("kernels.reduce_scatter:builtin") is locate("reduce_scatter:builtin")
    assert locate("reduce_scatter:builtin").ref == "kernels.reduce_scatter:builtin"


def test_a_module_of_the_present_folder_is_found_and_the_path_stays_as_it_was(folder):
    write(folder / "pack_age" / "deep.py")
    path = list(sys.path)
    assert locate("pack_age.deep:one").ref == "pack_age.deep:one"
    assert sys.path == path


def test_the_only_kernel_of_a_place_needs_no_name(folder):
    write(folder / "single.py")
    assert locate("single").name == "one"
    assert locate("single.py").name == "one"
    assert locate("single.py:").name == "one"


def test_a_name_may_be_dotted(folder):
    write(folder / "holder.py", KERNEL + "\nclass Box:\n    inside = one\n")
    assert isinstance(locate("holder.py:Box.inside"), Kernel)


def test_several_kernels_without_a_name_are_listed():
    with pytest.raises(MisuseError, match=r"reduce_scatter has several kernels; name one of reduce_scatter:hand, "):
        locate("reduce_scatter")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"'' names no kernel; write module:name"),
        (":name", r"':name' names no kernel"),
        ("reduce_scater:builtin", r"no module is called 'reduce_scater'; did you mean reduce_scatter"),
        ("kernels.reduce_scater:builtin", r"did you mean reduce_scatter"),
        (
            "zzz:builtin",
            r"no module is called 'zzz'; asyncsim has \d\d others, such as \w+(, [\w.]+){7} \(asy",
        ),
        ("not a name:x", r"no module is called 'not a name'"),
        ("asyncsim.nothing.here:x", r"no module is called 'asyncsim.nothing.here'"),
        ("reduce_scatter:bultin", r"reduce_scatter has no kernel 'bultin'; did you mean builtin\?"),
        ("reduce_scatter:zzz", r"no kernel 'zzz'; reduce_scatter has hand, builtin"),
        ("reduce_scatter:golden", r"reduce_scatter:golden is not a kernel but of type function; a kernel is an async"),
        ("asyncsim.trace.op", r"asyncsim.trace.op has no kernel; a kernel is an async function under @asyncsim.kernel"),
        ("asyncsim.trace.op:Op", r"is not a kernel but of type type; .*; asyncsim.trace.op has none"),
    ],
)
def test_what_names_no_kernel_is_explained(text, message):
    with pytest.raises(MisuseError, match=message):
        locate(text)


def test_a_module_that_lies_here_as_a_file_only_is_offered_by_path(folder):
    write(folder / "half" / "__init__.py", "")
    write(folder / "other" / "deep.py")
    (folder / "other.py").write_text("")
    with pytest.raises(MisuseError, match=r"to load the file, write other/deep.py:NAME"):
        locate("other.deep:one")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_thing_at_all", r"broken cannot be imported: ModuleNotFoundError: No module named 'no_such"),
        ("1 / 0", r"broken cannot be imported: ZeroDivisionError: division by zero \(.*broken.py:1\)"),
        ("raise SystemExit(5)", r"broken cannot be imported: SystemExit: 5"),
        ("\nx = = 1", r"broken cannot be imported: .*broken.py:2: invalid syntax"),
    ],
)
def test_a_module_that_fails_says_where(folder, source, message):
    write(folder / "broken.py", source)
    with pytest.raises(MisuseError, match=message):
        locate("broken:one")


# ---- files


def test_a_file_is_shown_under_the_path_as_given(folder):
    write(folder / "some" / "file.py")
    kernel = locate("some/file.py:one")
    assert kernel.ref == "some/file.py:one"
    assert kernel.source
    run = simulate(Case(kernel, ranks=1, calls=1), First(), record="first")
    assert run.trace is not None
    assert run.trace.header.kernel == "some/file.py:one"
    assert [event.at for event in run.trace.events] == [("some/file.py:13",)]


def test_a_file_is_loaded_once_and_again_when_it_has_changed(folder):
    file = folder / "file.py"
    write(file)
    first = locate("file.py:one")
    assert locate("file.py:one") is first
    write(file, KERNEL + "\nmore = 1\n")
    assert locate("file.py:one") is not first


def test_a_file_imports_its_neighbours_and_the_path_stays_as_it_was(folder):
    write(folder / "sub" / "neighbour_of_file.py", "width = 3\n")
    write(folder / "sub" / "file.py", "from neighbour_of_file import width\n" + KERNEL)
    path = list(sys.path)
    assert locate("sub/file.py:one").program.__globals__["width"] == 3
    assert sys.path == path


def test_a_file_may_change_the_path_itself(folder):
    write(folder / "file.py", "import sys\nsys.path.pop(0)\n" + KERNEL)
    path = list(sys.path)
    locate("file.py:one")
    assert sys.path == path


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("1 / 0", r"bad.py cannot be loaded: ZeroDivisionError: division by zero \(bad.py:1\)"),
        ("\n\nx = = 1", r"bad.py cannot be loaded: bad.py:3: invalid syntax"),
        ("from . import x", r"relative import.*; a file of a package is named as a module: package.module:name"),
        ("raise SystemExit", r"bad.py cannot be loaded: SystemExit"),
    ],
)
def test_a_file_that_fails_says_where_and_leaves_nothing(folder, source, message):
    write(folder / "bad.py", source)
    before = set(sys.modules)
    with pytest.raises(MisuseError, match=message):
        locate("bad.py:one")
    assert set(sys.modules) == before


def test_a_missing_file_names_its_neighbours(folder):
    write(folder / "sub" / "kernel_one.py")
    with pytest.raises(MisuseError, match=r"there is no file sub/kernel_onne.py; did you mean kernel_one.py\?"):
        locate("sub/kernel_onne.py:one")
    with pytest.raises(MisuseError, match=r"there is no file nowhere/x.py: there is no folder nowhere"):
        locate("nowhere/x.py:one")
    with pytest.raises(MisuseError, match=r"sub/ is not a file that can be read|sub is not a file that can be read"):
        locate("sub/:one")


def test_a_name_is_taken_as_pytest_writes_it(folder):
    write(folder / "mine.py")
    assert locate("mine.py::one") is locate("mine.py:one")


def test_a_missing_file_among_many_does_not_name_those_unlike_it(folder):
    for number in range(20):
        write(folder / f"kernel_{number}.py")
    with pytest.raises(MisuseError, match=r"none of the 20 Python files in \. has a name like it$"):
        locate("zzz.py:one")


# ---- what is shipped


def test_every_shipped_kernel_is_found_under_the_name_it_is_listed_by():
    kernels = all_kernels()
    assert "reduce_scatter:builtin" in kernels
    assert all(locate(name) is kernel for name, kernel in kernels.items())
    assert len(set(map(id, kernels.values()))) == len(kernels)
    assert all(is_shipped(kernel.ref) for kernel in kernels.values())


def test_shipped_packages_may_be_nested(monkeypatch, tmp_path):
    write(tmp_path / "nested_kernels" / "__init__.py", "")
    write(tmp_path / "nested_kernels" / "inner" / "__init__.py", "")
    write(tmp_path / "nested_kernels" / "inner" / "deep.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(page, "SHIPPED", "nested_kernels")
    monkeypatch.setattr(page, "PACKAGE", "nested_kernels")
    monkeypatch.setattr(page, "_FOLDER", tmp_path / "nested_kernels")
    assert list(all_kernels()) == ["inner.deep:one"]
    assert locate("inner.deep:one").ref == "nested_kernels.inner.deep:one"
    assert is_shipped("nested_kernels.inner.deep:one")
    assert not is_shipped("nested_kernels.inner:one")


def test_only_the_name_of_a_shipped_kernel_is_shipped(folder):
    write(folder / "kernels" / "evil.py", "raise RuntimeError('was run')")
    assert is_shipped("kernels.reduce_scatter:builtin")
    for ref in (
        "reduce_scatter:builtin", "kernels.evil:one", "kernels.reduce_scatter:golden", "kernels.reduce_scatter",
        "kernels.reduce_scatter:", "kernels/reduce_scatter.py:builtin", "os:system", "kernels.script:main", "",
    ):  # fmt: skip
        assert not is_shipped(ref), ref


def test_another_package_of_the_name_kernels_is_not_taken_for_ours(monkeypatch, tmp_path):
    write(tmp_path / "kernels" / "__init__.py", "")
    write(tmp_path / "kernels" / "mine.py")
    monkeypatch.setattr(page, "_FOLDER", tmp_path / "kernels")
    with pytest.raises(
        MisuseError, match=r"the name 'kernels' leads to .*kernels.*, which hides the kernels of asyncsim"
    ):
        locate("mine:one")


def test_a_missing_package_of_kernels_is_said(monkeypatch):
    monkeypatch.setattr(page, "PACKAGE", "no_such_package_of_kernels")
    with pytest.raises(MisuseError, match="leads to nothing"):
        locate("reduce_scatter:builtin")


def test_a_kernel_that_one_module_borrows_from_another_is_listed_once(monkeypatch):
    import kernels.all_reduce  # noqa: PLC0415 - only here

    borrowed = locate("reduce_scatter:hand")
    monkeypatch.setattr(kernels.all_reduce, "borrowed", borrowed, raising=False)
    monkeypatch.setattr(kernels.all_reduce, "own_variant", borrowed.variant(name="own_variant"), raising=False)
    names = set(all_kernels())
    assert "all_reduce:borrowed" not in names
    assert "all_reduce:own_variant" in names


def test_a_path_of_any_letters_is_found_where_the_locale_has_none(tmp_path):
    folder = tmp_path / "dir mit ü" / "子"
    folder.mkdir(parents=True)
    (folder / "shift é.py").write_text(KERNELS, "utf-8")
    ran = run_process(
        "check", f"{folder}/shift é.py:fine", "-P", "2", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"
    )
    assert (ran.returncode, ran.stderr, ran.stdout.startswith("PROVED ")) == (0, "", True)
