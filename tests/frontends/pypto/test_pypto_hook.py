"""``pypto`` is asyncsim's while a script runs, and whatever is installed before and after."""

import importlib
import re
import subprocess
import sys

import pytest
from command import ROOT
from pypto_dialect import dialect

from asyncsim.frontends.pypto.hook import answering
from asyncsim.frontends.pypto.session import Session


def ours():
    return sorted(name for name in sys.modules if name.partition(".")[0] == "pypto")


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a package called pypto, with a module that asyncsim does not have."""
    (tmp_path / "pypto").mkdir()
    (tmp_path / "pypto" / "__init__.py").write_text("REAL = True\n")
    (tmp_path / "pypto" / "language.py").write_text("REAL = True\n")
    (tmp_path / "pypto" / "backend.py").write_text("REAL = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield
    for name in ours():
        del sys.modules[name]


def test_nothing_is_left_behind():
    before = list(sys.meta_path)
    with dialect() as d:
        assert d.pl.__name__ == "pypto.language"
        assert sys.modules["pypto.language.distributed"] is d.pld
    assert ours() == []
    assert sys.meta_path == before


def test_nothing_is_left_behind_by_a_script_that_fails():
    with pytest.raises(ZeroDivisionError), dialect():
        1 // 0  # noqa: B018
    assert ours() == []


def test_an_installed_pypto_is_hidden_for_the_run_alone(installed):
    real = importlib.import_module("pypto.language")
    assert real.REAL
    with dialect() as d:
        assert not hasattr(d.pl, "REAL")
        with pytest.raises(ModuleNotFoundError, match=r"asyncsim's pypto has no module 'pypto\.backend'"):
            importlib.import_module("pypto.backend")
    assert sys.modules["pypto.language"] is real
    assert importlib.import_module("pypto.backend").REAL


def test_an_installed_pypto_that_nobody_imported_is_found_afterwards(installed):
    with dialect():
        pass
    assert importlib.import_module("pypto").REAL


def test_importing_asyncsim_answers_for_nobody():
    code = "import asyncsim.cli.main, sys; assert not [m for m in sys.modules if m.partition('.')[0] == 'pypto']"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=240)  # noqa: S603 - ours


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("pypto.langauge", "asyncsim's pypto has no module 'pypto.langauge'; did you mean 'pypto.language'?"),
        ("pypto.language.distribute", "did you mean 'pypto.language.distributed'?"),
    ],
)
def test_an_unknown_module_is_answered_with_the_nearest(module, words):
    with dialect(), pytest.raises(ModuleNotFoundError, match=re.escape(words)):
        importlib.import_module(module)


def test_every_module_lists_its_names():
    with dialect():
        for name in ours():
            module = sys.modules[name]
            assert module.__doc__
            for each in module.__all__:
                assert getattr(module, each) is not None


def test_two_sessions_do_not_know_of_each_other():
    one, other = Session("one.py"), Session("other.py")
    with answering(one):
        first = sys.modules["pypto.language"]
        with answering(other):
            assert sys.modules["pypto.language"] is not first
        assert sys.modules["pypto.language"] is first


def test_the_folders_of_a_session_are_removed():
    with dialect() as d:
        folder = d.session.folder()
        assert folder.is_dir()
    assert not folder.exists()
