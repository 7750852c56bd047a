"""What the campaigns on certificates share: the memories they go through, and how they show what they counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

MEMORIES = ("sc", "ldst", "nic")


def shown(pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str], text: str) -> None:
    """Print what was asked for with -s."""
    with capsys.disabled():
        if pytestconfig.getoption("capture") == "no":
            print(text)  # noqa: T201 - asked for
