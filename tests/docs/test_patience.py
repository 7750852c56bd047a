"""No test waits for ever: the suite has a limit that a loaded machine does not meet, and what hangs fails by itself."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYPROJECT = ROOT / "pyproject.toml"
FILES = {
    path.relative_to(ROOT / "tests").as_posix(): path
    for path in sorted((ROOT / "tests").rglob("*.py"))
    if path.parent != ROOT / "tests" and "scripts" not in path.parts
}
RUN = ("subprocess.run", "subprocess.check_output", "subprocess.check_call", "subprocess.call")


def endless(call):
    """Say what in a call waits for another process or thread without a limit of its own; nothing: empty."""
    name, given = ast.unparse(call.func), {keyword.arg for keyword in call.keywords}
    method = name.rpartition(".")[2]
    if name in RUN or method == "communicate":
        return "" if "timeout" in given else f"{name} without timeout="
    if name == "threading.Thread":
        return "" if "daemon" in given else f"{name} without daemon=True keeps a failed run from its end"
    if method == "join" and not call.args and "timeout" not in given:
        return f"{name} without timeout="
    return ""


@pytest.mark.parametrize("name", FILES)
def test_a_wait_for_a_process_or_a_thread_has_a_limit(name):
    calls = [node for node in ast.walk(ast.parse(FILES[name].read_text("utf-8"))) if isinstance(node, ast.Call)]
    assert [(call.lineno, what) for call in calls if (what := endless(call))] == []


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("subprocess.run(command, check=True)", "subprocess.run without timeout="),
        ("process.communicate()", "process.communicate without timeout="),
        ("thread.join()", "thread.join without timeout="),
        ("threading.Thread(target=f)", "threading.Thread without daemon"),
    ],
)
def test_such_a_wait_is_noticed(source, what):
    assert endless(ast.parse(source, mode="eval").body).startswith(what)


def test_what_a_test_leaves_running_is_ended(tmp_path):
    sleeps = "[sys.executable, '-c', 'import time; time.sleep(600)']"
    text = f"import subprocess, sys\ndef test_leaves():\n    print('pid', subprocess.Popen({sleeps}).pid)\n"
    conftest = (ROOT / "tests" / "conftest.py").read_text("utf-8")
    (tmp_path / "conftest.py").write_text(conftest, encoding="utf-8")
    (tmp_path / "test_leaves.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-W", "ignore", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200)  # noqa: S603
    assert done.returncode == 0, done.stdout
    (pid,) = re.findall(r"pid (\d+)", done.stdout)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_the_limit_is_minutes_and_not_seconds():
    assert 120 <= tomllib.loads(PYPROJECT.read_text("utf-8"))["tool"]["pytest"]["ini_options"]["timeout"] <= 900


def test_what_hangs_fails_by_itself(tmp_path):
    (tmp_path / "test_hangs.py").write_text("import time\ndef test_hangs():\n    time.sleep(600)\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "2", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200)  # noqa: S603
    assert done.returncode == 1
    assert "Timeout" in done.stdout
