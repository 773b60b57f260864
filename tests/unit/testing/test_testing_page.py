"""The blocks of docs/testing.md run; the one for Spark does in tests/spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[3] / "docs" / "testing.md"


def test_the_blocks_without_spark_run() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("<!-- on Spark -->")[0]
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) == 2
    names: dict[str, Any] = {"__name__": "testing_page"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
