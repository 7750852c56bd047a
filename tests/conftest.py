"""Options of the test run."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, whatever else the machine does meanwhile.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")

_HOURS = 6 * 3600
collect_ignore = ["testing/sample_project"]  # a project of its own, which test_plugin_sample.py runs


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register ``--thorough``."""
    parser.addoption("--thorough", action="store_true", help="check the laws of the analysis on 100,000 programs")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let slow tests, and all of a thorough run, take hours; any other fails by itself when its patience is over."""
    for item in items:
        if config.getoption("--thorough") or item.get_closest_marker("slow") is not None:
            item.add_marker(pytest.mark.timeout(_HOURS))
