"""The table of operation kinds: nothing else lists them, and a further row is a further kind, everywhere."""

import ast
import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from asyncsim.trace.cells import APPLY, COMPARE, COMPARISONS, EITHER, HOWS, UP, UPDATES
from asyncsim.trace.columns import among, done_as
from asyncsim.trace.kinds import BOTH, EFFECTS, KINDS, NONE, PREDICATE, SEEN, UPDATE, WAITING
from asyncsim.trace.region import READ, WRITE

ROOT = Path(__file__).parents[2]
NAMES = {name.upper(): name for name in KINDS}
FEW = 8
"""A kind's name may stand in so many files: where its row is, its method, its effect; not in all that ask of it."""

_TREES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8"))
    for path in sorted((ROOT / "asyncsim").rglob("*.py"))
    if "frontends" not in path.parts and "certify" not in path.parts  # of other systems; and imports nothing of ours
}


def _names(tree):
    """Return the constants that a file imports from the table."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {alias.name for node in imports if node.module == "asyncsim.trace.kinds" for alias in node.names}


_NAMED = {file: _names(tree) for file, tree in _TREES.items()}


@pytest.mark.parametrize("name", NAMES)
def test_few_files_name_a_kind(name):
    files = ["asyncsim/trace/kinds.py", *(file for file, names in _NAMED.items() if name in names)]
    assert len(files) <= FEW, files


def test_no_file_asks_for_a_kind_by_its_word():
    """``op.kind == "wait"`` would be a reader that the table does not reach."""
    found = []
    for file, tree in _TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and _asks_kind(node.left):
                words = [each.value for right in node.comparators for each in ast.walk(right) if _is_kind(each)]
                found += [f"{file}:{node.lineno}: {word}" for word in words]
    assert not found


def _asks_kind(node):
    return isinstance(node, ast.Attribute) and node.attr in ("kind", "op")


def _is_kind(node):
    return isinstance(node, ast.Constant) and node.value in KINDS


@pytest.mark.parametrize("row", KINDS.values(), ids=KINDS)
def test_a_row_is_whole(row):
    assert (row.effect is None) == (row.cell == NONE)
    assert not row.result or row.effect is not None
    assert all(touch.mode in (READ, WRITE) for touch in row.touches)
    assert not (row.lands and row.landing)
    assert not row.landing or row.group == "landing"
    assert (row.name in WAITING) == (row.may_block and row.cell in (PREDICATE, BOTH))
    assert bool(row.amount) == (row.cell not in (NONE, SEEN) or row.order in ("sync", "quiet"))


class _Made:
    """What an effect asks of its operation."""

    consume = False

    def __init__(self, how, amount):
        self.how, self.amount = how, amount


@pytest.mark.parametrize("name", UPDATES)
def test_an_update_is_as_its_row_says(name):
    row = UPDATES[name]
    values = range(-3, 4)
    orders = [
        row.apply(row.apply(value, a), b) == row.apply(row.apply(value, b), a)
        for value in values
        for a in values
        for b in values
    ]
    assert all(orders) == row.commutes
    undone = [row.apply(row.apply(value, amount), -amount) == value for value in values for amount in values]
    assert all(undone) == row.inverse
    for kind in KINDS.values():
        if kind.cell == UPDATE:
            assert [EFFECTS[kind.name](value, _Made(name, 2))[0] for value in values] == [
                APPLY[name](value, 2) for value in values
            ]


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_is_as_its_row_says(name):
    row = COMPARISONS[name]
    answers = [row.holds(value, 0) for value in range(-3, 4)]
    assert answers == [eval(f"{value} {row.symbol} 0") for value in range(-3, 4)]  # noqa: S307 - the symbol is Python's
    turns = sum(a != b for a, b in pairwise(answers))
    assert (turns > 1) == (row.moves == EITHER)
    assert row.moves == EITHER or answers[-1] == (row.moves == UP)
    assert row.strict != COMPARE[name](0, 0)


def test_columns_number_the_kinds_as_the_table_has_them():
    assert [list(KINDS)[n] for n in among(WAITING).nonzero()[0]] == [name for name in KINDS if name in WAITING]
    assert [HOWS[n] for n in done_as({"Set", "Ge"}).nonzero()[0]] == ["Set", "Ge"]


# A made-up kind.

ROW = """        Kind(
            name="exchange", cell=UPDATE, effect=lambda value, op: (op.amount, value), result=True, joint="",
            done=("exchanged",), group="notify", amount="value",
        ),
"""
BEHIND = '''    )
}  # fmt: skip
"""All kinds'''


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """What a copy of asyncsim that has one row more does with it: see made_up_kind.py."""
    home = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "asyncsim", home / "asyncsim", ignore=shutil.ignore_patterns("__pycache__"))
    table = home / "asyncsim" / "trace" / "kinds.py"
    text = table.read_text("utf-8")
    assert text.count(BEHIND) == 1
    table.write_text(text.replace(BEHIND, ROW + BEHIND), "utf-8")
    shutil.copy(Path(__file__).parent / "made_up_kind.py", home)
    path = os.pathsep.join([str(home), str(ROOT / "tests" / "support")])
    process = subprocess.run(
        [sys.executable, "made_up_kind.py"],
        cwd=home, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert not process.stderr
    return json.loads(process.stdout)


def test_a_further_row_runs(made_up):
    assert made_up["outputs"] == [[[0, True], [5, 1]], [[7, True], [5, 8]]]
    texts = ["exchange turn[0]@0 := 5", "exchange turn[0]@0 := 7"] * 2
    assert made_up["ran"] == [[text, have] for text, have in zip(texts, [0, 5, 7, 5], strict=True)]


def test_a_further_row_is_written_and_read(made_up):
    assert made_up["read"] == made_up["ran"]
    assert made_up["same file"]
    fields = next(line for line in made_up["lines"] if line.get("op") == "exchange")
    assert (fields["how"], fields["value"], fields["have"]) == ("Set", 5, 0)


def test_a_further_row_is_in_the_schema(made_up):
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(made_up["schema"])
    assert all(map(validator.is_valid, made_up["lines"]))
    line = next(line for line in made_up["lines"] if line.get("op") == "exchange")
    assert not validator.is_valid({**line, "relaxed": True})


def test_a_further_row_is_analysed(made_up):
    assert made_up["clean"]
    assert set(made_up["found"]) == {"signal-race"}
    assert "certificate knows" in made_up["certificate"]


def test_a_further_row_is_judged_under_every_memory_model(made_up):
    # Of a result no theorem speaks where writes land late: there all executions are run.
    decided = {"sc": "PROVED", "ldst": "EXHAUSTED", "nic": "EXHAUSTED"}
    assert made_up["verdicts"] == {memory: [verdict, "REFUTED"] for memory, verdict in decided.items()}


def test_a_search_tells_the_orders_of_a_further_row_apart(made_up):
    assert made_up["search"] == [True, 2, 2]


def test_a_further_row_is_shown_and_can_be_waited_for_by_its_word(made_up):
    assert "exchange turn[0]@0 := 5" in made_up["shown"]
    assert made_up["held"][0][0] == "exchange turn[0]@0 := 6"
