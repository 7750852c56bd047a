"""Proposals that add a wait: for a credit, for all ranks at a barrier, for another stream of the rank.

What is added is a signal of its own for each place, and every wait takes what it waited for from its cell.
So nobody need count how often a place was passed, neither in loops nor over calls.
"""

from __future__ import annotations

import ast
from itertools import product
from typing import TYPE_CHECKING, Any

from asyncsim.machine.kernel import Kernel
from asyncsim.study.proposals import BARRIER, CREDIT, NEW, SYNC, Proposal, Site
from asyncsim.study.source import Change
from asyncsim.trace.declare import Signal
from asyncsim.trace.finding import SAME_CALL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.trace.finding import Side

MOST_PEERS = 4
"""How many ways to name a peer are tried."""


def additions(site: Site) -> Iterator[Proposal]:
    """Yield the changes that add a wait between the two sides of a finding."""
    yield from _syncs(site)
    yield from _awaited_credits(site)
    first, second = site.finding.sides[0], site.finding.sides[-1]
    for one, other in product(_functions(site, first), _functions(site, second)):
        passed = _passed(site, [one, other])
        for start in (0, 1) if site.finding.scope == SAME_CALL else (1,):
            declared = _declared(site, start)
            if declared and passed is not None:
                yield from _new_credits(site, (*declared, *passed), one, other, start)


def _functions(site: Site, side: Side) -> list[ast.AsyncFunctionDef]:
    """Return the functions of the file that lead to a side, the innermost first."""
    lines = site.visited.chain(side)[::-1]
    return list(dict.fromkeys(found for line in lines if (found := site.source.function_at(line)) is not None))


def barriers(site: Site) -> Iterator[Proposal]:
    """Yield the barriers: before a statement of the program, or at its end."""
    declared = _declared(site, 0)
    if declared:
        yield from _barriers(site, declared)


def _awaited_credits(site: Site) -> Iterator[Proposal]:
    """Wait, before the second side, for a cell that peers notify already."""
    second = site.finding.sides[-1]
    for function in site.visited.functions:
        signals = _signals(site, function)
        peers = site.peers(function)[:MOST_PEERS]
        for statement in site.visited.around(function, second):
            for signal, indexes in signals.items():
                for index in dict.fromkeys((*indexes, *peers)):
                    line = f"await {site.rank(function)}.wait({signal}[{index}] >= 1, consume=True)"
                    words = f"a wait for the credit `{signal}[{index}]` before line {statement.first}"
                    yield Proposal(
                        CREDIT, words, (site.source.before(statement, [line]),), (0, site.near(statement.first))
                    )


def _signals(site: Site, function: ast.AsyncFunctionDef) -> dict[str, dict[str, None]]:
    """Return the signals that a function notifies or takes by name, each with the cells that the file names.

    The signals that nobody waits for come first.
    """
    found: dict[str, dict[str, None]] = {}
    waited: set[str] = set()
    for other in site.visited.functions:
        for call in site.calls(other, ("notify", "notify_all", "put_signal", "wait", "wait_all", "test")):
            for cell in (node for arg in call.args for node in ast.walk(arg) if isinstance(node, ast.Subscript)):
                base = cell.value.func.value if _is_at(cell.value) else cell.value  # type: ignore[attr-defined]
                if isinstance(base, ast.Name):
                    found.setdefault(base.id, {})[site.source.words(cell.slice)] = None
                    if isinstance(call.func, ast.Attribute) and call.func.attr in ("wait", "wait_all", "test"):
                        waited.add(base.id)
    args = {arg.arg for arg in (*function.args.posonlyargs, *function.args.args)}
    mine = {name: cells for name, cells in found.items() if name in args}
    return dict(sorted(mine.items(), key=lambda item: item[0] in waited))


def _is_at(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "at"


def _new_credits(
    site: Site, given: Sequence[Change], one: ast.AsyncFunctionDef, other: ast.AsyncFunctionDef, start: int
) -> Iterator[Proposal]:
    """Notify behind the first side, in one function; and wait before the second, in the other."""
    first, second = site.finding.sides[0], site.finding.sides[-1]
    begin = "with one to begin with, " if start else ""
    for behind, before in product(site.visited.around(one, first), site.visited.around(other, second)):
        words = f"a credit `{NEW}`, {begin}given behind line {behind.last} and awaited before line {before.first}"
        depth = -len(behind.parents) - len(before.parents)
        for number, (notify, wait) in enumerate(_pairs(site, one, other)):
            changes = (*given, site.source.after(behind, [notify]), site.source.before(before, [wait]))
            yield Proposal(CREDIT, words, changes, (1, number, depth))


def _pairs(site: Site, one: ast.AsyncFunctionDef, other: ast.AsyncFunctionDef) -> list[tuple[str, str]]:
    """Return a notify and a wait for each way to say whom: all peers, or one.

    The peer that the lines of the finding name comes first.
    """
    rank, other_rank = site.rank(one), site.rank(other)
    notify_all, _ = _to_all(rank)
    _, wait_all = _to_all(other_rank)
    notifies = [f"await {rank}.notify({NEW}.at({peer})[{rank}.id], 1)" for peer in _likely(site, one)]
    waits = [f"await {other_rank}.wait({NEW}[{peer}] >= 1, consume=True)" for peer in _likely(site, other)]
    found = [(0, notify_all, wait_all)]
    found += [(n, notify_all, wait) for n, wait in enumerate(waits)]
    found += [(n, notify, wait_all) for n, notify in enumerate(notifies)]
    found += [(m + n, notify, wait) for m, wait in enumerate(waits) for n, notify in enumerate(notifies)]
    return [(notify, wait) for _, notify, wait in sorted(found, key=lambda pair: pair[0])]


def _likely(site: Site, function: ast.AsyncFunctionDef) -> list[str]:
    """Return how a function names peers, what it calls them in the lines of the finding first."""
    lines = [site.source.lines[line - 1] for line in site.about]
    return sorted(site.peers(function), key=lambda peer: not any(f"at({peer})" in line for line in lines))[:MOST_PEERS]


def _barriers(site: Site, declared: Sequence[Change]) -> Iterator[Proposal]:
    program = site.source.program
    lines = _to_all(site.rank(program))
    for statement in site.visited.statements(program):
        change = site.source.before(statement, lines)
        words = f"a barrier before line {statement.first}"
        yield Proposal(BARRIER, words, (*declared, change), site.behind(statement.first))
    last = [statement for statement in site.source.statements(program) if statement.node is program.body[-1]]
    for statement in last:
        change = site.source.after(statement, lines)
        yield Proposal(BARRIER, "a barrier at the end of each call", (*declared, change), site.behind(statement.last))


def _to_all(rank: str) -> tuple[str, str]:
    """Return the two lines of a barrier."""
    return (
        f"await {rank}.notify_all({NEW}.at(peer)[{rank}.id] for peer in {rank}.peers)",
        f"await {rank}.wait_all(({NEW}[peer] >= 1 for peer in {rank}.peers), consume=True)",
    )


# ---- memory


def _declared(site: Site, start: int) -> tuple[Change, ...]:
    """Return the changes that give the program a signal `NEW` of a cell a rank; none where they cannot be made."""
    source = site.source
    program = source.program
    memory = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and _makes(site, node)]
    listed = [keyword.value for call in memory for keyword in call.keywords if keyword.arg == "memory"]
    args = [*program.args.posonlyargs, *program.args.args]
    number = 1 + (source.kernel.inputs is not None) + len(source.kernel.memory)
    if program not in source.tree.body or not listed or len(args) < number:
        return ()
    top = min((program.lineno, *(node.lineno for node in program.decorator_list)))
    at = source.line_start(top)
    imported = "" if _names(site).get("Signal") is Signal else f"from asyncsim import Signal{source.newline}"
    begin = f", start={start}" if start else ""
    space = source.newline * 3
    changes = [Change(at, at, f'{imported}{NEW} = Signal("{NEW}", ("P",){begin}){space}')]
    last = args[number - 1]
    end = source.span(last)[1]
    types = [source.words(arg.annotation) for arg in args if arg.annotation is not None]
    changes.append(Change(end, end, f", {NEW}{': SignalView' if 'SignalView' in types else ''}"))
    changes += [change for node in listed for change in _longer(site, node)]
    return tuple(changes)


def _makes(site: Site, call: ast.Call) -> bool:
    """Say whether a call makes the kernel, or a variant of it, or a kernel with the same program."""
    program = site.source.program
    if call in program.decorator_list:
        return True
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "variant":
        return False
    base = _names(site).get(site.source.words(call.func.value))
    return isinstance(base, Kernel) and base.program is site.source.kernel.program


def _names(site: Site) -> dict[str, Any]:
    return site.source.kernel.program.__globals__


def _longer(site: Site, node: ast.expr) -> Iterator[Change]:
    """Yield the changes that add `NEW` to a list."""
    start, end = site.source.span(node)
    if isinstance(node, ast.List | ast.Tuple) and node.elts:
        last = site.source.span(node.elts[-1])[1]
        yield Change(last, last, f", {NEW}")
    else:
        yield Change(start, start, "[*")
        yield Change(end, end, f", {NEW}]")


# ---- streams


def _syncs(site: Site) -> Iterator[Proposal]:
    """Let two streams of one rank meet: one behind the first side, the other before the second."""
    first, second = site.finding.sides[0], site.finding.sides[-1]
    if first.rank != second.rank or first.actor == second.actor:
        return
    for one, other in product(_functions(site, first), _functions(site, second)):
        passed = _passed(site, [one, other])
        made = _meeting(site, [one, other])
        if one is other or passed is None or made is None:
            continue
        for behind, before in product(site.visited.around(one, first), site.visited.around(other, second)):
            changes = (
                made,
                *passed,
                site.source.after(behind, [f"await {site.rank(one)}.sync({NEW})"]),
                site.source.before(before, [f"await {site.rank(other)}.sync({NEW})"]),
            )
            words = f"a sync behind line {behind.last} and before line {before.first}"
            yield Proposal(SYNC, words, changes, (-len(behind.parents) - len(before.parents),))


def _meeting(site: Site, functions: Sequence[ast.AsyncFunctionDef]) -> Change | None:
    """Return the change that makes a stream barrier before the first of some functions is started."""
    source = site.source
    names = {function.name for function in functions}
    lines = [
        call.lineno
        for call in site.calls(source.program, ("start",))
        if call.args and source.words(call.args[0]) in names
    ]
    statements = [one for one in source.statements(source.program) if lines and one.holds(min(lines))]
    made = f"{NEW} = {site.rank(source.program)}.stream_barrier(2)"
    return source.before(statements[-1], [made]) if statements else None


def _passed(site: Site, functions: Sequence[ast.AsyncFunctionDef]) -> tuple[Change, ...] | None:
    """Return the changes that pass `NEW` from the program to some functions; None where others call them too."""
    source = site.source
    changes: list[Change] = []
    left = list(functions)
    seen: set[ast.AsyncFunctionDef] = {source.program}
    while left:
        function = left.pop()
        if function in seen or source.inside(function):
            continue
        seen.add(function)
        calls = _calls_of(site, function)
        if calls is None or function not in source.tree.body:
            return None
        for call in calls:
            caller = source.function_at(call.lineno)
            if caller is None or caller not in site.visited.functions:
                return None
            left.append(caller)
            end = source.span(call.args[0])[1]
            changes.append(Change(end, end, f", {NEW}"))
        rank = next(iter((*function.args.posonlyargs, *function.args.args)))
        end = source.span(rank)[1]
        changes.append(Change(end, end, f", {NEW}"))
    return tuple(changes)


def _calls_of(site: Site, function: ast.AsyncFunctionDef) -> list[ast.Call] | None:
    """Return where a function is called or started; None if it is also handed on, so that nobody knows."""
    calls, named = [], 0
    for node in ast.walk(site.source.tree):
        if isinstance(node, ast.Name) and node.id == function.name:
            named += 1
        elif isinstance(node, ast.Call) and node.args:
            started = isinstance(node.func, ast.Attribute) and node.func.attr == "start"
            called = node.args[0] if started else node.func
            if isinstance(called, ast.Name) and called.id == function.name:
                calls.append(node)
    return calls if calls and len(calls) == named else None
