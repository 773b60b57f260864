"""What the pages on connectors and watermarks show works: every block runs, and what it builds does its work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headwater.common.connector import WriterContext
from headwater.datastream import DataStream

ROOT = Path(__file__).resolve().parents[2]


def run_page(name: str) -> dict[str, Any]:
    """The names that the Python blocks of a page leave, run from top to bottom."""
    page = ROOT / "docs" / name
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "a_page"}
    for match in re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S):
        line = text.count("\n", 0, match.start(1))
        exec(compile("\n" * line + match.group(1), str(page), "exec"), names)
    return names


def test_the_page_on_connectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_page("connectors/README.md")
    plan, _ = names["env"]._plan("connectors")
    assert len(plan.sources) == 2


def test_the_page_on_writing_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_page("connectors/writing-your-own.md")
    plan, _ = names["env"]._plan("connectors")
    assert len(plan.sources) == 1
    names["check_countdown"]()
    numbers = iter(range(1000))
    names["check_one_file_per_epoch"](lambda: str(tmp_path / f"out-{next(numbers)}"))

    source = names["Countdown"]()
    [split] = source.discover_splits(1, frozenset())
    reader = source.open_reader(split, None)
    assert reader.read_batch(4) == [10, 9, 8, 7]
    again = source.open_reader(split, reader.position())
    assert again.read_batch(100) == [6, 5, 4, 3, 2, 1] and again.read_batch(1) is None

    sink = names["OneFilePerEpoch"](str(tmp_path / "out"))
    writer = sink.create_writer(WriterContext("job", "sink", 0, 1, "a", 3))
    writer.write_batch([1, 2], None)
    prepared = writer.prepare_commit()
    assert [path.name[0] for path in (tmp_path / "out").iterdir()] == ["."]
    for _ in range(2):
        sink.create_committer().commit(prepared)
    (visible,) = (tmp_path / "out").iterdir()
    assert visible.name.startswith("3-0-") and visible.read_text() == "1\n2\n"


def test_the_page_on_kafka() -> None:
    names = run_page("connectors/kafka.md")
    plan, _ = names["env"]._plan("kafka")
    assert repr(names["source"]) == "KafkaSource(clicks at localhost:9092)"
    assert [each.sink for stage in plan.stages for each in stage.operators if each.sink is not None] == [names["sink"]]


def test_the_page_on_watermarks() -> None:
    names = run_page("watermarks.md")
    for stream in [value for value in names.values() if type(value) is DataStream]:
        stream.print()
    plan, _ = names["env"]._plan("watermarks")
    assert plan.stages

    class Output:
        emitted: list[int] = []  # noqa: RUF012

        def emit_watermark(self, watermark: int) -> None:
            self.emitted.append(watermark)

    punctuated, periodic, output = names["UpToEveryLogout"](), names["TenSecondsBehind"](), Output()
    for event in (("click", 20_000), ("logout", 30_000)):
        punctuated.on_event(event, event[1], output)
        periodic.on_event(event, event[1], output)
    periodic.on_periodic_emit(output)
    assert output.emitted == [30_000, 20_000]
