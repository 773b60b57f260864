"""What docs/streams.md shows works: its function for connected streams, and the test of it at the end of the page."""

from __future__ import annotations

import re
from pathlib import Path

from headwater.common import Time, Types
from headwater.datastream import KeyedCoProcessFunction, StreamExecutionEnvironment
from headwater.datastream.state import ValueStateDescriptor
from headwater.datastream.window import TumblingEventTimeWindows
from headwater.testing import TwoInputOperatorHarness

PAGE = Path(__file__).resolve().parents[2] / "docs" / "streams.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def snippet(beginning: str) -> str:
    return next(text for text in SNIPPETS if re.sub(r"\s+", "", text).startswith(re.sub(r"\s+", "", beginning)))


def test_the_snippets() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    names = {
        "KeyedCoProcessFunction": KeyedCoProcessFunction,
        "ValueStateDescriptor": ValueStateDescriptor,
        "Types": Types,
        "Time": Time,
        "TumblingEventTimeWindows": TumblingEventTimeWindows,
        "TwoInputOperatorHarness": TwoInputOperatorHarness,
        **{name: env.from_collection([(1, 1)]) for name in ("orders", "payments", "clicks", "sales")},
    }
    for beginning in ("class PayWithin", "(orders.key_by", "clicks.join", "harness = "):
        exec(snippet(beginning), names)


def test_every_snippet_is_python() -> None:
    assert len(SNIPPETS) == 6
    for text in SNIPPETS:
        compile(text, str(PAGE), "exec")
