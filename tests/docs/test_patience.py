"""No test waits for ever: the suite has a limit that a loaded machine does not meet, and what hangs fails by itself."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_the_limit_is_minutes_and_not_seconds():
    assert 120 <= tomllib.loads(PYPROJECT.read_text("utf-8"))["tool"]["pytest"]["ini_options"]["timeout"] <= 900


def test_what_hangs_fails_by_itself(tmp_path):
    (tmp_path / "test_hangs.py").write_text("import time\ndef test_hangs():\n    time.sleep(600)\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "2", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200)  # noqa: S603
    assert done.returncode == 1
    assert "Timeout" in done.stdout
