"""Kernels are written as plain functions, and run as async ones: their calls are awaited.

The body is taken from the author's file and compiled anew under the same name, each line where it was, so
tracebacks and reports show the author's own lines. Names keep their meaning: the new function has the old one's
globals and its very closure cells.

A call is awaited unless it is known to be none of the dialect's; what it calls is decided when it runs. A nested
function that may call an operation becomes async too, and a generator expression a list. What cannot await, a
lambda, a ``yield``, is refused with its line.
"""

from __future__ import annotations

import ast
import inspect
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.pypto.operation import Operation
from asyncsim.frontends.pypto.refusals import NotWrittenError, at_line
from asyncsim.frontends.pypto.scope import UNKNOWN, Scope, definition_of, is_the_authors

if TYPE_CHECKING:
    from collections.abc import Callable

CALL = "__asyncsim_call__"
"""What the rewritten code calls the function that makes anything awaitable; a closure cell, no global."""
_FACTORY, _BODY = "__asyncsim_factory__", "__asyncsim_body__"


class AsyncFunction:
    """Marks what a rewritten kernel awaits besides operations: decorated functions of the dialect."""

    start: Callable[..., Any]


class Rewriter:
    """Makes async functions of the author's; remembers the code that it has made."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._codes: dict[CodeType, CodeType] = {}
        self._maybe: dict[CodeType, bool] = {}

    def asynchronous(self, function: FunctionType) -> FunctionType:
        """Return the async form of a function.

        Raises:
            MisuseError: its source cannot be read, or holds what cannot be rewritten.

        """
        code = self._codes.get(function.__code__)
        if code is None:
            code = self._codes[function.__code__] = self._compiled(function)
        return _function(function, code, self.awaitable)

    def awaitable(self, called: Any) -> Callable[..., Any]:  # noqa: ANN401 - whatever the author calls
        """Return what a rewritten kernel calls, and awaits, instead of `called`."""
        if isinstance(called, Operation | AsyncFunction):
            return called.start
        if isinstance(called, FunctionType):
            if called.__code__.co_flags & inspect.CO_COROUTINE:
                return called
            if self.may_await(called):
                return self.asynchronous(called)
        elif inspect.ismethod(called) and isinstance(called.__func__, FunctionType):
            inner = self.awaitable(called.__func__)
            return lambda *args, **kwargs: inner(called.__self__, *args, **kwargs)

        async def plainly(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - passed on
            return called(*args, **kwargs)

        return plainly

    def may_await(self, called: Any) -> bool:  # noqa: ANN401 - whatever the author calls
        """Say whether an operation may be called in what is called."""
        if isinstance(called, Operation | AsyncFunction) or called is UNKNOWN:
            return True
        if not isinstance(called, FunctionType) or not is_the_authors(called.__code__):
            return False
        known = self._maybe.get(called.__code__)
        if known is None:
            self._maybe[called.__code__] = False  # while it is looked at: it may call itself
            if called.__name__ == "<lambda>":
                return False  # an operation in it refuses to run there
            definition = definition_of(called)
            scope = Scope(called, definition)
            known = any(self.may_await(scope.meaning(call.func)) for call in _calls(definition.body))
            self._maybe[called.__code__] = known
        return known

    def launching(self, function: FunctionType, launch: Callable[[Any], Any]) -> FunctionType:
        """Return a host function in which ``launch`` looks at whatever is called with ``device=``."""
        definition = definition_of(function)
        code = _compile(function, ast.copy_location(
            ast.FunctionDef(
                definition.name,
                _bare(definition.args),
                [_Launching().visit(_copied(statement)) for statement in definition.body],
                [],
                None,
            ),
            definition,
        ))  # fmt: skip
        return _function(function, code, launch)

    def _compiled(self, function: FunctionType) -> CodeType:
        definition = definition_of(function)
        return _compile(function, _Awaiting(self, Scope(function, definition)).rewritten(definition))


def _function(function: FunctionType, code: CodeType, call: Callable[[Any], Any]) -> FunctionType:
    """Return a function of new code, with all else of an old one."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[CALL] = _cell(call)
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    return made


def _compile(function: FunctionType, made: ast.FunctionDef | ast.AsyncFunctionDef) -> CodeType:
    """Compile a function whose free names are those of an old one, and `CALL`."""
    made.name = _BODY  # its own name must stay what it was outside: the function may call itself
    free = [ast.arg(name) for name in (*function.__code__.co_freevars, CALL)]
    factory = ast.FunctionDef(_FACTORY, ast.arguments([], free, None, [], [], None, []), [made], [])
    module = ast.fix_missing_locations(ast.Module([factory], []))
    compiled = compile(module, function.__code__.co_filename, "exec", dont_inherit=True)
    outer = next(const for const in compiled.co_consts if isinstance(const, CodeType))
    code = next(c for c in outer.co_consts if isinstance(c, CodeType) and c.co_name == _BODY)
    return code.replace(co_name=function.__code__.co_name, co_qualname=function.__code__.co_qualname)


def _cell(value: object) -> Any:  # noqa: ANN401 - types.CellType
    return (lambda: value).__closure__[0]  # type: ignore[index]


def _calls(body: list[ast.stmt]) -> list[ast.Call]:
    return [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Call)]


class _Launching(ast.NodeTransformer):
    """Lets what is called with ``device=`` be looked at first."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Wrap what is called."""
        self.generic_visit(node)
        if any(keyword.arg == "device" for keyword in node.keywords):
            node.func = _through(node.func)
        return node


def _through(called: ast.expr) -> ast.expr:
    """Return ``CALL(called)``."""
    name = ast.copy_location(ast.Name(CALL, ast.Load()), called)
    return ast.copy_location(ast.Call(name, [called], []), called)


class _Awaiting(ast.NodeTransformer):
    """Puts an await before each call of a function that may be one of the dialect's."""

    def __init__(self, rewriter: Rewriter, scope: Scope) -> None:
        self._rewriter = rewriter
        self._scope = scope

    def rewritten(self, node: ast.FunctionDef) -> ast.AsyncFunctionDef:
        """Return a function as an async one, without decorators and annotations, which have done their work."""
        body = [self.visit(_copied(statement)) for statement in node.body]
        made = ast.AsyncFunctionDef(node.name, _bare(node.args), body, [], None)
        return ast.copy_location(made, node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """A function inside: async, if it may call an operation."""
        return self.rewritten(node) if self._awaits(node) else node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """Refuse an operation in a lambda, which cannot await it."""
        for call in ast.walk(node.body):
            if isinstance(call, ast.Call):
                meaning = self._scope.meaning(call.func)
                if meaning is not UNKNOWN and self._rewriter.may_await(meaning):
                    raise self._refusal(call, f"{ast.unparse(call.func)} in a lambda; use a function with def")
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        """Make a list of it, if there is something to await: nobody could take an async generator."""
        if not self._awaits(node):
            return node
        return self.visit(ast.copy_location(ast.ListComp(node.elt, node.generators), node))  # type: ignore[no-any-return]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """Leave the annotation of a local name alone: it is never evaluated."""
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_Yield(self, node: ast.expr) -> ast.expr:
        """Refuse: a kernel is no generator."""
        raise self._refusal(node, "a kernel cannot yield; call the operations in a loop")

    visit_YieldFrom = visit_Yield  # noqa: N815 - ast's name

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        """Refuse: what stands in a class cannot be awaited."""
        raise self._refusal(node, "a kernel cannot define a class")

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Await the call, unless it is surely none of the dialect's."""
        awaits = self._may(node)
        self.generic_visit(node)
        if not awaits:
            return node
        node.func = _through(node.func)
        return ast.copy_location(ast.Await(node), node)

    def _may(self, call: ast.Call) -> bool:
        return self._rewriter.may_await(self._scope.meaning(call.func))

    def _awaits(self, node: ast.AST) -> bool:
        return any(isinstance(inner, ast.Call) and self._may(inner) for inner in ast.walk(node))

    def _refusal(self, node: ast.expr | ast.stmt, message: str) -> Exception:
        return at_line(NotWrittenError(message), self._scope.file, node.lineno)


def _copied(node: Any) -> Any:  # noqa: ANN401 - nodes, lists and what they hold
    """Return a copy of a tree, which is shared by all who look at the file."""
    if isinstance(node, ast.AST):
        made = type(node)(**{name: _copied(value) for name, value in ast.iter_fields(node)})
        return ast.copy_location(made, node)
    return [_copied(part) for part in node] if isinstance(node, list) else node


def _bare(arguments: ast.arguments) -> ast.arguments:
    """Return the parameters without annotations; defaults only mark which there are: the function keeps its own."""
    made = _copied(arguments)
    for arg in ast.walk(made):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    return made  # type: ignore[no-any-return]
