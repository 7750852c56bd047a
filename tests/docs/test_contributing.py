"""What contributors are told is there: files, names in them, a folder of tests for each room."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in (ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs/how-to").glob("add-*.md")))
}
HOW_TO = [name for name in GUIDES if name.startswith("docs/")]
TESTS = ROOT / "tests"
BESIDE = {"laws", "docs", "support", "pallas", "spin"}
"""Folders of tests that are no room: what holds across rooms, and what tests and measurements share."""
_FILE = re.compile(r"`([\w./-]*(?:/|\.py|\.md|\.toml|\.txt|\.pml))`")
_NAMED = re.compile(r"((?:`\w+`(?:, | and )?)+) in `([\w/]+\.py)`")


def found(name):
    """Return where a file or folder that a guide names can be: from the root, or inside the package."""
    return [path for path in (ROOT / name, ROOT / "asyncsim" / name) if path.exists()]


def defined(path):
    """Return the names that a module defines at its top, or in a class there."""
    names = set()
    tree = ast.parse(path.read_text("utf-8"))
    for node in [*tree.body, *(inner for each in tree.body if isinstance(each, ast.ClassDef) for inner in each.body)]:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.name for alias in node.names}
    return names


@pytest.mark.parametrize("guide", GUIDES)
def test_every_file_that_a_guide_names_is_there(guide):
    named = [name for name in _FILE.findall(GUIDES[guide]) if "/" in name and name not in ("site/", "traces/")]
    assert [name for name in named if not found(name)] == []


@pytest.mark.parametrize("guide", GUIDES)
def test_every_name_in_a_file_is_defined_there(guide):
    for names, file in _NAMED.findall(GUIDES[guide]):
        (path,) = found(file)
        assert set(re.findall(r"`(\w+)`", names)) <= defined(path), f"{guide}: {names} in {file}"


@pytest.mark.parametrize("guide", HOW_TO)
def test_a_how_to_names_files_and_is_linked(guide):
    assert f"]({guide})" in GUIDES["CONTRIBUTING.md"]
    if guide != "docs/how-to/add-a-front-end.md":  # its example is whole
        assert len(set(_FILE.findall(GUIDES[guide]))) >= 8
        assert _NAMED.findall(GUIDES[guide])


def test_every_room_has_its_tests_and_every_folder_of_tests_its_room():
    rooms = {path.parent.name for path in (ROOT / "asyncsim").glob("*/__init__.py")} - {"pytest_plugin"}
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and not path.name.startswith("_")}
    assert folders - BESIDE == rooms
    told = re.findall(r"^\| `(\w+)` \|[^|]*\| `tests/(\w+)/` \|", GUIDES["CONTRIBUTING.md"], re.MULTILINE)
    assert {room for room, _ in told} == rooms | {"pytest_plugin"}
    assert all((TESTS / folder).is_dir() for _, folder in told)


def test_every_test_stands_in_a_folder_and_has_a_name_of_its_own():
    files = [path for path in TESTS.rglob("test_*.py") if "sample_project" not in path.parts]
    assert [path.name for path in files if path.parent in (TESTS, TESTS / "frontends", TESTS / "support")] == []
    modules = [path for path in TESTS.rglob("*.py") if not {"sample_project", "scripts"} & {*path.parts}]
    twice = [name for name, number in Counter(path.name for path in modules).items() if number > 1]
    assert twice == ["conftest.py"]  # they are imported by their bare names


def test_every_target_of_make_that_a_guide_names_is_there():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for guide in (*GUIDES, "README.md"):
        assert set(re.findall(r"`make (\w+)", (ROOT / guide).read_text("utf-8"))) <= targets


def test_what_a_quick_run_lists_is_there_and_in_order():
    lines = (TESTS / "quick.txt").read_text("utf-8").splitlines()
    assert lines == sorted(set(lines))
    for line in lines:
        file, _, function = line.partition("::")
        assert not function or function in defined(ROOT / file), line
        assert (ROOT / file).is_file(), line
