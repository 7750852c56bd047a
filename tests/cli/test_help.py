"""Help, completion and colours: every command shows how it is used, and shells can complete it."""

from __future__ import annotations

import os
import pty
import shlex
import shutil
import subprocess
import sys
from itertools import takewhile

import click
import pytest
from click.shell_completion import get_completion_class
from command import GOOD, ROOT, run, run_process
from pages import DOCS, blocks_of

import asyncsim
from asyncsim.checking.record.locate import kernel_names
from asyncsim.cli.main import main

ENV = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
BASH = """
eval "$(cat)"
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_LINE="{words}"; COMP_POINT=${{#COMP_LINE}}
_asyncsim_completion asyncsim 2> /dev/null
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def context_of(command, name):
    """Return a context like that of a command line."""
    above = click.Context(
        main, info_name="asyncsim", terminal_width=200, max_content_width=200, **main.context_settings
    )
    return above if command is main else click.Context(command, above, name, **command.context_settings)


def examples_of(command):
    """Return the lines below ``Examples:`` in the help of a command."""
    lines = command.get_help(context_of(command, "x")).splitlines()
    start = next(n for n, line in enumerate(lines) if line.strip() in ("Examples:", "Example:", "Start here:"))
    return list(takewhile(bool, (line.strip() for line in lines[start + 1 :])))


@pytest.mark.parametrize("name", [*main.commands, ""])
def test_every_help_has_examples_whose_commands_options_and_values_exist(name):
    command = main.commands[name] if name else main
    examples = examples_of(command)
    assert examples
    for example in examples:
        program, used, *words = shlex.split(example.partition(" > ")[0])
        assert program == "asyncsim"
        known = main.commands[used]
        context = context_of(known, used)
        values, _, _ = known.make_parser(context).parse_args(words)  # no such option: it raises
        for param in known.params:
            value = values.get(param.name)
            if isinstance(value, str | tuple) and not isinstance(param.type, click.Path):
                param.type_cast_value(context, value)
            assert not param.required or isinstance(value, str | tuple), f"{example}: no {param.name}"
    assert not name or any(f"asyncsim {name}" in example for example in examples)


def test_the_same_help_under_both_names_of_it():
    assert run("check", "-h").output == run("check", "--help").output
    process = run_process("--help", COLUMNS="80")
    assert process.returncode == 0
    assert process.stdout.startswith("Usage: asyncsim [OPTIONS] COMMAND [ARGS]...\n")


# ---- colours


def coloured(*arguments, **environment):
    """Say whether a process whose output is a terminal colours it."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "asyncsim", *arguments]
    env = {key: value for key, value in {**ENV, "TERM": "xterm-256color", **environment}.items() if value is not None}
    with subprocess.Popen(command, stdout=slave, stderr=subprocess.PIPE, env=env) as process:  # noqa: S603 - ours
        os.close(slave)
        shown = b""
        try:
            while part := os.read(master, 65536):
                shown += part
        except OSError:  # how a terminal says that the other side has closed
            pass
        finally:
            process.kill()
    os.close(master)
    return b"\x1b[" in shown


def test_a_terminal_gets_colours_unless_no_color_is_set_and_a_pipe_gets_none():
    assert coloured("check", GOOD, "-P", "2", NO_COLOR=None)
    assert not coloured("check", GOOD, "-P", "2", NO_COLOR="1")
    assert "\x1b" not in run_process("check", GOOD, "-P", "2").stdout


# ---- completion


@pytest.fixture
def offered(monkeypatch):
    """Return what bash is told behind a line whose last word is begun: items with their types."""

    def ask(line):
        monkeypatch.setenv("COMP_WORDS", f"asyncsim {line}")
        monkeypatch.setenv("COMP_CWORD", str(len(line.split())))
        completing = get_completion_class("bash")(main, {}, "asyncsim", "_ASYNCSIM_COMPLETE")
        return completing.complete().splitlines()

    return ask


@pytest.fixture
def plain(offered):
    return lambda line: [item.removeprefix("plain,") for item in offered(line)]


def test_modules_complete_first_then_their_kernels(plain):
    assert plain("check all_") == ["all_gather:", "all_reduce:", "all_to_all:"]
    assert plain("check reduce_s") == plain("check reduce_scatter:")
    assert plain("check reduce_scatter:bu") == ["reduce_scatter:builtin"]
    assert plain("audit reduce_scatter:") == [f"reduce_scatter:{name}" for name in kernel_names("reduce_scatter")]
    assert "field.f01_one_shot_without_end_barrier:buggy" in plain("check field.f01")
    assert plain("replay x --kernel zero:no_e") == ["zero:no_end_barrier"]


def test_a_name_that_the_shell_has_cut_at_its_colon_completes_without_it(plain):
    assert plain("check reduce_scatter : bu") == ["builtin"]
    assert plain("check reduce_scatter :") == kernel_names("reduce_scatter")
    assert plain("record reduce_scatter : bu") == ["builtin"]
    assert plain("check all_reduce:mesh reduce_scatter : bu") == ["builtin"]


def test_a_file_is_read_and_not_run(plain, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "raise SystemExit\n@kernel(memory=[])\nasync def good(rank): ...\nbad = good.variant()\n"
        "async def other(): ...\ndef plain(): ...\nnumber = f()\n",
        "utf-8",
    )
    assert plain("check mine.py:") == ["mine.py:good", "mine.py:bad"]
    assert plain("check mine.py : b") == ["bad"]
    (tmp_path / "broken.py").write_text("(", "utf-8")
    assert plain("check broken.py:") == plain("check nowhere.py:") == plain("check nothing:") == []


def test_where_no_module_begins_so_files_are_offered(offered):
    assert offered("check ./mi") == ["file,./mi"]


def test_schedulers_complete(plain):
    assert plain("explore x --scheduler p") == ["pct", "pos", "preempt"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_line_of_each_shell_gives_a_script(shell):
    lines = [block.text.strip() for block in blocks_of(DOCS / "how-to" / "complete-in-the-shell.md")]
    (line,) = [line for line in lines if f"_ASYNCSIM_COMPLETE={shell}_source asyncsim" in line]
    script = get_completion_class(shell)(main, {}, "asyncsim", "_ASYNCSIM_COMPLETE").source()
    assert line
    assert f"_ASYNCSIM_COMPLETE={shell}_complete" in script
    if shutil.which(shell):
        command = [shell, "--no-execute"] if shell == "fish" else [shell, "-n"]
        assert subprocess.run(command, input=script, text=True, check=False, timeout=240).returncode == 0  # noqa: S603 - click's


def test_bash_completes_a_kernel_although_it_cuts_words_at_colons(tmp_path):
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    program = tmp_path / "asyncsim"
    program.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -m asyncsim\n", "utf-8")
    program.chmod(0o755)
    env = {**ENV, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    source = run_process(_ASYNCSIM_COMPLETE="bash_source").stdout
    for words, wanted in (
        ("asyncsim check reduce_scatter:no_p", "reduce_scatter:no_post_barrier"),
        ("asyncsim check reduce_scatter : buil", "builtin"),
    ):
        command = ["bash", "-c", BASH.format(words=words)]
        done = subprocess.run(command, input=source, env=env, capture_output=True, text=True, check=False, timeout=240)  # noqa: S603
        assert done.stdout.split() == [wanted], done.stderr


def test_the_version_is_told_without_numpy_and_the_package_imported_without_what_is_not_asked_for():
    code = "import sys; from asyncsim.cli.main import main; main(['--version'], standalone_mode=False)"
    code += "; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240)  # noqa: S603 - ours
    assert done.stdout.splitlines()[-1] == "False"
    code = "import sys, asyncsim; asyncsim.Window; print('asyncsim.checking' in sys.modules, 'check' in dir(asyncsim))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240)  # noqa: S603 - ours
    assert done.stdout == "False True\n"


def test_a_name_that_the_package_has_not_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'prove'"):
        asyncsim.prove  # noqa: B018 - the access is what is tested
