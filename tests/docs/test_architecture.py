"""The arrows run one way: rooms import only rooms below them, each outside library has one room."""

import ast
import importlib
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import asyncsim

ROOT = Path(__file__).parents[2]
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in ("asyncsim", "kernels", "pytest_asyncsim")
    for path in sorted((ROOT / package).rglob("*.py"))
}
PACKAGES = sorted((ROOT / "asyncsim").rglob("__init__.py"))
TREES = {name: ast.parse(path.read_text("utf-8")) for name, path in FILES.items()}

LEVELS = (
    ("trace",),
    ("machine", "analysis"),
    ("schedulers", "collectives"),
    ("checking.record",),
    ("checking.diagnose",),
    ("checking.search",),
    ("checking.witness",),
    ("checking.workers",),
    ("checking.verdict",),
    ("study",),
    ("guest", "views"),
    ("frontends", "testing"),
    ("pytest_plugin",),
    ("cli",),
)
"""The rooms, the lowest first: a room imports from the levels below its own, never from beside or above it."""
BELOW = {
    room: {below for level in LEVELS[:height] for below in level}
    for height, rooms in enumerate(LEVELS)
    for room in rooms
}
BELOW["analysis"] = {"trace"}  # it reads events, so that it works on a file that somebody sends
BELOW["guest"] -= {"study"}
BELOW["frontends"] -= {"study", "views"}
BELOW["testing"] -= {"guest", "study"}
BELOW["pytest_plugin"] -= {"guest", "frontends", "study"}
BELOW["certify"] = set()
BELOW["cli"] |= {"certify"}
BELOW["cli"] -= {"testing", "pytest_plugin"}
"""What each room may import. The files above the rooms (``asyncsim/*.py``) may import all of them."""

ONE_ROOM = {
    "trio": re.compile(r"asyncsim\.machine\.(simulate|tasks|handover)"),
    "greenlet": re.compile(r"asyncsim\.guest\.host"),
    "structlog": re.compile(r"asyncsim\.trace\.jsonl"),
    "click": re.compile(r"asyncsim\.cli(\..*)?"),
    "rich": re.compile(r"asyncsim\.cli(\..*)?"),
    "pytest": re.compile(r"asyncsim\.pytest_plugin(\..*)?|pytest_asyncsim"),
}
"""Where each outside library may be imported."""


def imports_of(name):
    """Return the modules that a module imports, also those it imports for type checking or inside a function."""
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} has a relative import; name the module in full"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in FILES else node.module


def room_of(module):
    """Return the room of a module of asyncsim: of a nested one the innermost; None: it stands above the rooms."""
    parts = module.split(".")
    if parts[0] != "asyncsim" or len(parts) == 1:
        return None
    nested = ".".join(parts[1:3])
    return nested if nested in BELOW else parts[1] if parts[1] in BELOW else None


def test_every_room_is_known():
    packages = [".".join(path.parent.relative_to(ROOT / "asyncsim").parts) for path in PACKAGES]
    unknown = [name for name in packages if name and name != "checking" and room_of(f"asyncsim.{name}") is None]
    assert unknown == []


@pytest.mark.parametrize("name", FILES)
def test_arrows_run_one_way(name):
    room = room_of(name)
    if room is None:
        return
    ours = {imported for imported in imports_of(name) if imported.partition(".")[0] in ("asyncsim", "kernels")}
    allowed = BELOW[room] | {room}
    above = {imported for imported in ours if room_of(imported) not in allowed}
    assert above <= ({"asyncsim"} if room == "cli" else set())  # commands use the public names as anybody does


def test_no_import_runs_in_a_circle_not_even_a_type_only_one():
    graph = {name: {imported for imported in imports_of(name) if imported in FILES} - {name} for name in FILES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize("library", ONE_ROOM)
def test_an_outside_library_has_one_room(library):
    users = {name for name in FILES for imported in imports_of(name) if imported.partition(".")[0] == library}
    assert {name for name in users if not ONE_ROOM[library].fullmatch(name)} == set()


def test_the_certificate_checker_imports_nothing_of_ours():
    checker = [name for name in FILES if room_of(name) == "certify"]
    found = {imported for name in checker for imported in imports_of(name) if room_of(imported) != "certify"}
    assert {imported.partition(".")[0] for imported in found} <= sys.stdlib_module_names


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_short_and_opens_with_what_it_is_for(name):
    assert len(FILES[name].read_text("utf-8").splitlines()) <= 400
    assert ast.get_docstring(TREES[name])
    assert name.rpartition(".")[2] not in ("utils", "util", "helpers", "common", "misc")


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("kernels")])
def test_kernels_import_public_names_only(name):
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "asyncsim":
            assert node.module == "asyncsim"
            assert {alias.name for alias in node.names} <= set(asyncsim.__all__)
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("asyncsim.") for alias in node.names)


def test_public_names_are_those_that_the_package_has():
    assert list(asyncsim.__all__) == sorted(asyncsim.__all__, key=_isort_key)
    assert len(set(asyncsim.__all__)) == len(asyncsim.__all__)
    for name in asyncsim.__all__:
        assert hasattr(asyncsim, name)
    body = TREES["asyncsim"].body
    for_types = next(node.body for node in body if isinstance(node, ast.If))
    imported = {
        alias.asname or alias.name: node.module
        for node in [*body, *for_types]
        if isinstance(node, ast.ImportFrom) and node.module.startswith("asyncsim")
        for alias in node.names
    }
    # What a type checker is told is where a name comes from when it is asked for.
    assert {name: module for name, module in imported.items() if name in asyncsim._PLACES} == asyncsim._PLACES
    assigned = {
        target.id
        for node in TREES["asyncsim"].body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    constants = {"AND", "ATOMIC_ADD", "MAX", "MIN", "OR", "SET", "VERSION", "XOR", "UpdateName"}
    assert set(asyncsim.__all__) == (imported.keys() | assigned) - {"__all__", "_HOMES", "_PLACES"} - constants


def _isort_key(name):
    """Constants, then classes, then the rest: the order that ruff keeps."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2, name)


@pytest.mark.parametrize("name", [name for name in asyncsim.__all__ if not name.startswith("__")])
def test_a_public_name_is_documented(name):
    if name in ("AtomicAdd", "Set"):
        return  # texts; the line below them in the package says what they mean
    assert getattr(asyncsim, name).__doc__


def test_every_module_can_be_imported():
    for name in FILES:
        if not name.endswith("__main__"):
            importlib.import_module(name)
