from __future__ import annotations

import pickle
from datetime import timedelta
from typing import Any

import pytest

from headwater.common.errors import ConfigurationError
from headwater.common.time import Duration
from headwater.common.watermark_strategy import (
    AssignerWithPeriodicWatermarksWrapper,
    TimestampAssigner,
    WatermarkAlignment,
    WatermarkGenerator,
    WatermarkKind,
    WatermarkOutput,
    WatermarkStrategy,
)


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class Marker(WatermarkGenerator):
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


def test_each_maker_says_which_generator_it_wants() -> None:
    assert WatermarkStrategy.no_watermarks().kind is WatermarkKind.NONE
    assert WatermarkStrategy.for_monotonous_timestamps().kind is WatermarkKind.MONOTONOUS
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    assert (bounded.kind, bounded.max_out_of_orderness_ms) == (WatermarkKind.BOUNDED, 5_000)
    custom = WatermarkStrategy.for_generator(Marker)
    assert custom.kind is WatermarkKind.CUSTOM
    assert custom.generator_supplier is Marker


def test_a_strategy_is_never_changed_in_place() -> None:
    plain = WatermarkStrategy.for_monotonous_timestamps()
    rich = plain.with_timestamp_assigner(SecondField()).with_idleness(timedelta(minutes=1))
    assert (plain.timestamp_assigner, plain.idle_timeout_ms) == (None, None)
    assert rich.idle_timeout_ms == 60_000
    assert rich.kind is WatermarkKind.MONOTONOUS
    assert pickle.loads(pickle.dumps(rich)).extractor()(("a", 7), 0) == 7


def test_an_assigner_may_be_a_function() -> None:
    strategy = WatermarkStrategy.no_watermarks()
    assert strategy.extractor() is None
    extract = strategy.with_timestamp_assigner(lambda value, timestamp: value + timestamp).extractor()
    assert extract is not None
    assert extract(1, 2) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: s.with_timestamp_assigner(SecondField), r"expected an instance; write SecondField\(\)"),
        (lambda s: s.with_timestamp_assigner(5), "expected a TimestampAssigner or a function"),
        (lambda s: s.with_timestamp_assigner(lambda value: 1), r"record_timestamp\), found a lambda of \(value\)"),
        (lambda s: s.with_idleness(Duration.of_millis(0)), "idle_timeout: expected at least 1 ms"),
        (lambda s: s.with_idleness("1 min"), "idle_timeout: expected a Duration"),
        (lambda s: s.for_bounded_out_of_orderness(-1), "max_out_of_orderness: expected at least 0"),
        (lambda s: s.for_generator(Marker()), "every split needs its own"),
        (lambda s: s.for_generator(None), "expected a class or function"),
        (lambda s: AssignerWithPeriodicWatermarksWrapper(None), "for_generator"),
    ],
)
def test_what_cannot_work_is_refused_at_once(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make(WatermarkStrategy.no_watermarks())


def test_alignment_is_kept() -> None:
    strategy = WatermarkStrategy.no_watermarks().with_watermark_alignment("g", Duration.of_seconds(1), 500)
    assert strategy.alignment == WatermarkAlignment("g", 1000)


def test_alignment_needs_a_group() -> None:
    with pytest.raises(ConfigurationError, match="name of a group"):
        WatermarkStrategy.no_watermarks().with_watermark_alignment("", Duration.of_seconds(1))
