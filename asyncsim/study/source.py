"""The file that a kernel stands in, as text to change: its statements, and the kernel of the changed text.

A changed kernel is made by running the whole changed file as a module of its own, as Python would if the
file said so. What is judged is therefore exactly what the same change by hand gives.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import io
import re
import sys
from bisect import bisect_right
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

from asyncsim.machine.kernel import Kernel
from asyncsim.machine.simulate import simulate
from asyncsim.machine.site import shown_path
from asyncsim.schedulers.fifo import Fifo

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from asyncsim.machine.case import Case
    from asyncsim.machine.site import Frame
    from asyncsim.trace.finding import Side
    from asyncsim.trace.op import Op

    Extent = tuple[int, int]

_CHANGED = "_changed_"
"""Begins the name of the module of a changed file."""


class UnreadableError(Exception):
    """The source of a kernel cannot be changed and loaded again; the message says why."""


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """One change of a text: what stands from `start` to `end` becomes `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a function, on lines of its own.

    Args:
        node: its syntax.
        block: the statements it stands among, in their order.
        parents: the compound statements around it, the innermost first.

    """

    node: ast.stmt
    block: tuple[ast.stmt, ...]
    parents: tuple[Statement, ...]

    @property
    def first(self) -> int:
        """The number of its first line."""
        return self.node.lineno

    @property
    def last(self) -> int:
        """The number of its last line."""
        return cast("int", self.node.end_lineno)

    def contains_line(self, line: int) -> bool:
        """Return whether a line is one of its own."""
        return self.first <= line <= self.last


class Source:
    """The text of the file of a kernel's program.

    Args:
        kernel: the kernel, which has a name in that file.

    Raises:
        UnreadableError: it has none, or the file cannot be read, or has changed since the kernel was made.

    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.file = kernel.program.__code__.co_filename
        self._names = kernel.program.__globals__
        names = [name for name, value in self._names.items() if value is kernel]
        self.shown = self._names.get("__asyncsim_path__") or shown_path(self.file, kernel.module)
        if not names:
            raise UnreadableError("it has no name of its own in the module of its program")
        if kernel.module == "__main__":
            raise UnreadableError("it stands in the script that is run; `asyncsim audit FILE:NAME` can change it")
        if kernel.module.startswith(_CHANGED):
            raise UnreadableError("it stands in a file that is changed already")
        self.name = names[0]
        try:
            raw = Path(self.file).read_bytes()
            self.text = raw.decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableError(f"its file cannot be read: {error}") from error
        if hashlib.sha256(raw.replace(b"\r\n", b"\n")).hexdigest()[:16] != kernel.source:
            raise UnreadableError("its file has changed since it was loaded")
        self.lines = list(io.StringIO(self.text, newline=""))
        self.tree = ast.parse(self.text)
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))
        self.newline = "\r\n" if self.lines and self.lines[0].endswith("\r\n") else "\n"

    @property
    def others(self) -> dict[str, Kernel]:
        """The other kernels of the file, by their names in it."""
        named = {name: value for name, value in self._names.items() if isinstance(value, Kernel)}
        own = {name: value for name, value in named.items() if value.program.__code__.co_filename == self.file}
        return {name: value for name, value in own.items() if value is not self.kernel}

    # ---- syntax

    @cached_property
    def functions(self) -> tuple[ast.AsyncFunctionDef, ...]:
        """Every async function, the outer ones first."""
        return tuple(node for node in ast.walk(self.tree) if isinstance(node, ast.AsyncFunctionDef))

    def function_at(self, line: int) -> ast.AsyncFunctionDef | None:
        """Return the innermost async function that a line stands in."""
        statements_around = [node for node in self.functions if node.lineno <= line <= cast("int", node.end_lineno)]
        return max(statements_around, key=lambda node: node.lineno, default=None)

    def function_of(self, change: Change) -> ast.AsyncFunctionDef | None:
        """Return the innermost async function that a change is in."""
        return self.function_at(bisect_right(self._starts, change.start))

    @cached_property
    def program(self) -> ast.AsyncFunctionDef:
        """The function of the kernel's program."""
        code = self.kernel.program.__code__
        for node in self.functions:
            if min((node.lineno, *(made.lineno for made in node.decorator_list))) == code.co_firstlineno:
                return node
        raise UnreadableError("its program is not an async function of its file")

    def is_nested(self, function: ast.AsyncFunctionDef) -> bool:
        """Return whether a function stands inside the program, and sees its names."""
        return function is not self.program and function in ast.walk(self.program)

    def statements(self, function: ast.AsyncFunctionDef) -> Iterator[Statement]:
        """Yield the statements of a function that stand on lines of their own, the outer ones first."""
        yield from self._statements(function.body, ())

    def _statements(self, block: Sequence[ast.stmt], parents: tuple[Statement, ...]) -> Iterator[Statement]:
        for node in block:
            found = Statement(node, tuple(block), parents)
            if not self._stands_alone(found):
                continue
            yield found
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for inner in _blocks(node):
                    yield from self._statements(inner, (found, *parents))

    def _stands_alone(self, statement: Statement) -> bool:
        """Return whether nothing else is on its lines but a comment."""
        before = self.text[self._starts[statement.first - 1] : self.span(statement.node)[0]]
        after = self.text[self.span(statement.node)[1] : self._starts[statement.last]]
        alone = not before.strip() and after.lstrip()[:1] in ("", "#") and after.endswith("\n")
        return alone and not self.text.startswith("elif", self.span(statement.node)[0])

    # ---- places in the text

    def _offset(self, line: int, column: int) -> int:
        """Return where a place of the syntax is; its columns count bytes."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return self._starts[line - 1] + len(text.encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> Extent:
        """Return where a node begins and ends."""
        end = self._offset(cast("int", node.end_lineno), cast("int", node.end_col_offset))
        return self._offset(node.lineno, node.col_offset), end

    def words(self, node: ast.expr) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def extent(self, statement: Statement) -> Extent:
        """Return the whole lines of a statement."""
        return self._starts[statement.first - 1], self._starts[statement.last]

    def indent(self, statement: Statement) -> str:
        """Return what stands before its first word."""
        return self.text[self._starts[statement.first - 1] : self.span(statement.node)[0]]

    def line_start(self, line: int) -> int:
        """Return where a line begins."""
        return self._starts[line - 1]

    def before(self, statement: Statement, lines: Sequence[str]) -> Change:
        """Return the change that puts lines before a statement.

        Args:
            statement: of this file.
            lines: without indent; they get the statement's own.

        """
        at = self.extent(statement)[0]
        return Change(at, at, self._block(statement, lines))

    def after(self, statement: Statement, lines: Sequence[str]) -> Change:
        """Return the change that puts lines behind a statement; one that returns something is taken apart.

        Args:
            statement: of this file.
            lines: without indent; they get the statement's own.

        """
        at, end = self.extent(statement)
        node = statement.node
        if isinstance(node, ast.Return):
            result = self.unused_name("result")
            value = [] if node.value is None else [f"{result} = {self.words(node.value)}"]
            back = "return" if node.value is None else f"return {result}"
            return Change(at, end, self._block(statement, [*value, *lines, back]))
        return Change(end, end, self._block(statement, lines))

    def _block(self, statement: Statement, lines: Sequence[str]) -> str:
        return "".join(f"{self.indent(statement)}{line}{self.newline}" for line in lines)

    def unused_name(self, word: str, taken: Container[str] = ()) -> str:
        """Return a name that occurs nowhere in the file, and is not taken.

        Args:
            word: what the name begins with.
            taken: further names that it must not be.

        """
        number, name = 1, word
        while name in self._words or name in taken:
            number += 1
            name = f"{word}_{number}"
        return name

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(re.findall(r"\w+", self.text))

    # ---- the changed text

    def changed(self, changes: Sequence[Change]) -> str:
        """Return the text with some changes."""
        text = self.text
        for change in reversed(sorted(changes, key=lambda change: (change.start, change.end))):  # noqa: C413 - of two at one place the first comes first
            text = text[: change.start] + change.text + text[change.end :]
        return text

    def diff(self, changes: Sequence[Change]) -> str:
        """Return some changes as `diff -u` writes them."""
        old, new = (io.StringIO(text.replace("\r\n", "\n")) for text in (self.text, self.changed(changes)))
        return "".join(difflib.unified_diff(list(old), list(new), self.shown, self.shown))

    def load(self, changes: Sequence[Change], name: str = "") -> Kernel:
        """Return the kernel of the changed file; or another of the file, by its name there.

        Args:
            changes: of the text.
            name: of the kernel; empty: of the one that this is the source of.

        Raises:
            UnreadableError: the changed file has none, or cannot be run.

        """
        text = self.changed(changes)
        module = ModuleType(f"{_CHANGED}{hashlib.sha256(text.encode()).hexdigest()[:16]}")
        own = vars(module)
        package = self._names.get("__package__")
        own.update(__file__=self.file, __package__=package, __asyncsim_path__=self.shown)
        sys.modules[module.__name__] = module
        try:
            with redirect_stdout(io.StringIO()):  # what the file prints was printed when it was loaded first
                exec(compile(text, self.file, "exec", dont_inherit=True), own)  # noqa: S102 - it was run before
        except (Exception, SystemExit) as error:
            raise UnreadableError(f"its file cannot be run again: {type(error).__name__}: {error}") from error
        finally:
            del sys.modules[module.__name__]
        found = own.get(name or self.name)
        if not isinstance(found, Kernel):
            raise UnreadableError("it is not a kernel when its file is run again")
        return found


def overlap(changes: Sequence[Change]) -> bool:
    """Return whether two of some changes take away the same text, or one adds inside what the other takes."""
    return any(second.start < first.end for first, second in pairwise(sorted(changes)))


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    for handler in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield handler.body


class Coverage:
    """What one run visited.

    Args:
        source: the file; lines of other files are not looked at.

    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.lines: set[int] = set()
        self._order: dict[ast.AsyncFunctionDef, None] = {}
        self._chains: dict[tuple[str, int], tuple[int, ...]] = {}
        self._by_place: dict[tuple[str, ...], tuple[int, ...]] = {}
        self._counts: dict[str, int] = {}

    def watch(self, op: Op, frames: Sequence[Frame]) -> None:
        """Note an operation.

        Args:
            op: what is about to be done.
            frames: of the lines that it comes from, the outermost first.

        """
        chain = tuple(
            int(frame.text.rpartition(":")[2]) for frame in frames if frame.code.co_filename == self.source.file
        )
        number = self._counts[op.actor.name] = self._counts.get(op.actor.name, -1) + 1
        self._chains[op.actor.name, number] = chain
        theirs = [frame.text for frame in frames if not frame.ours]
        self._by_place.setdefault(tuple(theirs[-1:]), chain)
        for line in chain:
            if line not in self.lines:
                self.lines.add(line)
                function = self.source.function_at(line)
                if function is not None:
                    self._order.setdefault(function)

    @property
    def functions(self) -> Sequence[ast.AsyncFunctionDef]:
        """The functions of the file that were visited, in the order of the visits."""
        return list(self._order)

    def chain(self, side: Side) -> tuple[int, ...]:
        """Return the lines of the file that lead to one side of a finding, the outermost first."""
        found = self._chains.get((side.actor, side.index), ())
        return found or self._by_place.get(side.at[:1], ())

    def statements_around(self, function: ast.AsyncFunctionDef, side: Side) -> list[Statement]:
        """Return the statements of a function that one side of a finding stands in, the innermost first.

        Args:
            function: of the kernel's file.
            side: of a finding.

        """
        lines = self.chain(side)
        found = [
            statement
            for statement in self.source.statements(function)
            if any(statement.contains_line(line) for line in lines)
            and self.source.function_at(statement.first) is function
        ]
        return found[::-1]

    def statements(self, function: ast.AsyncFunctionDef) -> Iterator[Statement]:
        """Yield the statements of a function that issued something."""
        for statement in self.source.statements(function):
            if any(statement.contains_line(line) for line in self.lines):
                yield statement


async def visited(source: Source, case: Case) -> Coverage:
    """Return what the fair run of a case visits.

    Args:
        source: the kernel's file.
        case: what is run.

    """
    found = Coverage(source)
    await simulate.aio(case, Fifo(), watch=found.watch, engine="direct")
    return found
