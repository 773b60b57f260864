"""The blocks of docs/testing.md run; the one for Spark does in tests/spark, and here in process."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from headwater.testing import STEPS, in_process

PAGE = Path(__file__).resolve().parents[3] / "docs" / "testing.md"


def blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


def test_the_blocks_without_spark_run() -> None:
    found = blocks(PAGE.read_text(encoding="utf-8").partition("<!-- on Spark -->")[0])
    assert len(found) == 4
    names: dict[str, Any] = {"__name__": "testing_page"}
    for block in found:
        exec(compile(block, str(PAGE), "exec"), names)


def test_the_block_for_spark_says_the_same_in_process() -> None:
    (block,) = blocks(PAGE.read_text(encoding="utf-8").partition("<!-- on Spark -->")[2])
    with in_process():
        exec(compile(block, str(PAGE), "exec"), {"__name__": "testing_page"})


def test_the_page_names_all_steps() -> None:
    assert ", ".join(f"`{step}`" for step in STEPS) in PAGE.read_text(encoding="utf-8").replace("\n", " ")
