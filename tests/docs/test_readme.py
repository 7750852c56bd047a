"""The README tells the truth: its kernel runs, gives the report that is printed there, and is repaired as it says."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from asyncsim.cli.main import main

README = Path(__file__).parents[2] / "README.md"


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Run asyncsim in a folder that holds the README's kernel as shift.py."""
    (tmp_path / "shift.py").write_text(blocks("python")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    return lambda *arguments: CliRunner().invoke(main, arguments)


def test_the_kernel_of_ten_lines_gives_the_report_that_is_printed(command):
    result = command("check", "shift.py:shift", "-P", "3")
    shown = re.sub(r"in \d+\.\d+ s", "in 0.05 s", re.sub(r"as1\.\S+", "as1.…", result.output))
    assert shown.strip() == blocks("text")[0].strip()
    assert result.exit_code == 1


def test_its_replay_line_works_when_pasted(command):
    report = command("check", "shift.py:shift", "-P", "3").output
    line = re.search(r"asyncsim (replay \S+ --kernel \S+)", report)
    assert line is not None
    replayed = command(*line[1].split())
    assert replayed.exit_code == 1
    assert "instead of" in replayed.output


def test_one_call_of_it_is_proved(command):
    result = command("check", "shift.py:shift", "-P", "3", "--calls", "1")
    assert (result.output.startswith("PROVED"), result.exit_code) == (True, 0)


def test_every_command_that_is_named_exists():
    named = set(re.findall(r"`asyncsim (\w+)", README.read_text(encoding="utf-8")))
    assert named <= set(main.commands)


def test_the_repair_is_proved(command, tmp_path):
    kernel, repair = blocks("python")[:2]
    repaired = (
        kernel.replace("memory=[box, ready]", "memory=[box, ready, read]")
        .replace("rank, x, box, ready)", "rank, x, box, ready, read)")
        .replace("@kernel(", 'read = Signal("read", (1,), self_cleaning=True)\n\n@kernel(')
        .replace("    return got", f"{repair}    return got")
    )
    (tmp_path / "repaired.py").write_text(repaired, encoding="utf-8")
    result = command("check", "repaired.py:shift", "-P", "3")
    assert (result.output.startswith("PROVED"), result.exit_code) == (True, 0)


def test_its_picture_shows_what_the_command_prints(command):
    """Where this fails, ``python tests/make_pictures.py`` makes it anew."""
    svg = (README.parent / "docs" / "pictures" / "report.svg").read_text("utf-8")
    drawn = "".join(html.unescape(text) for text in re.findall(r"<text [^>]*>([^<]*)</text>", svg))
    printed = re.sub(
        r"in \d+\.\d+ s", "", re.sub(r"as1\.\S+", "as1.…", command("check", "shift.py:shift", "-P", "3").output)
    )
    assert "".join(printed.split()) in "".join(re.sub(r"in\s\d+\.\d+\ss", "", drawn).split())
