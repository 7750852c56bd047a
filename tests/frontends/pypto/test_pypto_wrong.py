"""A wrong PyPTO program of each kind: the message says what would be right and where, and there is no verdict."""

from __future__ import annotations

import pytest
from command import run, run_process
from wrong_pypto import WRONG


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name.replace(" ", "-"))
def test_a_wrong_program_is_refused_with_its_line(wrong, tmp_path):
    script = tmp_path / "wrong.py"
    script.write_text(wrong.source(), "utf-8")
    result = run("pypto", str(script))
    assert result.exit_code == 2, result.output
    assert wrong.said in " ".join(result.stderr.split())
    assert f"wrong.py:{wrong.line()}" in result.stderr or f'wrong.py", line {wrong.line()}' in result.stderr
    for verdict in ("PROVED", "REFUTED", "SURVIVED", "EXHAUSTED", "OK"):
        assert verdict not in result.output.split()


def test_the_program_that_the_mistakes_are_made_in_is_right(tmp_path):
    script = tmp_path / "right.py"
    script.write_text(type(WRONG[0])("no mistake", "").source(), "utf-8")
    result = run("pypto", str(script))
    assert result.exit_code == 0, result.output
    assert "OK" in result.output.splitlines()
    assert "PROVED" in result.output


def test_a_process_refuses_likewise(tmp_path):
    wrong = WRONG[0]
    script = tmp_path / "wrong.py"
    script.write_text(wrong.source(), "utf-8")
    result = run_process("pypto", str(script))
    assert result.returncode == 2
    assert wrong.said in " ".join(result.stderr.split())
    assert "OK" not in result.stdout
