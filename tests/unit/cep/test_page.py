"""docs/cep.md: its Python runs, prints what the page says, and its pictures are what the code draws."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
BLOCKS = re.findall(
    r"^```python\n(.*?)^```\n(?:^```text\n(.*?)^```\n)?",
    (ROOT / "docs" / "cep.md").read_text(encoding="utf-8"),
    re.DOTALL | re.MULTILINE,
)


def test_the_page_runs_and_prints_what_it_says() -> None:
    names: dict[str, Any] = {}
    for code, text in BLOCKS:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/cep.md", "exec"), names)
        assert printed.getvalue() == text
    assert sum(1 for _, text in BLOCKS if text) == 7


def test_the_pictures_are_current() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "generate_cep_pictures.py"), "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
