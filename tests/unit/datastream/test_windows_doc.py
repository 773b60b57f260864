"""Every Python block of docs/windows.md runs, in order, and the plan of what they built is sound."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from headwater.datastream import DataStream

PAGE = Path(__file__).resolve().parents[3] / "docs" / "windows.md"


def test_the_blocks_run() -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = [(match.start(1), match.group(1)) for match in re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S)]
    assert len(blocks) >= 6
    names: dict[str, Any] = {"__name__": "windows_page"}
    for position, block in blocks:
        line = text.count("\n", 0, position)
        exec(compile("\n" * line + block, str(PAGE), "exec"), names)
    streams = [value for value in names.values() if type(value) is DataStream]
    for stream in streams:
        stream.print()
    plan, *_ = names["env"]._plan("windows")
    windows = [operator for stage in plan.stages for operator in stage.operators if "Windows" in operator.name]
    assert len(windows) >= 6
