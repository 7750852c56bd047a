"""A browser for the tests of the page: the Chromium that the machine has, driven by Playwright; or none, and skip."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def pytest_configure(config):
    config.addinivalue_line("markers", "browser: needs Chromium and the package playwright")


@pytest.fixture(scope="module")  # longer, and its event loop would be found running by the tests of other files
def browser():
    """Start Chromium with a new, empty profile."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if binary is None:
        pytest.skip("there is no Chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=binary, args=FLAGS)
        yield started
        started.close()
