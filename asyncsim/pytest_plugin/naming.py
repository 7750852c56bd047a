"""Names that work when pasted: a kernel by its file, a test by its id, a file from where pytest was started."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from asyncsim.pytest_plugin.marks import unwrapped

if TYPE_CHECKING:
    import pytest

    from asyncsim.machine.kernel import Kernel


def name_by_file(kernel: Kernel, config: pytest.Config) -> None:
    """Let a kernel of a test file be called ``path/to/file.py:name``.

    Pytest imports a test file under its bare name from wherever it lies, and only in pytest's own
    process does that name lead to it.

    Args:
        kernel: left as it is if its module has no file, or is part of a package.
        config: knows where pytest was started.

    """
    module = sys.modules.get(kernel.module)
    file = getattr(module, "__file__", None)
    if module is None or file is None or "." in kernel.module:
        return
    path = shown(Path(file), config)
    if not path.is_absolute():
        vars(module).setdefault("__asyncsim_path__", path.as_posix())


def can_be_named(kernel: Kernel) -> bool:
    """Say whether the name of a kernel leads to it: one that is made within a function has none."""
    found: object = sys.modules.get(kernel.module)
    for part in kernel.name.split("."):
        found = getattr(found, part, None)
    named, _ = unwrapped(found)
    return named is not None and named.program is kernel.program


def shown(path: Path, config: pytest.Config) -> Path:
    """Return a path as seen from where pytest was started, if it lies below.

    Args:
        path: absolute.
        config: knows where pytest was started.

    """
    folder = config.invocation_params.dir
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def pytest_line(item: pytest.Item, token: str) -> str:
    """Return the command that does a recorded run again in this test.

    Args:
        item: the test.
        token: of the run, see `asyncsim.trace.token`.

    """
    file, colons, rest = item.nodeid.partition("::")
    path = shown(item.config.rootpath / file, item.config).as_posix()
    return f"pytest {shlex.quote(path + colons + rest)} --asyncsim-replay {token}"
