"""The program in the README runs, and prints what the README shows."""

from __future__ import annotations

import importlib.util
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


def test_the_program_has_fifteen_lines(update_readme: ModuleType) -> None:
    program = update_readme.program((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len([line for line in program.splitlines() if line.strip()]) <= 15
