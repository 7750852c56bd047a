"""Proposals that add a wait: for a credit, for all ranks at a barrier, for another stream of the rank.

What is added is a signal of its own for each place, and every wait takes what it waited for from its cell.
So it does not matter how often a place is passed, in loops or over calls.
"""

from __future__ import annotations

import ast
from itertools import product
from typing import TYPE_CHECKING, Any

from asyncsim.machine.kernel import Kernel
from asyncsim.study.proposals import BARRIER, CREDIT, NEW, SYNC, Proposal, RepairContext
from asyncsim.study.source import Change
from asyncsim.trace.declare import Signal
from asyncsim.trace.finding import SAME_CALL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.trace.finding import Side

MOST_PEERS = 4
"""How many ways to name a peer are tried."""


def additions(context: RepairContext) -> Iterator[Proposal]:
    """Yield the changes that add a wait between the two sides of a finding."""
    yield from _stream_syncs(context)
    yield from _awaited_credits(context)
    first, second = context.finding.sides[0], context.finding.sides[-1]
    for one, other in product(_functions(context, first), _functions(context, second)):
        passed = _parameter_changes(context, [one, other])
        for start in (0, 1) if context.finding.scope == SAME_CALL else (1,):
            declared = _declaration_changes(context, start)
            if declared and passed is not None:
                yield from _new_credits(context, (*declared, *passed), one, other, start)


def _functions(context: RepairContext, side: Side) -> list[ast.AsyncFunctionDef]:
    """Return the functions of the file that lead to a side, the innermost first."""
    lines = context.visited.chain(side)[::-1]
    return list(dict.fromkeys(found for line in lines if (found := context.source.function_at(line)) is not None))


def barriers(context: RepairContext) -> Iterator[Proposal]:
    """Yield the barriers: before a statement of the program, or at its end."""
    declared = _declaration_changes(context, 0)
    if declared:
        yield from _barriers(context, declared)


def _awaited_credits(context: RepairContext) -> Iterator[Proposal]:
    """Wait, before the second side, for a cell that peers notify already."""
    second = context.finding.sides[-1]
    for function in context.visited.functions:
        signals = _signals(context, function)
        peers = context.peers(function)[:MOST_PEERS]
        for statement in context.visited.statements_around(function, second):
            for signal, indexes in signals.items():
                for index in dict.fromkeys((*indexes, *peers)):
                    line = f"await {context.rank(function)}.wait({signal}[{index}] >= 1, consume=True)"
                    words = f"a wait for the credit `{signal}[{index}]` before line {statement.first}"
                    yield Proposal(
                        CREDIT,
                        words,
                        (context.source.before(statement, [line]),),
                        (0, context.distance_to(statement.first)),
                    )


def _signals(context: RepairContext, function: ast.AsyncFunctionDef) -> dict[str, dict[str, None]]:
    """Return the signals that a function notifies or takes by name, each with the cells that the file names.

    Signals without a wait come first.
    """
    found: dict[str, dict[str, None]] = {}
    waited: set[str] = set()
    for other in context.visited.functions:
        for call in context.calls(other, ("notify", "notify_all", "put_signal", "wait", "wait_all", "test")):
            for cell in (node for arg in call.args for node in ast.walk(arg) if isinstance(node, ast.Subscript)):
                base = cell.value.func.value if _is_at(cell.value) else cell.value  # type: ignore[attr-defined]
                if isinstance(base, ast.Name):
                    found.setdefault(base.id, {})[context.source.words(cell.slice)] = None
                    if isinstance(call.func, ast.Attribute) and call.func.attr in ("wait", "wait_all", "test"):
                        waited.add(base.id)
    args = {arg.arg for arg in (*function.args.posonlyargs, *function.args.args)}
    mine = {name: cells for name, cells in found.items() if name in args}
    return dict(sorted(mine.items(), key=lambda item: item[0] in waited))


def _is_at(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "at"


def _new_credits(
    context: RepairContext, given: Sequence[Change], one: ast.AsyncFunctionDef, other: ast.AsyncFunctionDef, start: int
) -> Iterator[Proposal]:
    """Notify behind the first side, in one function; and wait before the second, in the other."""
    first, second = context.finding.sides[0], context.finding.sides[-1]
    begin = "with one to begin with, " if start else ""
    for order_after, before in product(
        context.visited.statements_around(one, first), context.visited.statements_around(other, second)
    ):
        words = f"a credit `{NEW}`, {begin}given behind line {order_after.last} and awaited before line {before.first}"
        depth = -len(order_after.parents) - len(before.parents)
        for number, (notify, wait) in enumerate(_pairs(context, one, other)):
            changes = (*given, context.source.after(order_after, [notify]), context.source.before(before, [wait]))
            yield Proposal(CREDIT, words, changes, (1, number, depth))


def _pairs(context: RepairContext, one: ast.AsyncFunctionDef, other: ast.AsyncFunctionDef) -> list[tuple[str, str]]:
    """Return a notify and a wait for each way to name peers: all of them, or one.

    The peer that the lines of the finding name comes first.
    """
    rank, other_rank = context.rank(one), context.rank(other)
    notify_all, _ = _barrier_lines(rank)
    _, wait_all = _barrier_lines(other_rank)
    notifies = [f"await {rank}.notify({NEW}.at({peer})[{rank}.id], 1)" for peer in _likely_peers(context, one)]
    waits = [f"await {other_rank}.wait({NEW}[{peer}] >= 1, consume=True)" for peer in _likely_peers(context, other)]
    found = [(0, notify_all, wait_all)]
    found += [(n, notify_all, wait) for n, wait in enumerate(waits)]
    found += [(n, notify, wait_all) for n, notify in enumerate(notifies)]
    found += [(m + n, notify, wait) for m, wait in enumerate(waits) for n, notify in enumerate(notifies)]
    return [(notify, wait) for _, notify, wait in sorted(found, key=lambda pair: pair[0])]


def _likely_peers(context: RepairContext, function: ast.AsyncFunctionDef) -> list[str]:
    """Return how a function names peers, what it calls them in the lines of the finding first."""
    lines = [context.source.lines[line - 1] for line in context.about]
    return sorted(context.peers(function), key=lambda peer: not any(f"at({peer})" in line for line in lines))[
        :MOST_PEERS
    ]


def _barriers(context: RepairContext, declared: Sequence[Change]) -> Iterator[Proposal]:
    program = context.source.program
    lines = _barrier_lines(context.rank(program))
    for statement in context.visited.statements(program):
        change = context.source.before(statement, lines)
        words = f"a barrier before line {statement.first}"
        yield Proposal(BARRIER, words, (*declared, change), context.order_after(statement.first))
    last = [statement for statement in context.source.statements(program) if statement.node is program.body[-1]]
    for statement in last:
        change = context.source.after(statement, lines)
        yield Proposal(
            BARRIER, "a barrier at the end of each call", (*declared, change), context.order_after(statement.last)
        )


def _barrier_lines(rank: str) -> tuple[str, str]:
    """Return the two lines of a barrier."""
    return (
        f"await {rank}.notify_all({NEW}.at(peer)[{rank}.id] for peer in {rank}.peers)",
        f"await {rank}.wait_all(({NEW}[peer] >= 1 for peer in {rank}.peers), consume=True)",
    )


# ---- memory


def _declaration_changes(context: RepairContext, start: int) -> tuple[Change, ...]:
    """Return the changes that give the program a signal `NEW` of a cell a rank; none where they cannot be made."""
    source = context.source
    program = source.program
    memory = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and _creates_kernel(context, node)]
    listed = [keyword.value for call in memory for keyword in call.keywords if keyword.arg == "memory"]
    args = [*program.args.posonlyargs, *program.args.args]
    number = 1 + (source.kernel.inputs is not None) + len(source.kernel.memory)
    if program not in source.tree.body or not listed or len(args) < number:
        return ()
    top = min((program.lineno, *(node.lineno for node in program.decorator_list)))
    at = source.line_start(top)
    imported = "" if _names(context).get("Signal") is Signal else f"from asyncsim import Signal{source.newline}"
    begin = f", start={start}" if start else ""
    space = source.newline * 3
    changes = [Change(at, at, f'{imported}{NEW} = Signal("{NEW}", ("P",){begin}){space}')]
    last = args[number - 1]
    end = source.span(last)[1]
    types = [source.words(arg.annotation) for arg in args if arg.annotation is not None]
    changes.append(Change(end, end, f", {NEW}{': SignalView' if 'SignalView' in types else ''}"))
    changes += [change for node in listed for change in _list_additions(context, node)]
    return tuple(changes)


def _creates_kernel(context: RepairContext, call: ast.Call) -> bool:
    """Return whether a call makes the kernel, or a variant of it, or a kernel with the same program."""
    program = context.source.program
    if call in program.decorator_list:
        return True
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "variant":
        return False
    base = _names(context).get(context.source.words(call.func.value))
    return isinstance(base, Kernel) and base.program is context.source.kernel.program


def _names(context: RepairContext) -> dict[str, Any]:
    return context.source.kernel.program.__globals__


def _list_additions(context: RepairContext, node: ast.expr) -> Iterator[Change]:
    start, end = context.source.span(node)
    if isinstance(node, ast.List | ast.Tuple) and node.elts:
        last = context.source.span(node.elts[-1])[1]
        yield Change(last, last, f", {NEW}")
    else:
        yield Change(start, start, "[*")
        yield Change(end, end, f", {NEW}]")


# ---- streams


def _stream_syncs(context: RepairContext) -> Iterator[Proposal]:
    """Let two streams of one rank meet: one behind the first side, the other before the second."""
    first, second = context.finding.sides[0], context.finding.sides[-1]
    if first.rank != second.rank or first.actor == second.actor:
        return
    for one, other in product(_functions(context, first), _functions(context, second)):
        passed = _parameter_changes(context, [one, other])
        made = _stream_barrier_change(context, [one, other])
        if one is other or passed is None or made is None:
            continue
        for order_after, before in product(
            context.visited.statements_around(one, first), context.visited.statements_around(other, second)
        ):
            changes = (
                made,
                *passed,
                context.source.after(order_after, [f"await {context.rank(one)}.sync({NEW})"]),
                context.source.before(before, [f"await {context.rank(other)}.sync({NEW})"]),
            )
            words = f"a sync behind line {order_after.last} and before line {before.first}"
            yield Proposal(SYNC, words, changes, (-len(order_after.parents) - len(before.parents),))


def _stream_barrier_change(context: RepairContext, functions: Sequence[ast.AsyncFunctionDef]) -> Change | None:
    """Return the change that makes a stream barrier before the first of some functions is started."""
    source = context.source
    names = {function.name for function in functions}
    lines = [
        call.lineno
        for call in context.calls(source.program, ("start",))
        if call.args and source.words(call.args[0]) in names
    ]
    statements = [one for one in source.statements(source.program) if lines and one.contains_line(min(lines))]
    made = f"{NEW} = {context.rank(source.program)}.stream_barrier(2)"
    return source.before(statements[-1], [made]) if statements else None


def _parameter_changes(context: RepairContext, functions: Sequence[ast.AsyncFunctionDef]) -> tuple[Change, ...] | None:
    """Return the changes that pass `NEW` from the program to some functions; None where others call them too."""
    source = context.source
    changes: list[Change] = []
    left = list(functions)
    seen: set[ast.AsyncFunctionDef] = {source.program}
    while left:
        function = left.pop()
        if function in seen or source.is_nested(function):
            continue
        seen.add(function)
        calls = _calls_of(context, function)
        if calls is None or function not in source.tree.body:
            return None
        for call in calls:
            caller = source.function_at(call.lineno)
            if caller is None or caller not in context.visited.functions:
                return None
            left.append(caller)
            end = source.span(call.args[0])[1]
            changes.append(Change(end, end, f", {NEW}"))
        rank = next(iter((*function.args.posonlyargs, *function.args.args)))
        end = source.span(rank)[1]
        changes.append(Change(end, end, f", {NEW}"))
    return tuple(changes)


def _calls_of(context: RepairContext, function: ast.AsyncFunctionDef) -> list[ast.Call] | None:
    """Return where a function is called or started; None if it is also handed on, so that this is not known."""
    calls, named = [], 0
    for node in ast.walk(context.source.tree):
        if isinstance(node, ast.Name) and node.id == function.name:
            named += 1
        elif isinstance(node, ast.Call) and node.args:
            started = isinstance(node.func, ast.Attribute) and node.func.attr == "start"
            called = node.args[0] if started else node.func
            if isinstance(called, ast.Name) and called.id == function.name:
                calls.append(node)
    return calls if calls and len(calls) == named else None
