"""Options of the test run, how many programs laws draw, and an end to what a test leaves running."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The same examples in every run, whatever else the machine does meanwhile.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")

HERE = Path(__file__).parent
_HOURS = 6 * 3600
_STARTED: list[subprocess.Popen[bytes]] = []
collect_ignore = ["testing/sample_project"]  # a project of its own, which test_plugin_sample.py runs


class _Started(subprocess.Popen):
    """A process that is noted."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        _STARTED.append(self)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register ``--thorough``, ``--part`` and ``--quick``."""
    parser.addoption("--thorough", action="store_true", help="check the laws of the analysis on 100,000 programs")
    parser.addoption("--part", metavar="I/N", default="1/1", help="of the great laws' programs, part I of N")
    parser.addoption("--quick", action="store_true", help="check the laws on a fifth of their programs")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the laws; let slow tests, and all of a thorough run, take hours.

    Any other test fails by itself when its patience is over.
    """
    for item in items:
        if item.path.is_relative_to(HERE / "laws"):
            item.add_marker(pytest.mark.law)
        if config.getoption("--thorough") or item.get_closest_marker("slow") is not None:
            item.add_marker(pytest.mark.timeout(_HOURS))


@pytest.fixture(scope="session")
def programs_of(pytestconfig: pytest.Config) -> Callable[[int, int], int]:
    """Return how many random programs a law draws, of an ordinary and a thorough number: a fifth with ``--quick``."""

    def number(ordinary: int, thorough: int) -> int:
        if pytestconfig.getoption("--thorough"):
            return thorough
        return ordinary // 5 if pytestconfig.getoption("--quick") else ordinary

    return number


@pytest.fixture(scope="session")
def numbers_of(pytestconfig: pytest.Config, programs_of: Callable[[int, int], int]) -> Callable[[int, int], range]:
    """Return which random programs a law draws: so many, or the part of them that ``--part`` names.

    A thorough run takes hours; its parts can run one after the other, or on several machines.
    """
    part, parts = (int(word) for word in pytestconfig.getoption("--part").split("/"))

    def numbers(ordinary: int, thorough: int) -> range:
        total = programs_of(ordinary, thorough)
        return range(total * (part - 1) // parts, total * part // parts)

    return numbers


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """End the processes that a test has started and left, as one does that fails between the two."""
    real, subprocess.Popen = subprocess.Popen, _Started
    try:
        return (yield)
    finally:
        subprocess.Popen = real
        for process in _STARTED:
            if process.poll() is None:
                process.kill()
                process.wait(10)
        _STARTED.clear()
