"""``--asyncsim-save``: each test has a folder of its own, whatever it is called."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from asyncsim.pytest_plugin.saving import saving
from asyncsim.testing.saving import FOLDER


def folder_of(test, tmp_path):
    config = SimpleNamespace(invocation_params=SimpleNamespace(dir=tmp_path), getoption={"asyncsim_save": "kept"}.get)
    with saving(SimpleNamespace(nodeid=test, config=config)):
        folder = FOLDER.get()
    assert FOLDER.get() is None
    assert folder.parent == tmp_path / "kept"
    return folder.name


@pytest.mark.parametrize(
    ("test", "name"),
    [
        ("test_it.py::test_x", "test_it.py-test_x"),
        ("a/test_it.py::Test::test_x[3-sc]", "a-test_it.py-Test-test_x-3-sc"),
    ],
)
def test_a_folder_is_called_as_its_test(test, name, tmp_path):
    assert folder_of(test, tmp_path) == name


def test_tests_whose_names_differ_in_other_letters_alone_have_folders_of_their_own(tmp_path):
    tests = [
        "test \xe9.py::test_x", "test \xfc.py::test_x", "test-.py::test_x", "a/b.py::t", "a-b.py::t",
        "b.py::t[a-b]", "b.py::t[a/b]", "b.py::t[a--b]", "b.py::t[a-b-]",
    ]  # fmt: skip
    names = [folder_of(test, tmp_path) for test in tests]
    assert len(set(names)) == len(tests)
    assert names == [folder_of(test, tmp_path) for test in tests]
    assert all(name.isascii() for name in names)
