"""The pages of the documentation, taken apart: their blocks, what their commands print, where their links lead.

A block of Python with a title is a file that the reader saves; one without a title is run. In a block of console,
``$ asyncsim …`` is run, and what stands below it is what it prints; else the block of text that follows is. A line
``…`` stands for lines that are left out, ``…`` in a line for a part of it, a token ``as1.…`` for the last one that was
printed. ``$ echo $?`` shows the
exit status. Other commands stand in blocks of sh.
"""

from __future__ import annotations

import glob
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from command import run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_FENCE = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.DOTALL | re.MULTILINE
)
_TOKEN = re.compile(r"as1\.[\w-]+")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Args:
        language: python, console, text, sh, yaml, …
        title: the file that it is, or empty.
        text: what stands in it.
        line: where it begins on its page, from 1.

    """

    language: str
    title: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of a page, what it must print, and where it stands."""

    command: str
    output: str
    line: int


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page, in order."""
    text = page.read_text("utf-8")
    return [
        Block(found["language"], found["title"] or "", found["text"], text.count("\n", 0, found.start()) + 1)
        for found in _FENCE.finditer(text)
    ]


def shown_in(blocks: list[Block], number: int) -> list[Shown]:
    """Return the commands of a block of console."""
    block = blocks[number]
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    split = [part.partition("\n") for part in parts]
    commands = [Shown(command, output, block.line) for command, _, output in split]
    following = blocks[number + 1] if number + 1 < len(blocks) else None
    if following is not None and following.language == "text" and not commands[-1].output:
        commands[-1] = Shown(commands[-1].command, following.text, following.line)
    return commands


def plain(output: str) -> str:
    """Return an output without what differs from run to run, or is too long to be shown."""
    return re.sub(r"in \d+\.\d+ s", "in 0.05 s", _TOKEN.sub("as1.…", output)).strip("\n")


def matches(shown: str, output: str) -> bool:
    """Say whether an output is what is shown, ``…`` standing for any number of lines, or any part of one."""
    parts = re.split(r"^ *…$", plain(shown), flags=re.MULTILINE)
    parts = [re.escape(part).replace("…", r"[^\n]*?") for part in parts]
    return re.fullmatch(".*?".join(parts), plain(output), re.DOTALL) is not None


@dataclass(slots=True)
class Reader:
    """Somebody who follows a page to the letter, in the present folder."""

    page: str
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})
    token: str = ""
    status: int = 0

    def save(self, block: Block) -> None:
        """Save a file as the page says."""
        path = Path(block.title)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, "utf-8")

    def execute(self, block: Block) -> None:
        """Run a block of Python after those before it."""
        padded = "\n" * block.line + block.text
        exec(compile(padded, self.page, "exec"), self.names)  # noqa: S102 - a page of ours

    def enter(self, command: str) -> str:
        """Enter a command, and return what it prints."""
        if command == "echo $?":
            return f"{self.status}\n"
        program, *arguments = shlex.split(command.replace("as1.…", self.token))
        assert program == "asyncsim", f"{self.page}: {command!r} is not run by a test; put it in a block of sh"
        expanded = [name for argument in arguments for name in (sorted(glob.glob(argument)) or [argument])]  # noqa: PTH207 - as a shell does
        result = run(*expanded)
        self.status = result.exit_code
        self.token = (_TOKEN.findall(result.output) or [self.token])[0]
        return result.output


def links_of(page: Path) -> list[str]:
    """Return where the links and pictures of a page lead."""
    prose = re.sub(r"\[`[^`\n]*`\]", "[code]", _FENCE.sub("", page.read_text("utf-8")))
    prose = re.sub(r"`[^`\n]*`", "", prose)
    return re.findall(r"\]\(([^)\s]+)\)", prose) + re.findall(r'(?:src|srcset|href)="([^"]+)"', prose)


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as mkdocs and GitHub make them."""
    titles = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}
