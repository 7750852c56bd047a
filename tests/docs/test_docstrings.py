"""The docstring of a public function of two parameters or more says what each is, and which errors it raises itself."""

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "asyncsim"

LEFT = {"certify": 6, "frontends": 22}
"""How many public functions of a room lack a section or a parameter; of every other room none. It only shrinks."""

EXEMPT = {"overload", "property", "cached_property", "setter", "command", "group", "answers"}
"""Decorators of what needs no sections: a click command's docstring is its help, a property takes nothing, and what
answers for a function of another package has the parameters that are described there."""


def public_functions(body, prefix=""):
    """Return the public functions and methods of a module, each with its dotted name."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            bases = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}
            if "Protocol" not in bases:
                yield from public_functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            called = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
            if not EXEMPT & {ast.unparse(one).rpartition(".")[2] for one in called}:
                yield f"{prefix}{node.name}", node


def parameters(function):
    """Return the names of a function's parameters without ``self`` and ``cls``, and those that are not used (``_``)."""
    every = function.args
    taken = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
    return [
        one.arg for one in taken if one is not None and one.arg not in ("self", "cls") and not one.arg.startswith("_")
    ]


def raises(function):
    """Return whether the function's own body, not one nested in it, makes an error and raises it."""
    rest = list(function.body)
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            rest.extend(ast.iter_child_nodes(node))
    return False


def section(docstring, name):
    """Return the lines below a heading as one text, or None if the docstring does not have it."""
    found = re.search(rf"^{name}:\n((?:    .*\n|\n)+)", docstring + "\n", re.MULTILINE)
    return found and found.group(1)


def missing(function):
    """Return what a function's docstring lacks: the parameters it does not name, and ``Raises``."""
    docstring = ast.get_docstring(function) or ""
    lacks = []
    names = parameters(function)
    if len(names) < 2:
        return []
    said = section(docstring, "Args") or ""
    lines = re.findall(r"^    (\*{0,2}\w+(?:, \w+)*):", said, re.MULTILINE)
    described = {name for line in lines for name in re.findall(r"\w+", line)}
    lacks += [name for name in names if name not in described]
    if raises(function) and not section(docstring, "Raises"):
        lacks.append("Raises")
    return lacks


def incomplete():
    """Return, by room, what each public function lacks."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for name, function in public_functions(ast.parse(path.read_text("utf-8")).body):
            if lacks := missing(function):
                found.setdefault(room, []).append(
                    f"{path.relative_to(PACKAGE)}:{function.lineno} {name}: {', '.join(lacks)}"
                )
    return found


def test_only_so_many_docstrings_lack_something():
    found = incomplete()
    assert {room: lines for room, lines in found.items() if len(lines) > LEFT.get(room, 0)} == {}
    assert {room: len(lines) for room, lines in found.items()} == LEFT, "fewer are left: lower the number"


def test_a_missing_parameter_and_a_missing_error_are_seen():
    source = '''
def short(a, b):
    """Do it.

    Args:
        a: one,
            b: no parameter's line.

    """
    raise ValueError(a)

def whole(a, *b, **c):
    """Do it.

    Args:
        a, b: two.
        c: three.

    Raises:
        ValueError: always.

    """
    raise ValueError(a)

def again(a, b):
    """Do it.

    Args:
        a: one.
        b: two.

    """
    def inner(): raise ValueError(a)
    raise
'''
    found = {name: missing(function) for name, function in public_functions(ast.parse(source).body)}
    assert found == {"short": ["b", "Raises"], "whole": [], "again": []}
