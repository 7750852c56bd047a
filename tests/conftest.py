"""Options of the test run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    import pytest

# The same examples in every run, whatever else the machine does meanwhile.
settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")

collect_ignore = ["sample_project"]  # a project of its own, which test_plugin_sample.py runs


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register ``--thorough``."""
    parser.addoption("--thorough", action="store_true", help="check the laws of the analysis on 100,000 programs")
