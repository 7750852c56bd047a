"""The author's syntax tree, rewritten so that what happens to arrays in place is seen.

Subscripts, operators, calls and loops stay what they are for all values but arrays in memory that others can reach: of
those they are loads and stores. The functions that the tree calls are in `asyncsim.guest.accesses`; nothing else is
changed, and every line keeps its number.
"""

from __future__ import annotations

import ast

AT, PUT, UPDATE, USE, CALL = "__at__", "__put__", "__update__", "__use__", "__call_it__"
"""The names of these functions in the author's module: a subscript, one that is assigned, one that is updated in place
(as is a name), a value that is read as a whole, and a call."""
_PLAIN = frozenset((
    "super", "locals", "globals", "vars", "dir", "eval", "exec", "range", "len", "isinstance", "type", "id", "open",
    "hasattr", "getattr", "setattr", "callable", "input", "breakpoint",
))  # fmt: skip
"""Calls that read no array, or that must stand in the frame where they are."""
_OPERATORS = {
    ast.Add: "iadd", ast.Sub: "isub", ast.Mult: "imul", ast.Div: "itruediv", ast.FloorDiv: "ifloordiv",
    ast.Mod: "imod", ast.Pow: "ipow", ast.LShift: "ilshift", ast.RShift: "irshift", ast.BitOr: "ior",
    ast.BitXor: "ixor", ast.BitAnd: "iand", ast.MatMult: "imatmul",
}  # fmt: skip


def rewritten(source: bytes | str, file: str) -> ast.Module:
    """Return a module's tree in which accesses to arrays are calls.

    Args:
        source: of the module.
        file: its path, for the message of an error.

    Raises:
        SyntaxError: it is no Python.

    """
    tree: ast.Module = ast.parse(source, file)
    made: ast.Module = _Accesses().visit(tree)
    return ast.fix_missing_locations(made)


def loops_of(source: bytes | str) -> frozenset[int]:
    """Return the lines of a module that stand in a ``while``.

    Args:
        source: of the module.

    Raises:
        SyntaxError: it is no Python.

    """
    loops = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.While))
    return frozenset(line for node in loops for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))


class _Accesses(ast.NodeTransformer):
    def __init__(self) -> None:
        self._temporaries = 0

    def _ask(self, name: str, at: ast.AST, *args: ast.expr) -> ast.Call:
        made = ast.Call(ast.Name(name, ast.Load()), list(args), [])
        ast.copy_location(made, at)
        ast.copy_location(made.func, at)
        return made

    def _used(self, value: ast.expr | None) -> ast.expr | None:
        """Return an expression whose value is read as a whole, if it is an array."""
        if value is None or isinstance(value, ast.Constant | ast.JoinedStr | ast.Lambda):
            return value
        return self._ask(USE, value, value)

    def _visited(self, value: ast.expr) -> ast.expr:
        made: ast.expr = self.visit(value)
        return made

    # ---- what is read as a whole

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        node.left, node.right = self._used(node.left) or node.left, self._used(node.right) or node.right
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        node.operand = self._used(node.operand) or node.operand
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        node.values = [self._used(value) or value for value in node.values]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if not any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            node.left = self._used(node.left) or node.left
            node.comparators = [self._used(value) or value for value in node.comparators]
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        self.generic_visit(node)
        node.value = self._used(node.value) or node.value
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self._used(node.value) or node.value
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.iter = self._used(node.iter) or node.iter
        node.ifs = [self._used(test) or test for test in node.ifs]
        return node

    def _visit_test(self, node: ast.If | ast.While | ast.IfExp | ast.Assert) -> ast.AST:
        self.generic_visit(node)
        node.test = self._used(node.test) or node.test
        return node

    visit_If = visit_While = visit_IfExp = visit_Assert = _visit_test  # noqa: N815 - as above

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = self._used(node.iter) or node.iter
        return node

    # ---- calls and subscripts

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _PLAIN:
            return node
        made = ast.Call(ast.Name(CALL, ast.Load()), [node.func, *node.args], node.keywords)
        ast.copy_location(made, node)
        ast.copy_location(made.func, node)
        return made

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return self._ask(AT, node, node.value, _index(node.slice))

    # ---- assignments

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt] | ast.stmt:
        value = self._visited(node.value)
        targets = [self._visited(target) for target in node.targets]
        if len(targets) == 1 and not isinstance(targets[0], ast.Subscript | ast.Tuple | ast.List):
            node.value, node.targets = value, targets
            return node
        if any(isinstance(target, ast.Tuple | ast.List) for target in targets):
            value = self._used(value) or value
        after: list[ast.stmt] = []
        if len(targets) == 1 and isinstance(targets[0], ast.Subscript):
            return self._stored(targets[0], value)
        node.targets, node.value = [self._plain(target, after) for target in targets], value
        return [node, *after]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is not None:
            node.value = self._visited(node.value)
        return node

    def _plain(self, target: ast.expr, after: list[ast.stmt]) -> ast.expr:
        """Return a target without subscripts; what they are assigned is put there `after`."""
        if isinstance(target, ast.Tuple | ast.List):
            target.elts = [self._plain(each, after) for each in target.elts]
        elif isinstance(target, ast.Starred):
            target.value = self._plain(target.value, after)
        elif isinstance(target, ast.Subscript):
            self._temporaries += 1
            name = f"__assigned_{self._temporaries}__"
            after.append(self._stored(target, ast.copy_location(ast.Name(name, ast.Load()), target)))
            return ast.copy_location(ast.Name(name, ast.Store()), target)
        return target

    def _stored(self, target: ast.Subscript, value: ast.expr) -> ast.stmt:
        made = self._ask(PUT, target, target.value, _index(target.slice), value)
        return ast.copy_location(ast.Expr(made), target)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        value = self._visited(node.value)
        how = ast.copy_location(ast.Constant(_OPERATORS[type(node.op)]), node)
        target = node.target
        if isinstance(target, ast.Subscript):
            base, index = self._visited(target.value), _index(self._visited(target.slice))
            return ast.copy_location(ast.Expr(self._ask(UPDATE, node, how, value, base, index)), node)
        held: ast.expr
        if isinstance(target, ast.Name):
            held = ast.copy_location(ast.Name(target.id, ast.Load()), target)
        else:
            held = ast.copy_location(ast.Attribute(target.value, target.attr, ast.Load()), target)
            held = self._visited(held)
        return ast.copy_location(ast.Assign([target], self._ask(UPDATE, node, how, value, held)), node)


def _index(index: ast.expr) -> ast.expr:
    """Return what stands between brackets as an expression by itself: slices are made by ``slice``."""
    if isinstance(index, ast.Slice):
        parts = [part or ast.Constant(None) for part in (index.lower, index.upper, index.step)]
        return ast.copy_location(ast.Call(ast.Name("slice", ast.Load()), list(parts), []), index)
    if isinstance(index, ast.Tuple):
        index.elts = [_index(each) for each in index.elts]
    return index
