"""One browser for all tests of a process, and a page that must not complain."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.server.dashboard.browser import Browser

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "get_chromium.py")], capture_output=True, text=True, check=False
    )
    if found.returncode:
        if os.environ.get("CI"):
            pytest.fail(found.stderr)  # where all tests must run, none may go away in silence
        pytest.skip(found.stderr.strip())
    browser = Browser(found.stdout.strip(), tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Kept after the tests, for people: .artifacts/screenshots."""
    return ROOT / ".artifacts" / "screenshots"
