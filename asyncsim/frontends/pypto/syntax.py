"""Syntax trees of the author's functions: copies, parts left out, parts written otherwise."""

from __future__ import annotations

import ast
from typing import Any


def class_of(qualname: str) -> str:
    """Return the class whose name is part of the private names of a function, ``self.__x``; "" if there is none."""
    outside = qualname.split(".")[:-1]
    while outside[-1:] == ["<locals>"]:
        outside = outside[:-2]
    return outside[-1] if outside else ""


def listed(node: ast.expr) -> ast.expr:
    """Return a generator expression as a list; all else as it is."""
    if not isinstance(node, ast.GeneratorExp):
        return node
    return ast.copy_location(ast.ListComp(node.elt, node.generators), node)


def copied(node: Any) -> Any:  # noqa: ANN401 - nodes, lists and what they hold
    """Return a copy of a tree, which is shared by all who look at the file."""
    if isinstance(node, ast.AST):
        made = type(node)(**{name: copied(value) for name, value in ast.iter_fields(node)})
        return ast.copy_location(made, node)
    return [copied(part) for part in node] if isinstance(node, list) else node


def bare(arguments: ast.arguments) -> ast.arguments:
    """Return the parameters without annotations; defaults only mark which there are: the function keeps its own."""
    made = copied(arguments)
    for arg in ast.walk(made):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    return made  # type: ignore[no-any-return]
