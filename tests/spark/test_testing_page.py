"""The job of docs/testing.md: crashes as its script says, and gives what the page says."""

from __future__ import annotations

import re
from pathlib import Path

from tests.spark.harness import JobRunner

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"


def test_the_job_of_the_page(run_job: JobRunner) -> None:
    text = PAGE.read_text(encoding="utf-8").partition("<!-- on Spark -->")[2]
    (block,) = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    exec(compile(block, str(PAGE), "exec"), {"__name__": "testing_page"})
