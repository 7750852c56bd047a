"""Spin loops become waits: by their predicate, which is found by trying, not by their text.

A loop that could be one is made into two functions of the names that it assigns: its test, and its body. One round is
tried with the flag read as this and that number, and nothing written: what ends the loop says whether it waits for
``== k``, ``!= k``, ``>= k`` or ``<= k``, and what the round would write then is what the wait does to the word. If it
reads plainly, the machine polls the data instead. A loop that is neither runs as it is written.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.triton.block import present_block
from asyncsim.frontends.triton.boxes import boxes
from asyncsim.frontends.triton.space import refused
from asyncsim.frontends.triton.trial import Access, Trial, present_trial, trying
from asyncsim.guest.host import blocking

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.frontends.triton.block import Block

Names = tuple[Any, ...]
SPIN = "_asyncsim_spin"
ROUND = "_asyncsim_round"
_MOST_ROUNDS = 2_000
"""Rounds of one loop of a block: one that goes on longer is taken to go on for ever."""


class Spins(ast.NodeTransformer):
    """Rewrites the loops of a kernel that could be spins."""

    def __init__(self) -> None:
        self._made = 0

    def visit(self, node: ast.AST) -> Any:
        """Let a load before a loop that does nothing but the same load be a part of the loop."""
        for name in ("body", "orelse"):
            statements = getattr(node, name, None)
            if isinstance(statements, list):
                setattr(node, name, _joined(statements))
        return super().visit(node)

    def visit_While(self, node: ast.While) -> Any:
        """Make a call of a loop that has a call in it, and whose body only assigns, calls or passes."""
        self.generic_visit(node)
        plain = all(isinstance(each, ast.Pass | ast.Expr | ast.Assign | ast.AugAssign) for each in node.body)
        names: list[str] = []
        for each in node.body:
            targets = each.targets if isinstance(each, ast.Assign) else []
            targets = [each.target] if isinstance(each, ast.AugAssign) else targets
            for target in targets:
                if not isinstance(target, ast.Name):
                    return _counted(node)
                names += [target.id] * (target.id not in names)
        calls = any(isinstance(part, ast.Call) for part in ast.walk(node))
        return self._call(node, names) if plain and calls and not node.orelse else _counted(node)

    def _call(self, node: ast.While, names: list[str]) -> list[ast.stmt]:
        self._made += 1
        test, body = f"_test_{self._made}", f"_body_{self._made}"
        given = ", ".join(names)
        there = "".join(f"locals().get({name!r}), " for name in names)
        ends = f"({given},)" if names else "()"
        source = (
            f"def {test}({given}):\n  return 0\n"
            f"def {body}({given}):\n  return {ends}\n"
            f"{ends if names else '_'} = {SPIN}({test}, {body}, ({there}), begins={hasattr(node, 'begins')})\n"
        )
        made = ast.parse(source).body
        testing, acting = made[0], made[1]
        assert isinstance(testing, ast.FunctionDef)  # noqa: S101 - for the type checker
        assert isinstance(acting, ast.FunctionDef)  # noqa: S101
        testing.body = [ast.Return(node.test)]
        acting.body = [*node.body, *acting.body]
        for each in made:
            for part in ast.walk(each):
                if not hasattr(part, "lineno") or part in (testing, acting):
                    ast.copy_location(part, node)
        for each in (made[2], acting.body[-1], testing, acting):
            for part in ast.walk(each) if each in (made[2], acting.body[-1]) else [each]:
                ast.copy_location(part, node)
        return made


def _counted(node: ast.While) -> ast.While:
    """Let each round of a loop that is no spin be counted, so that one that goes on for ever is told."""
    call = ast.parse(f"{ROUND}({node.lineno})").body[0]
    for part in ast.walk(call):
        ast.copy_location(part, node)
    node.body = [call, *node.body]
    return node


def count_round(line: int) -> None:
    """Count a round of a loop.

    Args:
        line: of the loop, in its function.

    Raises:
        RefusedError: it has gone on for too long.

    """
    block = present_block()
    if block is not None and present_trial() is None:
        block.rounds[line] = block.rounds.get(line, 0) + 1
        if block.rounds[line] > _MOST_ROUNDS:
            raise refused(f"a loop that still goes on after {_MOST_ROUNDS} rounds")


def _joined(statements: list[ast.stmt]) -> list[ast.stmt]:
    kept: list[ast.stmt] = []
    for each in statements:
        repeats = isinstance(each, ast.While) and kept and len(each.body) == 1 and isinstance(each.body[0], ast.Assign)
        if repeats and ast.dump(each.body[0]) == ast.dump(kept[-1]):  # type: ignore[attr-defined]  # a loop
            kept.pop()
            each.begins = True  # type: ignore[attr-defined]  # a mark of ours
        kept.append(each)
    return kept


def spin(
    test: Callable[..., Any], body: Callable[..., Names], names: Names, *, held: bool = True, begins: bool = False
) -> Names:
    """Run a loop: as a wait if it is one.

    Args:
        test: takes the names, says whether the loop goes on.
        body: takes them, returns them as they are after a round.
        names: what they are before the loop; None where nothing is.
        held: whether the exact value that ends it matters behind it.
        begins: whether a round comes before the first test.

    """
    block = present_block()
    if block is None:
        return _plainly(test, body, body(*names) if begins else names)

    def turn() -> tuple[Names, Any]:
        after = body(*names)
        return after, test(*after)

    if begins:
        awaited = _await(block, turn, held=held)
        return _turns(block, test, body, body(*names)) if awaited is None else awaited
    first = _tried(block, lambda: test(*names))
    if first.accesses:
        awaited = _await(block, lambda: (names, test(*names))) if not _body_acts(block, body, names) else None
        return _turns(block, test, body, names) if awaited is None else names
    if not test(*names):
        return names
    awaited = _await(block, turn, held=held)
    return _turns(block, test, body, names) if awaited is None else awaited


def _turns(block: Block, test: Callable[..., Any], body: Callable[..., Names], names: Names) -> Names:
    """Run a loop as it is written; after a round that read one word and did nothing else, wait for another value."""
    for _ in range(_MOST_ROUNDS):
        seen: list[Any] = []
        block.seen = seen
        goes_on = test(*names)
        after = body(*names) if goes_on else names
        block.seen = None
        if not goes_on:
            return names
        if len(seen) == 1 and seen[0] is not None and not names:
            block.await_word(seen[0][0], seen[0][1], "!=", seen[0][2], "relaxed", "sys")
        names = after
    raise refused(f"a loop that is not a wait for one word, and still goes on after {_MOST_ROUNDS} rounds")


def _plainly(test: Callable[..., Any], body: Callable[..., Names], names: Names) -> Names:
    while test(*names):
        names = body(*names)
    return names


def _tried(block: Block, act: Callable[[], Any], value: Any = 0) -> Trial:
    trial = Trial(block, value)
    with trying(trial):
        act()
    return trial


def _body_acts(block: Block, body: Callable[..., Names], names: Names) -> bool:
    return bool(_tried(block, lambda: body(*names)).accesses)


class _Round:
    """What a round did, by the value that it read."""

    def __init__(self, block: Block, turn: Callable[[], tuple[Names, Any]], value: Any) -> None:
        self.trial = Trial(block, value)
        with trying(self.trial):
            self.names, goes_on = turn()
            self.ends = not bool(goes_on)


def _await(block: Block, turn: Callable[[], tuple[Names, Any]], *, held: bool = True) -> Names | None:
    """Wait for what ends a loop, and return the names after it; None: it is no wait."""
    first = _Round(block, turn, 0)
    if len(first.trial.accesses) != 1:
        return None
    access = first.trial.accesses[0]
    if access.kind == "load":
        return _poll(block, turn, access)
    if len(access.addresses) != 1 or access.kind == "store" or access.dtype.kind not in "iu":
        return None
    rounds = _rounds(block, turn, first, access)
    found = None if rounds is None else _predicate({value: made.ends for value, made in rounds.items()})
    if rounds is None or found is None:
        return None
    writes = {made.trial.accesses[0].new for made in rounds.values() if made.ends}
    if len(writes) > 1:
        return _await_and_try(block, turn, access, found)
    (then,) = writes
    before, block.one_thread = block.one_thread, access.one_thread
    seen = block.await_word(
        access.addresses[0], access.dtype, *found, access.sem, access.scope, then=then, value=bool(first.names) and held
    )
    block.one_thread = before
    return _Round(block, turn, seen).names


def _await_and_try(
    block: Block, turn: Callable[[], tuple[Names, Any]], access: Access, found: tuple[str, int]
) -> Names:
    """Wait for any of the values that end a loop, then go round it once more: it takes back one of them alone."""
    for _ in range(_MOST_ROUNDS):
        block.await_word(access.addresses[0], access.dtype, *found, "relaxed", access.scope)
        after, goes_on = turn()
        if not goes_on:
            return after
    raise refused(f"a loop that still goes on after {_MOST_ROUNDS} rounds")


def _rounds(
    block: Block, turn: Callable[[], tuple[Names, Any]], first: _Round, access: Access
) -> dict[int, _Round] | None:
    """Try a round with every number that matters; None: it looks elsewhere then, or writes and goes on."""
    info = np.iinfo(access.dtype)
    tried: dict[int, _Round] = {}
    wanted = {0, 1, 2, int(info.min), int(info.max), int(info.max) // 2 + 1}
    while wanted - tried.keys():
        for value in sorted(wanted - tried.keys()):
            made = first if value == 0 else _Round(block, turn, value)
            accesses = made.trial.accesses
            if len(accesses) != 1 or accesses[0].place != access.place:
                return None
            if not made.ends and accesses[0].new is not None:
                return None
            tried[value] = made
            near = {number + step for number in made.trial.operands - {value} for step in (-1, 0, 1)}
            wanted |= {number for number in near if info.min <= number <= info.max and len(tried) < _MOST_TRIES}
    return tried


_MOST_TRIES = 64


def _predicate(ends: dict[int, bool]) -> tuple[str, int] | None:
    """Return the comparison that is true of just those numbers that end a loop."""
    numbers = sorted(ends)
    good = [number for number in numbers if ends[number]]
    bad = [number for number in numbers if not ends[number]]
    if not good or not bad:
        return None
    if len(good) == 1:
        return "==", good[0]
    if len(bad) == 1:
        return "!=", bad[0]
    if good == numbers[-len(good) :]:
        return ">=", good[0]
    return ("<=", good[-1]) if good == numbers[: len(good)] else None


def _poll(block: Block, turn: Callable[[], tuple[Names, Any]], access: Access) -> Names | None:
    """Poll data that a loop reads plainly until it would end."""
    places = np.array(access.addresses, np.uint64)
    place = block.space.place(places, access.dtype, "a load")
    order = np.argsort(place.places)
    found = list(boxes(place.places[order], place.view.shape))
    if len(found) != 1 or len(np.unique(place.places)) < len(places):
        return None
    back = np.argsort(order)

    def ends(tile: Any) -> bool:
        return _Round(block, turn, np.ravel(tile)[back]).ends

    tile = blocking(block.rank.poll(place.region(found[0][0]), ends))
    return _Round(block, turn, np.ravel(tile)[back]).names
