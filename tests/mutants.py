"""A small mutation run: each central module is changed in one place at a time, and some test must notice.

``python tests/mutants.py`` (or ``make mutants``) prints the survivors, each with its line and the change, and
ends with status 1 if there are any. Arguments are modules, ``checking/search/dpor.py``, or single lines of them,
``machine/gate.py:203``. The tests of a module are those that see most of it in a few seconds. A mutant lives in
a child of its own, which imports the changed source in the place of the file; it is killed by a failing test,
or by the clock.

``python tests/mutants.py --quick 20`` asks how much ``make quick`` sees: it draws as many mutants of all modules,
the same ones each time, and runs what `tests/quick.txt` lists, beginning with the room of the mutant. Its status is 1
if more than one of ten survives.
"""

from __future__ import annotations

import ast
import copy
import importlib.abc
import importlib.util
import os
import random
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import trio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parent.parent
JOBS = max(1, min(2, os.cpu_count() or 1))
MODULES: dict[str, tuple[str, ...]] = {
    "machine/effect.py": ("test_unequal", "test_machine_signals", "test_machine_windows", "test_late", "test_streams"),
    "machine/gate.py": ("test_unequal", "test_gate", "test_streams", "test_all_at_once"),
    "machine/wires.py": ("test_late", "test_late_order", "test_late_copies", "test_litmus", "test_late_examples"),
    "analysis/guards.py": ("test_unequal", "test_theory_examples", "test_late_examples"),
    "analysis/signals.py": ("test_unequal", "test_theory_examples", "test_hang"),
    "analysis/steady.py": ("test_unequal", "test_theory_examples", "test_late_examples"),
    "analysis/lost.py": ("test_hang", "test_witness"),
    "checking/search/dpor.py": ("test_exhaust_restart", "test_exhaust", "test_exhaust_split"),
    "checking/diagnose/outcome.py": ("test_judge", "test_outcome"),
    "trace/jsonl_step.py": ("test_jsonl_same", "test_jsonl_damage", "test_jsonl_late_damage", "test_hang"),
}
"""Of each module the tests, the quickest first."""
COMPARISONS = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}


@dataclass(frozen=True)
class Mutant:
    """One change of a module.

    Args:
        module: its file below asyncsim/.
        line: where the change is.
        old, new: that stretch of source, before and after.
        source: the whole module, changed.

    """

    module: str
    line: int
    old: str
    new: str
    source: str

    def __str__(self) -> str:
        """Write it as a place and a change."""
        return f"asyncsim/{self.module}:{self.line}: {' '.join(self.old.split())}  ->  {' '.join(self.new.split())}"


def mutants_of(module: str) -> Iterator[Mutant]:
    """Yield every mutant of a module, from top to bottom."""
    text = (ROOT / "asyncsim" / module).read_text("utf-8")
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _places(ast.parse(text)):
        begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        raw = text.encode()
        for changed in _changes(node):
            new = ast.unparse(changed) if isinstance(changed, ast.stmt) else f"({ast.unparse(changed)})"
            source = (raw[:begin] + new.encode() + raw[end:]).decode()
            yield Mutant(module, node.lineno, raw[begin:end].decode(), new, source)


def _places(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yield what is run; not annotations, texts, decorators, assertions, and what is there for the type checker."""
    skipped: tuple[object, ...] = ()
    if isinstance(node, ast.JoinedStr | ast.Assert | ast.Raise | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        skipped = (node.args, node.returns, *node.decorator_list)
    if isinstance(node, ast.AnnAssign):
        skipped = (node.annotation,)
    if isinstance(node, ast.ClassDef):
        skipped = tuple(node.decorator_list)
    for child in ast.iter_child_nodes(node):
        if child not in skipped and not _is_typing(child):
            if isinstance(child, ast.expr | ast.stmt):
                yield child
            yield from _places(child)


def _is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _changes(node: ast.expr | ast.stmt) -> Iterator[ast.expr | ast.stmt]:  # noqa: C901, PLR0912 - a table of cases
    """Yield what may stand in the place of a node."""
    if isinstance(node, ast.Compare):
        for number, op in enumerate(node.ops):
            if type(op) in COMPARISONS:
                changed = copy.deepcopy(node)
                changed.ops[number] = COMPARISONS[type(op)]()
                yield changed
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        for number in range(len(node.values)):
            rest = [*node.values[:number], *node.values[number + 1 :]]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
        yield ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()
    elif isinstance(node, ast.If | ast.While) and isinstance(node.test, ast.Call | ast.Name | ast.Attribute):
        changed = copy.deepcopy(node)
        changed.test = ast.UnaryOp(ast.Not(), node.test)
        yield changed
    elif isinstance(node, ast.Continue):
        yield ast.Break()


class Changed(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Imports one module from another source than its file's."""

    def __init__(self, mutant: Mutant) -> None:
        """Take the source of this mutant."""
        self._name = f"asyncsim.{mutant.module.removesuffix('.py').replace('/', '.')}"
        self._file = str(ROOT / "asyncsim" / mutant.module)
        self._source = mutant.source

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> object:
        """Find that module."""
        return importlib.util.spec_from_loader(fullname, self, origin=self._file) if fullname == self._name else None

    def get_filename(self, fullname: str) -> str:
        """Return the file, whose lines are shown."""
        return self._file

    def get_data(self, path: str) -> bytes:
        """Return the changed source."""
        return self._source.encode()


def start(tests: tuple[str, ...], mutant: Mutant | None) -> int:
    """Run tests in a child, with the mutant in its place; return the number of its process."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        os.setpgid(0, 0)
        if mutant is not None:
            sys.meta_path.insert(0, Changed(mutant))
        status = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", *tests]))
    finally:
        os._exit(status)


def tests_of(module: str) -> tuple[str, ...]:
    """Return the files of a module's tests."""
    return tuple(str(path) for name in MODULES[module] for path in (ROOT / "tests").rglob(f"{name}.py"))


def quick_tests(mutant: Mutant | None) -> tuple[str, ...]:
    """Return the arguments of a quick run, the room of the mutant first, then the laws."""
    room = mutant.module.partition("/")[0] if mutant else ""
    lines = (ROOT / "tests" / "quick.txt").read_text("utf-8").split()
    first = [f"tests/{room}/", "tests/laws/"]
    place = {line: next((at for at, begin in enumerate(first) if line.startswith(begin)), 2) for line in lines}
    return ("--quick", *sorted(lines, key=place.__getitem__))


def drawn(number: int) -> list[Mutant]:
    """Return so many mutants of all modules, of each about as many."""
    rng = random.Random(number)  # noqa: S311 - dice, no secret
    modules = [rng.sample(all_of, len(all_of)) for all_of in map(list, map(mutants_of, MODULES))]
    return [modules[at % len(modules)][at // len(modules)] for at in range(number)]


def survivors_of(left: list[Mutant], tests: Callable[[Mutant | None], tuple[str, ...]]) -> Iterator[Mutant]:
    """Yield the mutants that no test notices."""
    begun = time.monotonic()
    if os.waitpid(start(tests(None), None), 0)[1]:
        sys.exit(f"the tests fail without any mutant: {' '.join(tests(None))}")
    patience = 10 + 4 * JOBS * (time.monotonic() - begun)
    running: dict[int, tuple[Mutant, float]] = {}
    while left or running:
        while left and len(running) < JOBS:
            mutant = left.pop(0)
            running[start(tests(mutant), mutant)] = mutant, time.monotonic() + patience
        child, status = os.waitpid(-1, os.WNOHANG)
        if child and status == 0:
            yield running[child][0]
        if child:
            del running[child]
            continue
        for each, (_, until) in running.items():
            if time.monotonic() > until:
                os.killpg(each, signal.SIGKILL)
        time.sleep(0.05)


def main(arguments: list[str]) -> int:
    """Run the mutants that are asked for, or all; return the exit status."""
    os.chdir(ROOT)
    if arguments[:1] == ["--quick"]:
        number = int(arguments[1])
        return int(10 * told(f"{number} mutants, make quick", survivors_of(drawn(number), quick_tests)) > number)
    wanted: dict[str, set[int]] = {}
    for argument in arguments or MODULES:
        module, _, line = argument.removeprefix("asyncsim/").partition(":")
        wanted.setdefault(module, set()).update({int(line)} if line else ())
    found = 0
    for module, lines in wanted.items():
        left = [mutant for mutant in mutants_of(module) if not lines or mutant.line in lines]
        found += told(f"{module}: {len(left)} mutants", survivors_of(left, lambda _, of=module: tests_of(of)))
    return int(found > 0)


def told(title: str, survivors: Iterator[Mutant]) -> int:
    """Print the survivors as they are found; return how many there are."""
    print(title, flush=True)
    number = 0
    for number, mutant in enumerate(survivors, 1):  # noqa: B007 - it is counted
        print(f"  survives: {mutant}", flush=True)
    print(f"{number} survive", flush=True)
    return number


if __name__ == "__main__":
    del np, trio  # imported once, before any child is made
    sys.exit(main(sys.argv[1:]))
