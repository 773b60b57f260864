"""What docs/state-processor.md shows works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headwater.state_processor import SavepointReader, SavepointWriter

PAGE = Path(__file__).resolve().parents[3] / "docs" / "state-processor.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_page_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    writer = SavepointWriter.new().with_keyed_state("totals", "total", [("alice", 1), ("bob", 2)])
    writer.with_keyed_state("alerts", "last", [("alice", "x")]).write("savepoints/monday", durable=False)
    names: dict[str, Any] = {}
    run = [text for text in SNIPPETS if "spark" not in text]
    assert (len(SNIPPETS), len(run)) == (6, 3)
    for text in run:
        exec(compile(text, str(PAGE), "exec"), names)
    assert "alice 1" in capsys.readouterr().out
    repaired = SavepointReader("savepoints/monday-repaired")
    assert sorted(repaired.keyed_state("totals", "total")) == [("alice", None, 100), ("bob", None, 2)]
    assert set(repaired.operators()) == {"totals"}
    assert len(SavepointReader("savepoints/bootstrap").states()) == 5
    for text in SNIPPETS:
        compile(text, str(PAGE), "exec")
