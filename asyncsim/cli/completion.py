"""Completion: what the Tab key offers, and how bash asks for it. A file of the user is read for that, never run."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from click.shell_completion import BashComplete, CompletionItem, add_completion_class

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import click


def complete_kernels(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001 - click's signature
    """Offer the shipped modules, then the kernels of the one that is meant, or of a file; else files.

    A module is not offered alone: shells put a space behind the only thing that is offered.

    Args:
        ctx: not used.
        param: not used.
        incomplete: what was typed so far.

    """
    from asyncsim.checking.record.locate import shipped_modules  # noqa: PLC0415 - a command starts faster without

    place, colon, _ = incomplete.rpartition(":")
    modules = [] if colon else [module for module in shipped_modules() if module.startswith(incomplete)]
    if len(modules) > 1:
        return [CompletionItem(f"{module}:") for module in modules]
    place = modules[0] if modules else place
    names = (f"{place}:{name}" for name in _names_in(place))
    found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return found if found or colon else [CompletionItem(incomplete, type="file")]


def complete_schedulers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001 - as above
    """Offer the schedulers by name.

    Args:
        ctx: not used.
        param: not used.
        incomplete: what was typed so far.

    """
    from asyncsim.schedulers.table import SCHEDULERS  # noqa: PLC0415 - a command starts faster without

    return [CompletionItem(name) for name in SCHEDULERS if name.startswith(incomplete)]


def _names_in(place: str) -> Iterable[str]:
    """Return the kernels of a shipped module, or those that are written in a file."""
    from asyncsim.checking.record.locate import kernel_names, shipped_modules  # noqa: PLC0415 - a command starts faster without

    if place in shipped_modules():
        return kernel_names(place)
    if not place.endswith(".py"):
        return ()
    try:
        return list(_written(ast.parse(Path(place).read_bytes())))
    except (OSError, SyntaxError, ValueError):
        return ()


def _written(tree: ast.Module) -> Iterator[str]:
    """Yield the names of what looks like a kernel: an async function with a decorator, and variants."""
    for node in tree.body:
        if isinstance(node, ast.AsyncFunctionDef) and node.decorator_list:
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            function = node.value.func
            if isinstance(function, ast.Attribute) and function.attr == "variant":
                yield from (target.id for target in node.targets if isinstance(target, ast.Name))


class Bash(BashComplete):
    """Puts words together again. What is offered begins behind the colon, because bash keeps what stands before it."""

    _before = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the whole words, and the one that is begun."""
        given, begun = super().get_completion_args()
        words: list[str] = []
        for word in (*given, begun):
            if words and (word == ":" or words[-1].endswith(":")):
                words[-1] += word
            else:
                words.append(word)
        if words[-1] != begun:
            self._before = words[-1][: words[-1].rfind(":") + 1]
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem) -> str:
        """Write an item as the script for bash reads it."""
        return f"{item.type},{item.value.removeprefix(self._before)}"


add_completion_class(Bash)
