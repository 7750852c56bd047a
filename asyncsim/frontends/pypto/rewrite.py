"""Kernels are written as plain functions, and run as async ones: their calls are awaited.

The body is taken from the author's file and compiled anew under the same name, each line where it was, so
tracebacks and reports show the author's own lines. Names keep their meaning: the new function has the old one's
globals and its very closure cells.

A call is awaited unless it is known to be none of the dialect's; what it calls is decided when it runs. A nested
function that may call an operation becomes async too. A generator expression becomes a list where it is taken to its
end, as by ``sum``; elsewhere it stays as lazy as it is, and an operation that must be awaited in it is refused. What
cannot await, a lambda, a ``yield``, is refused with its line.
"""

from __future__ import annotations
import __future__

import ast
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.pypto.callables import AsyncFunction, InnerFunction, at_once, behind
from asyncsim.frontends.pypto.operation import Operation
from asyncsim.frontends.pypto.refusals import NotWrittenError, at_line
from asyncsim.frontends.pypto.scope import UNKNOWN, Closure, Scope, definition_of, is_the_authors
from asyncsim.frontends.pypto.syntax import bare, class_of, copied, listed

if TYPE_CHECKING:
    from collections.abc import Callable

CALL = "__asyncsim_call__"
"""What the rewritten code calls the function that makes anything awaitable; a closure cell, no global."""
_FACTORY, _BODY = "__asyncsim_factory__", "__asyncsim_body__"
_TO_THE_END = (sum, list, tuple, set, frozenset, max, min, sorted, dict)
"""What takes all that a generator expression gives, whatever it is: a list does as well. So does ``str.join``."""
_LAZY = (
    "in a generator expression, which any, all, next or a loop may not take to its end; write a list, [... for ...], "
    "to run all of it, or a loop with a break"
)


class Rewriter:
    """Makes async functions of the author's; remembers the code that it has made."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._codes: dict[Closure, CodeType] = {}
        self._maybe: dict[Closure, bool] = {}

    def asynchronous(self, function: FunctionType) -> FunctionType:
        """Return the async form of a function.

        Raises:
            MisuseError: its source cannot be read, or holds what cannot be rewritten.

        """
        closure = Closure(function)
        code = self._codes.get(closure)
        if code is None:
            code = self._codes[closure] = self._compiled(function)
        return _function(function, code, self)

    def now(self, called: Any) -> Callable[..., Any]:  # noqa: ANN401 - whatever the author calls
        """Return what a rewritten generator expression calls instead of `called`; it cannot await."""
        return at_once(self(called), _LAZY)

    def inner(self, function: FunctionType) -> InnerFunction:
        """Return what a rewritten kernel has instead of an async function of its own."""
        return InnerFunction(function)

    def __call__(self, called: Any) -> Callable[..., Any]:  # noqa: ANN401 - whatever the author calls
        """Return what a rewritten kernel calls, and awaits, instead of `called`."""
        if isinstance(called, Operation | AsyncFunction):
            return called.start
        if isinstance(called, FunctionType) and self.may_await(called):
            return self.asynchronous(called)
        found = behind(called)
        if found is not None:
            function, first, named = found
            inner = self(function)
            return lambda *args, **kwargs: inner(*first, *args, **{**named, **kwargs})

        async def plainly(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - passed on
            return called(*args, **kwargs)

        return plainly

    def may_await(self, called: Any) -> bool:  # noqa: ANN401 - whatever the author calls
        """Say whether an operation may be called in what is called."""
        seen: set[Closure] = set()
        found = self._reaches(called, seen)
        if not found:  # so all of them were followed to their ends
            self._maybe.update(dict.fromkeys(seen, False))
        return found

    def _reaches(self, called: Any, seen: set[Closure]) -> bool:  # noqa: ANN401 - as above
        """Say it; of what was `seen` on the way nothing new comes, for functions may call each other."""
        if isinstance(called, Operation | AsyncFunction) or called is UNKNOWN:
            return True
        if not isinstance(called, FunctionType):
            found = behind(called)
            return found is not None and self._reaches(found[0], seen)
        if not is_the_authors(called.__code__) or called.__name__ == "<lambda>":
            return False  # an operation in a lambda refuses to run there
        closure = Closure(called)
        known = self._maybe.get(closure)
        if known is not None or closure in seen:
            return bool(known)
        seen.add(closure)
        definition = definition_of(called)
        scope = Scope(called, definition)
        reaches = any(self._reaches(scope.meaning(call.func), seen) for call in _calls(definition.body))
        if reaches:
            self._maybe[closure] = True
        return reaches

    def launching(self, function: FunctionType, launch: Callable[[Any], Any]) -> FunctionType:
        """Return a host function in which ``launch`` looks at whatever is called with ``device=``."""
        definition = definition_of(function)
        code = _compile(function, ast.copy_location(
            ast.FunctionDef(
                definition.name,
                bare(definition.args),
                [_Launching().visit(copied(statement)) for statement in definition.body],
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
    owner = class_of(function.__code__.co_qualname)
    stands: list[ast.stmt] = [ast.ClassDef(owner, [], [], [factory], []) if owner else factory]
    module = ast.fix_missing_locations(ast.Module(stands, []))
    texts = function.__code__.co_flags & __future__.annotations.compiler_flag  # annotations of functions inside
    code: CodeType = compile(module, function.__code__.co_filename, "exec", texts, dont_inherit=True)
    for name in (owner, _FACTORY, _BODY) if owner else (_FACTORY, _BODY):
        code = next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
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


def _through(called: ast.expr, how: str = "") -> ast.expr:
    """Return ``CALL(called)``, or ``CALL.how(called)``."""
    name = _ours(called, how)
    return ast.copy_location(ast.Call(name, [called], []), called)


def _ours(at: ast.expr | ast.stmt, how: str) -> ast.expr:
    """Return ``CALL``, or ``CALL.how``."""
    name: ast.expr = ast.copy_location(ast.Name(CALL, ast.Load()), at)
    return ast.copy_location(ast.Attribute(name, how, ast.Load()), at) if how else name


class _Awaiting(ast.NodeTransformer):
    """Puts an await before each call of a function that may be one of the dialect's."""

    def __init__(self, rewriter: Rewriter, scope: Scope) -> None:
        self._rewriter = rewriter
        self._scope = scope
        self._lazily = False

    def rewritten(self, node: ast.FunctionDef) -> ast.AsyncFunctionDef:
        """Return a function as an async one, without decorators and annotations, which have done their work."""
        body = [self.visit(copied(statement)) for statement in node.body]
        made = ast.AsyncFunctionDef(node.name, bare(node.args), body, [], None)
        return ast.copy_location(made, node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """A function inside: async, if it may call an operation; its decorators and defaults are the kernel's."""
        made: ast.FunctionDef | ast.AsyncFunctionDef = node
        decorators = [self.visit(decorator) for decorator in node.decorator_list]
        if any(self._awaits(statement) for statement in node.body):
            made = self.rewritten(node)
            decorators.append(_ours(node, "inner"))
        made.decorator_list = decorators
        made.args.defaults = [self.visit(default) for default in made.args.defaults]
        made.args.kw_defaults = [default and self.visit(default) for default in made.args.kw_defaults]
        return made

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """Refuse an operation in a lambda, which cannot await it."""
        for call in ast.walk(node.body):
            if isinstance(call, ast.Call):
                meaning = self._scope.meaning(call.func)
                if meaning is not UNKNOWN and self._rewriter.may_await(meaning):
                    raise self._refusal(call, f"{ast.unparse(call.func)} in a lambda; use a function with def")
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        """Keep it lazy; only what it goes through first stands outside, and is awaited."""
        outer = self._lazily
        first = self.visit(node.generators[0].iter)
        node.generators[0].iter = ast.Constant(None)
        self._lazily = True
        self.generic_visit(node)
        self._lazily = outer
        node.generators[0].iter = first
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        """Unpack a generator expression as a list: it is taken to its end."""
        node.value = listed(node.value)
        return self.generic_visit(node)  # type: ignore[return-value]

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
        if self._ends(node.func):
            node.args = [listed(argument) for argument in node.args]
        self.generic_visit(node)
        if not awaits:
            return node
        if self._lazily:
            node.func = _through(node.func, "now")
            return node
        node.func = _through(node.func)
        return ast.copy_location(ast.Await(node), node)

    def _may(self, call: ast.Call) -> bool:
        return self._rewriter.may_await(self._scope.meaning(call.func))

    def _ends(self, called: ast.expr) -> bool:
        """Say whether a generator expression that is passed is surely taken to its end."""
        if isinstance(called, ast.Attribute) and called.attr == "join":
            return True
        return any(self._scope.meaning(called) is known for known in _TO_THE_END)

    def _awaits(self, node: ast.AST) -> bool:
        return any(isinstance(inner, ast.Call) and self._may(inner) for inner in ast.walk(node))

    def _refusal(self, node: ast.expr | ast.stmt, message: str) -> Exception:
        return at_line(NotWrittenError(message), self._scope.file, node.lineno)
