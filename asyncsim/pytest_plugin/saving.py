"""``--asyncsim-save``: each test has a folder of its own, for the fixture, the mark and the plain assertions alike."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


def check_folder(config: pytest.Config) -> None:
    """Look at the folder now, not when the first witness is lost; it is made when it is needed.

    Raises:
        pytest.UsageError: there can be no such folder, or nobody may write to it.

    """
    folder = path = _folder(config)
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    if not path.is_dir():
        raise pytest.UsageError(
            f"--asyncsim-save: {str(path)!r} is no folder, so {str(folder)!r} can be none; name another"
        )
    if not os.access(path, os.W_OK | os.X_OK):
        raise pytest.UsageError(f"--asyncsim-save: nothing may be written to {str(path)!r}; name another folder")


@contextmanager
def saving(item: pytest.Item) -> Iterator[None]:
    """Let everything that the test judges be saved to a folder of the test's own."""
    from asyncsim.testing.saving import FOLDER  # noqa: PLC0415 - it loads asyncsim, and the check above need not

    # Two tests may judge the same kernel, and at the same time.
    before = FOLDER.set(_folder(item.config) / _own(item.nodeid))
    try:
        yield
    finally:
        FOLDER.reset(before)


_PLAIN = re.compile(r"[\w.]+(/[\w.]+)*(::[\w.]+)+(\[[\w.]+(-[\w.]+)*\])?", re.ASCII)
"""Tests of which no two in a session have the same name when all other letters are dashes: ``a/b.py::test[1-x]``."""


def _own(test: str) -> str:
    """Return the name of a test's folder: its own, as files may be called everywhere; no other test has the same."""
    name = re.sub(r"[^A-Za-z0-9_.]+", "-", test).strip("-")
    return name if _PLAIN.fullmatch(test) else f"{name}-{hashlib.sha256(test.encode()).hexdigest()[:8]}"


def _folder(config: pytest.Config) -> Path:
    return Path(config.invocation_params.dir, config.getoption("asyncsim_save"))
