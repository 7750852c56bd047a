"""Where the fair run of a kernel went in its file: the lines that issued something, and those that led there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.fifo import Fifo

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator, Sequence

    from asyncsim.machine.case import Case
    from asyncsim.machine.site import Frame
    from asyncsim.study.source import Source, Statement
    from asyncsim.trace.finding import Side
    from asyncsim.trace.op import Op


class Visited:
    """What one run visited.

    Args:
        source: the file; lines of other files are not looked at.

    """

    def __init__(self, source: Source) -> None:
        """Start with nothing visited."""
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

    def around(self, function: ast.AsyncFunctionDef, side: Side) -> list[Statement]:
        """Return the statements of a function that one side of a finding stands in, the innermost first.

        Args:
            function: of the kernel's file.
            side: of a finding.

        """
        lines = self.chain(side)
        found = [
            statement
            for statement in self.source.statements(function)
            if any(statement.holds(line) for line in lines) and self.source.function_at(statement.first) is function
        ]
        return found[::-1]

    def statements(self, function: ast.AsyncFunctionDef) -> Iterator[Statement]:
        """Yield the statements of a function that issued something."""
        for statement in self.source.statements(function):
            if any(statement.holds(line) for line in self.lines):
                yield statement


async def visited(source: Source, case: Case) -> Visited:
    """Return what the fair run of a case visits.

    Args:
        source: the kernel's file.
        case: what is run.

    """
    found = Visited(source)
    await simulate.aio(case, Fifo(), watch=found.watch, engine="direct")
    return found
