"""What a command imports: itself, and nothing that it does not need."""

import subprocess
import sys

import click
import pytest
from command import ROOT, run

from asyncsim.cli import main as main_module
from asyncsim.cli.main import COMMANDS, main

LOADED = """
import sys
from asyncsim.cli.main import main
main({arguments!r}, standalone_mode=False)
print("loaded", *sorted(name for name in sys.modules if name.startswith(("asyncsim.cli.", "rich", "structlog"))))
"""


def loaded_by(*arguments):
    """Return what of the commands, of rich and of structlog a process has loaded that ran a command."""
    code = LOADED.format(arguments=list(arguments))
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=240
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_where_the_table_says(name):
    assert main.commands[name].name == name
    assert main.commands[name] is main.commands[name]


def test_a_command_imports_no_other_and_no_library_for_what_it_does_not_print():
    loaded = loaded_by("lower", "reduce_scatter:builtin")
    assert "asyncsim.cli.lower" in loaded
    assert not {"asyncsim.cli.pypto", "asyncsim.cli.show", "asyncsim.cli.torchrun", "rich", "structlog"} & loaded


def test_help_names_every_command_with_what_it_does():
    shown = run("--help").output.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in shown] == sorted(COMMANDS)
    assert all(len(line.split()) > 1 for line in shown)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_of_a_command_what_it_says_itself(name):
    assert main_module._summary(name).get_short_help_str(300) == main.commands[name].get_short_help_str(300)


def test_help_imports_no_command():
    assert not {f"asyncsim.cli.{place.partition(':')[0]}" for place in COMMANDS.values()} & loaded_by("--help")


def test_a_name_that_is_no_command_is_answered_with_the_nearest():
    result = run("chek")
    assert result.exit_code == 2
    assert "Did you mean 'check'?" in result.stderr


def test_a_command_that_is_added_is_found_until_it_is_taken_away():
    before = len(main.commands)
    main.add_command(click.Command("more"))
    try:
        assert main.commands["more"].name == "more"
        assert len(main.commands) == before + 1
    finally:
        del main.commands["more"]
    assert "more" not in main.commands
    assert len(main.commands) == before
