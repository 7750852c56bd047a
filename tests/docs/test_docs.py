"""The documentation tells the truth: every example is run, every link leads somewhere, every name is there."""

from __future__ import annotations

import importlib.util
import inspect
import re
import shutil
import subprocess
import sys
from difflib import unified_diff

import pytest
from pages import DOCS, ROOT, Reader, anchors_of, blocks_of, links_of, matches, plain, shown_in

import asyncsim
import asyncsim.testing
from asyncsim.cli.main import main
from asyncsim.frontends import nccl, torch_dist
from asyncsim.schedulers.table import SCHEDULERS
from asyncsim.trace.finding import KINDS

PAGES = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
ABOVE = [ROOT / "README.md", ROOT / "ARCHITECTURE.md"]
ELSEWHERE = {
    "how-to/bring-a-triton-kernel.md": "frontends/triton/test_triton_scripts.py",
    "how-to/test-with-pytest.md": "testing/test_plugin_sample.py",
    "reference/pypto.md": "frontends/pypto/test_pypto_reference.py",
    "reference/trace-format.md": "trace/test_validate.py",
}
"""Pages whose examples another test runs."""


@pytest.fixture
def hook():
    spec = importlib.util.spec_from_file_location("included", DOCS / "hooks" / "included.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", [name for name in PAGES if name not in ELSEWHERE])
def test_every_example_does_what_the_page_shows(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    reader, blocks = Reader(name), blocks_of(PAGES[name])
    for number, block in enumerate(blocks):
        if block.language == "python" and block.title:
            reader.save(block)
        elif block.language == "python":
            reader.execute(block)
        elif block.language == "console":
            for shown in shown_in(blocks, number):
                output = reader.enter(shown.command)
                assert reader.status in (0, 1), f"{name}:{shown.line}: $ {shown.command}\n{output}"
                if shown.output and not matches(shown.output, output):
                    texts = plain(shown.output).split("\n"), plain(output).split("\n")
                    lines = unified_diff(*texts, "shown", "printed", lineterm="")
                    pytest.fail(f"{name}:{shown.line}: $ {shown.command}\n" + "\n".join(lines), pytrace=False)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_page_that_is_not_run_here_is_run_by_its_own_test(name):
    test = (ROOT / "tests" / ELSEWHERE[name]).read_text("utf-8")
    assert name.rpartition("/")[2] in test


def test_what_is_left_out_is_matched_and_nothing_else_is():
    assert matches("a\n…\nd\n", "a\nb\nc\nd\n")
    assert matches("in 0.05 s as1.…", "in 7.31 s as1.eNq_-x\n")
    assert not matches("a\n…\nd\n", "a\nb\nc\n")
    assert not matches("a\n", "a\nb\n")


@pytest.mark.parametrize("path", [*PAGES.values(), *ABOVE], ids=lambda path: path.name)
def test_every_link_leads_to_a_page_and_a_heading(path):
    for link in links_of(path):
        if not link.startswith(("http://", "https://")):
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            assert target.exists(), f"{path.name}: {link} leads nowhere"
            if anchor and target.suffix == ".md":
                assert anchor in anchors_of(target), f"{path.name}: {link} has no such heading"


def test_every_page_is_in_the_navigation_once():
    named = re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(PAGES)


def test_every_command_that_a_page_names_exists_with_its_options():
    for path in [*PAGES.values(), ROOT / "README.md"]:
        for line in re.findall(r"\basyncsim ([a-z]+(?: [^`\n|>]*)?)", path.read_text("utf-8")):
            name, *words = line.split()
            if name in main.commands:
                options = {option for it in main.commands[name].params for option in (*it.opts, *it.secondary_opts)}
                behind = next((n for n, word in enumerate(words) if word.endswith(".py")), len(words))
                given = {word.partition("=")[0] for word in words[:behind] if re.match(r"--?[a-zA-Z]", word)}
                assert given - {"--help", "-h"} <= options, f"{path.name}: asyncsim {line}"


@pytest.mark.parametrize(("page", "package"), [("python", asyncsim), ("testing", asyncsim.testing)])
def test_the_reference_has_every_public_name(page, package):
    text = PAGES[f"reference/{page}.md"].read_text("utf-8")
    assert sorted(re.findall(rf"^::: {package.__name__}\.(\w+)$", text, re.MULTILINE)) == sorted(package.__all__)


@pytest.mark.parametrize("dialect", [nccl, torch_dist])
def test_the_page_of_torch_and_nccl_has_every_name_of_theirs(dialect):
    words = set(re.findall(r"\w+", PAGES["reference/torch.md"].read_text("utf-8")))
    assert set(dialect.__all__) <= words


def test_the_page_of_reports_has_every_kind_of_finding():
    rows = re.findall(r"^\| `([a-z-]+)` \|", PAGES["how-to/read-a-report.md"].read_text("utf-8"), re.MULTILINE)
    assert set(KINDS) <= set(rows)


def test_the_reference_has_every_command_as_it_helps_itself(hook):
    page = hook.on_page_markdown(PAGES["reference/commands.md"].read_text("utf-8"))
    assert re.findall(r"^## asyncsim (\w+)$", page, re.MULTILINE) == sorted(main.commands)
    assert hook.help_of("check").startswith("Usage: asyncsim check [OPTIONS] KERNEL...\n")
    assert hook.help_of("check") in page


def test_the_reference_has_every_scheduler_with_its_arguments():
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|", PAGES["reference/schedulers.md"].read_text("utf-8"), re.MULTILINE)
    told = {name: re.findall(r"`(\w+)", arguments) for name, arguments in rows}
    assert told == {name: list(inspect.signature(make).parameters) for name, make in SCHEDULERS.items()}


def test_tables_are_taken_from_where_they_stand(hook):
    glossary = hook.on_page_markdown(PAGES["reference/glossary.md"].read_text("utf-8"))
    assert "| golden |" in glossary
    litmus = hook.on_page_markdown(PAGES["explanation/memory-models.md"].read_text("utf-8"))
    assert "| store buffering |" in litmus
    with pytest.raises(ValueError, match="has no table"):
        hook._table("README.md", "## Nothing", "\n## ")


def test_the_site_builds_and_warns_of_nothing(tmp_path):
    for needed in ("material", "mkdocstrings", "mkdocstrings_handlers.python"):
        pytest.importorskip(needed, reason="the extra docs is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)  # noqa: S603 - mkdocs
    assert built.returncode == 0, built.stderr
    assert "wait until" in (tmp_path / "site" / "reference" / "python.html").read_text("utf-8").lower()
    shutil.rmtree(tmp_path / "site")
