"""What pages take from elsewhere when the site is built, so that nothing stands twice.

A page asks with a comment: ``<!-- commands -->`` for the help of every command, ``<!-- glossary -->`` for the table
of the README, ``<!-- litmus -->`` for the litmus tests of ARCHITECTURE.md, ``<!-- fields of step -->`` for the table
of the fields of a step of a trace, and so on.
"""
# ruff: noqa: INP001 - mkdocs loads this file by its path

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from asyncsim.cli.main import main
from asyncsim.trace.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 84


def on_page_markdown(markdown: str, **_: Any) -> str:  # noqa: ANN401 - what mkdocs hands to every hook
    """Fill in what a page asks for."""
    for name, make in PARTS.items():
        if (comment := f"<!-- {name} -->") in markdown:
            markdown = markdown.replace(comment, make())
    return markdown


def commands() -> str:
    """Return the help of every command, under a heading each."""
    return "\n".join(f"## asyncsim {name}\n\n```text\n{help_of(name)}\n```\n" for name in sorted(main.commands))


def help_of(name: str) -> str:
    """Return what ``asyncsim NAME --help`` prints, at a fixed width."""
    command = main.commands[name]
    above = click.Context(main, info_name="asyncsim", **main.context_settings)
    with click.Context(command, info_name=name, parent=above, terminal_width=WIDTH, max_content_width=WIDTH) as context:
        return command.get_help(context)


def glossary() -> str:
    """Return the table of words in the README."""
    return _table("README.md", "## Glossary", "\n## ")


def litmus() -> str:
    """Return the table of litmus tests."""
    return _table("ARCHITECTURE.md", "<!-- litmus -->", "<!-- /litmus -->")


PARTS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "glossary": glossary,
    "litmus": litmus,
    **{f"fields {name}": make for name, make in TABLES.items()},
}


def _table(file: str, start: str, end: str) -> str:
    """Return the lines of the first table between two marks."""
    _, found, rest = (ROOT / file).read_text("utf-8").partition(start)
    rows = re.findall(r"^\|.*\|$", rest.partition(end)[0], re.MULTILINE)
    if not found or not rows:
        raise ValueError(f"{file} has no table after {start!r}")
    return "\n".join(rows)
