"""The program in the README runs, and prints what the README shows."""

from __future__ import annotations

import importlib.util
import os
import signal
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def update_readme() -> ModuleType:
    spec = importlib.util.spec_from_file_location("update_readme", ROOT / "scripts" / "update_readme.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_program_prints_what_the_readme_shows(update_readme: ModuleType, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = update_readme.shown_output(readme)
    assert shown, "README.md shows no output yet: run scripts/update_readme.py"
    # Lines of one key have an order; between keys of one epoch there is none that the reader may count on.
    assert sorted(update_readme.run(update_readme.program(readme), tmp_path)) == sorted(shown)


def test_killed_in_the_middle_it_counts_on(update_readme: ModuleType, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    killed = update_readme.start(update_readme.program(readme), tmp_path)
    before = [killed.stdout.readline().strip() for _ in range(4)]
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    before += killed.stdout.read().split("\n")[:-1]
    after = update_readme.run(update_readme.program(readme), tmp_path)
    shown = update_readme.shown_output(readme)
    assert len(before) < len(shown), "it ended before it was killed: nothing was proved"
    assert set(before) | set(after) == set(shown)
    assert len(set(after)) == len(after)
    # The lines of the epoch that was being printed may come again, and no others: a terminal cannot be asked.
    again = set(before) & set(after)
    assert sorted(again) == sorted(before[len(before) - len(again) :])


def test_the_program_has_fifteen_lines(update_readme: ModuleType) -> None:
    program = update_readme.program((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len([line for line in program.splitlines() if line.strip()]) <= 15
