"""Proposals: changes of a kernel's source that may repair it, the cheapest kinds first.

    release, neighbour, move, comparison   what stands there is said otherwise: no operation is added
    fence, quiet                           one operation, which waits for no other rank
    sync                                   two streams of one rank meet
    credit                                 a wait for what a peer notifies, and the notify if there is none
    barrier                                every rank waits for every other

Nothing here knows whether a proposal is right: `repair` runs each and judges it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.study.source import Change
from asyncsim.trace.late import model_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.machine.case import Case
    from asyncsim.study.source import Coverage, Source
    from asyncsim.trace.finding import Finding

RELEASE, NEIGHBOUR, MOVE, COMPARISON = "release", "neighbour", "move", "comparison"
FENCE, QUIET, SYNC, CREDIT, BARRIER = "fence", "quiet", "sync", "credit", "barrier"
KINDS = (RELEASE, NEIGHBOUR, MOVE, COMPARISON, FENCE, QUIET, SYNC, CREDIT, BARRIER)
"""The kinds of changes, the cheapest first."""
ADDING = (RELEASE, FENCE, QUIET, SYNC, CREDIT, BARRIER)
"""Those that only add order: what was ordered before is ordered still."""

NEW = "\0"
"""Stands in a proposal for the name of the signal or stream barrier that it adds."""
_SIGNALLING = ("notify", "notify_all", "put_signal", "wait", "wait_all", "test")
_NOTIFYING = ("notify", "notify_all", "put_signal")


@dataclass(frozen=True, slots=True)
class Proposal:
    """One change that may repair a kernel.

    Args:
        kind: one of `KINDS`.
        words: what it is, as the end of "PROVED with ...".
        changes: of the source; `NEW` in their texts is the name of what is added, if something is.
        distance: how far it is from where a person would look first.

    """

    kind: str
    words: str
    changes: tuple[Change, ...]
    distance: tuple[int, ...]

    def named(self, name: str) -> Proposal:
        """Return it with a name for what it adds."""
        changes = tuple(Change(change.start, change.end, change.text.replace(NEW, name)) for change in self.changes)
        return Proposal(self.kind, self.words.replace(NEW, name), changes, self.distance)


class RepairContext:
    """What proposals are made from.

    Args:
        case: what is to be repaired.
        source: its file.
        visited: where its fair run went.
        finding: the first of what is wrong with it.

    """

    def __init__(self, case: Case, source: Source, visited: Coverage, finding: Finding) -> None:
        self.case = case
        self.source = source
        self.visited = visited
        self.finding = finding
        self.about = [line for side in finding.sides for line in visited.chain(side)[-1:]]

    def distance_to(self, line: int) -> int:
        """Return how far a line is from those that the finding is about."""
        return min((abs(line - other) for other in self.about), default=0)

    def order_after(self, line: int) -> tuple[int, int]:
        """Order places: soon behind the first side of the finding, then those before it."""
        away = line - (self.about[0] if self.about else 0)
        return int(away <= 0), abs(away)

    def calls(self, function: ast.AsyncFunctionDef, names: Sequence[str]) -> Iterator[ast.Call]:
        """Yield the calls of methods with one of these names that the run came to.

        Args:
            function: of the kernel's file.
            names: of methods.

        """
        for node in ast.walk(function):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in names
                and self.visited.lines & set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
            ):
                yield node

    def rank(self, function: ast.AsyncFunctionDef) -> str:
        """Return what a function calls its rank: its first parameter; inside the program, the program's."""
        named = self.source.program if self.source.is_nested(function) else function
        return next((arg.arg for arg in (*named.args.posonlyargs, *named.args.args)), "rank")

    def peers(self, function: ast.AsyncFunctionDef) -> list[str]:
        """Return how a function may name ranks: what it gives to `at`, goes through, or computes."""
        found: dict[str, None] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "at":
                found.update((self.source.words(arg), None) for arg in node.args)
            elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
                if self.source.words(node.left) == f"{self.rank(function)}.id":
                    found[self.source.words(node.comparators[0])] = None
            elif isinstance(node, ast.For) and isinstance(node.target, ast.Name) and node.target.id != "_":
                found[node.target.id] = None
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and any(isinstance(part, ast.Mod) for part in ast.walk(node.value)):
                names = [part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)]
                found.update((name, None) for name in names)
        for text in list(found):
            found.update((other, None) for other in _mirrored(text))
        return list(found)


def proposals(context: RepairContext) -> Iterator[Proposal]:
    """Yield the changes that add no operation, and those that add one which waits for no other rank."""
    for function in context.visited.functions:
        yield from _releases(context, function)
        yield from _neighbours(context, function)
        yield from _moves(context, function)
        yield from _comparisons(context, function)
        if model_of(context.case.memory).late:
            yield from _fences(context, function)


def _releases(context: RepairContext, function: ast.AsyncFunctionDef) -> Iterator[Proposal]:
    """Leave out that a notify is relaxed."""
    for call in context.calls(function, _NOTIFYING):
        for keyword in call.keywords:
            if keyword.arg == "order":
                end = context.source.span(keyword)[1]
                stops = [context.source.span(arg)[1] for arg in call.args]
                stops += [context.source.span(other)[1] for other in call.keywords]
                start = max(stop for stop in stops if stop < end)
                words = f"a release in place of {ast.unparse(keyword)} at line {call.lineno}"
                yield Proposal(RELEASE, words, (Change(start, end, ""),), (context.distance_to(call.lineno),))


def _neighbours(context: RepairContext, function: ast.AsyncFunctionDef) -> Iterator[Proposal]:
    """Notify another peer, or another cell; wait for another cell; compute a neighbour the other way round."""
    peers = context.peers(function)
    own = f"{context.rank(function)}.id"
    for call in context.calls(function, _SIGNALLING):
        first = 2 if isinstance(call.func, ast.Attribute) and call.func.attr == "put_signal" else 0
        for cell in _cells(call.args[first:]):
            peer = _peer(cell)
            if peer is not None:
                yield from (_replacement(context, NEIGHBOUR, peer, other) for other in peers)
            yield from (_replacement(context, NEIGHBOUR, cell.slice, other) for other in (*peers, own))
    for statement in ast.walk(function):
        if isinstance(statement, ast.Assign):
            for node in ast.walk(statement.value):
                if isinstance(node, ast.BinOp):
                    yield from (
                        _replacement(context, NEIGHBOUR, node, other) for other in _mirrored(context.source.words(node))
                    )


def _comparisons(context: RepairContext, function: ast.AsyncFunctionDef) -> Iterator[Proposal]:
    """Wait for one more or one less, or for at least as many where it is for exactly as many."""
    for call in context.calls(function, ("wait", "wait_all")):
        for node in (node for arg in call.args for node in ast.walk(arg) if isinstance(node, ast.Compare)):
            left, right = context.source.words(node.left), context.source.words(node.comparators[0])
            if isinstance(node.ops[0], ast.Eq):
                yield _replacement(context, COMPARISON, node, f"{left} >= {right}")
            elif isinstance(node.ops[0], ast.GtE):
                yield from (
                    _replacement(context, COMPARISON, node.comparators[0], text) for text in _one_more_one_less(right)
                )


def _replacement(context: RepairContext, kind: str, node: ast.expr, text: str) -> Proposal:
    """Propose another text for an expression."""
    words = f"`{text}` for `{context.source.words(node)}` at line {node.lineno}"
    return Proposal(kind, words, (Change(*context.source.span(node), text),), (context.distance_to(node.lineno),))


def _moves(context: RepairContext, function: ast.AsyncFunctionDef) -> Iterator[Proposal]:
    """Move a statement up or down among its neighbours."""
    everything = {id(statement.node): statement for statement in context.source.statements(function)}
    for statement in context.visited.statements(function):
        start, end = context.source.extent(statement)
        at = next(n for n, node in enumerate(statement.block) if node is statement.node)
        for to, node in enumerate(statement.block):
            other = everything.get(id(node))
            if to == at or other is None or isinstance(statement.node, ast.Return) or _is_docstring(node):
                continue
            text = context.source.text[start:end]
            place = context.source.extent(other)[to > at]
            arrival = Change(place, place, text)
            if to > at and isinstance(node, ast.Return):
                arrival = context.source.after(other, text.strip().splitlines())
            side = f"above line {other.first}" if to < at else f"below line {other.last}"
            words = f"line {statement.first} moved {side}"
            yield Proposal(
                MOVE, words, (Change(start, end, ""), arrival), (abs(to - at), context.distance_to(statement.first))
            )


def _fences(context: RepairContext, function: ast.AsyncFunctionDef) -> Iterator[Proposal]:
    """Put a fence, or a quiet, before a statement."""
    rank = context.rank(function)
    for statement in context.visited.statements(function):
        for kind in (FENCE, QUIET):
            change = context.source.before(statement, [f"await {rank}.{kind}()"])
            words = f"a {kind} before line {statement.first}"
            yield Proposal(kind, words, (change,), (context.distance_to(statement.first),))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _cells(args: Sequence[ast.expr]) -> Iterator[ast.Subscript]:
    """Yield the outermost subscripts of some arguments: the cells of signals."""
    for arg in args:
        if isinstance(arg, ast.Subscript):
            yield arg
        elif not isinstance(arg, ast.Constant):
            yield from _cells([node for node in ast.iter_child_nodes(arg) if isinstance(node, ast.expr)])


def _peer(cell: ast.Subscript) -> ast.expr | None:
    """Return what `at` is given in ``signal.at(peer)[...]``."""
    of = cell.value
    at = isinstance(of, ast.Call) and isinstance(of.func, ast.Attribute) and of.func.attr == "at"
    return of.args[0] if at and isinstance(of, ast.Call) and of.args else None


def _one_more_one_less(text: str) -> tuple[str, str]:
    """Return one more and one less than an expression."""
    node = ast.parse(f"({text})", mode="eval").body
    number, rest = 0, text
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and _is_number(node.right):
        number, rest = int(ast.unparse(node.right)), ast.unparse(node.left)
        number = number if isinstance(node.op, ast.Add) else -number
    elif _is_number(node):
        return str(int(text) + 1), str(int(text) - 1)
    more, less = (
        f"{rest} {'+' if made > 0 else '-'} {abs(made)}" if made else rest for made in (number + 1, number - 1)
    )
    return more, less


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _mirrored(text: str) -> list[str]:
    """Return a sum modulo something with minus for plus, or plus for minus."""
    node = ast.parse(f"({text})", mode="eval").body
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mod) or not isinstance(node.left, ast.BinOp):
        return []
    if isinstance(node.left.op, ast.Add):
        node.left.op = ast.Sub()
    elif isinstance(node.left.op, ast.Sub):
        node.left.op = ast.Add()
    else:
        return []
    return [ast.unparse(node)]
