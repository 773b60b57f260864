"""Timestamps and watermarks of one split: generators, idleness, bad timestamps, restore."""

from __future__ import annotations

import pickle
import random
from datetime import timedelta
from typing import Any

import pytest

from headwater.common.errors import ConfigurationError, TimestampError, UserCodeError
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.common.output_tag import BAD_TIMESTAMPS
from headwater.common.watermark_strategy import (
    TimestampAssigner,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from headwater.operators.timestamps import TimestampsAndWatermarksOperator
from headwater.testing import EmittedIdle, EmittedWatermark, ManualClock, OneInputOperatorHarness, Record

NOW = 1_700_000_000_000
DAY = 24 * 60 * 60 * 1000


def second(value: Any, record_timestamp: int) -> Any:
    return value[1]


def monotonous() -> WatermarkStrategy:
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(second)


def bounded(delay_ms: int) -> WatermarkStrategy:
    delay = timedelta(milliseconds=delay_ms)
    return WatermarkStrategy.for_bounded_out_of_orderness(delay).with_timestamp_assigner(second)


def harness_of(strategy: WatermarkStrategy, *, clock: ManualClock | None = None, **options: Any) -> Any:
    operator = TimestampsAndWatermarksOperator(strategy, **options)
    return OneInputOperatorHarness(operator, name="Timestamps", clock=clock)


class AtMarks(WatermarkGenerator):
    """Punctuated: a record ("mark", t) is a watermark t."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event[0] == "mark":
            output.emit_watermark(event[1])

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class EveryOther(WatermarkGenerator):
    """Periodic: the highest timestamp, at every second call. Has state of its own."""

    def __init__(self) -> None:
        self.highest = 0
        self.calls = 0

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self.highest = max(self.highest, event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        self.calls += 1
        if self.calls % 2 == 0:
            output.emit_watermark(self.highest)


# -- built-in strategies ----------------------------------------------------------------------------------------------


def test_monotonous_timestamps_trail_by_one() -> None:
    harness = harness_of(monotonous())
    harness.process_elements([("a", 10), ("b", 20)])
    harness.process_elements([("c", 20)])
    harness.process_elements([("d", 30)])
    assert harness.get_steps() == [
        Record(("a", 10), 10),
        Record(("b", 20), 20),
        EmittedWatermark(19),
        Record(("c", 20), 20),
        Record(("d", 30), 30),
        EmittedWatermark(29),
    ]


def test_bounded_out_of_orderness_trails_by_the_delay_and_never_goes_back() -> None:
    harness = harness_of(bounded(5))
    for timestamp in (100, 97, 20, 103):
        harness.process_element(("a", timestamp))
    assert harness.get_watermarks() == [94, 97]


def test_no_watermarks_but_timestamps() -> None:
    harness = harness_of(WatermarkStrategy.no_watermarks().with_timestamp_assigner(second))
    harness.process_element(("a", 7))
    harness.end_input()
    assert harness.get_output_with_timestamps() == [(("a", 7), 7)]
    assert harness.get_watermarks() == [MAX_WATERMARK]


def test_without_an_assigner_records_keep_what_they_have() -> None:
    harness = harness_of(WatermarkStrategy.for_monotonous_timestamps())
    harness.process_elements(["a", "b"], [5, None])
    harness.process_elements(["c"])
    assert harness.get_output_with_timestamps() == [("a", 5), ("b", None), ("c", None)]
    assert harness.get_watermarks() == [4]


def test_the_assigner_sees_the_timestamp_that_the_record_had() -> None:
    class Later(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return value if record_timestamp == MIN_WATERMARK else record_timestamp + 1_000

    harness = harness_of(WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Later()))
    harness.process_elements([1, 2], [5, None])
    harness.process_elements([3])
    assert harness.get_output_with_timestamps() == [(1, 1_005), (2, 2), (3, 3)]


def test_watermarks_from_upstream_end_here_but_the_last() -> None:
    harness = harness_of(monotonous())
    harness.process_element(("a", 10))
    harness.process_watermark(1_000)
    harness.process_idle()
    assert harness.get_watermarks() == [9]
    assert not harness.is_idle()
    harness.end_input()
    assert harness.get_watermarks() == [9, MAX_WATERMARK]


def test_an_assigner_that_fails_is_the_users_error() -> None:
    harness = harness_of(monotonous())
    with pytest.raises(UserCodeError, match="IndexError") as caught:
        harness.process_elements([("a", 1), ("b",), ("c", 3)])
    assert caught.value.record_repr == "('b',)"


# -- custom generators ------------------------------------------------------------------------------------------------


def test_a_punctuated_generator_cuts_the_batch_where_it_emits() -> None:
    harness = harness_of(WatermarkStrategy.for_generator(AtMarks).with_timestamp_assigner(second))
    harness.process_elements([("a", 1), ("mark", 5), ("b", 7), ("mark", 3), ("mark", 8), ("c", 9)])
    assert harness.get_steps() == [
        Record(("a", 1), 1),
        Record(("mark", 5), 5),
        EmittedWatermark(5),
        Record(("b", 7), 7),
        Record(("mark", 3), 3),  # a watermark that goes back is ignored
        Record(("mark", 8), 8),
        EmittedWatermark(8),
        Record(("c", 9), 9),
    ]


def test_a_periodic_generator_is_asked_after_every_batch_and_at_the_end_of_the_epoch() -> None:
    harness = harness_of(WatermarkStrategy.for_generator(EveryOther).with_timestamp_assigner(second))
    harness.open()  # first call: the epoch's time
    harness.process_element(("a", 10))  # second
    assert harness.get_watermarks() == [10]
    harness.process_element(("a", 20))  # third
    assert harness.get_watermarks() == [10]
    harness.snapshot()  # fourth: the epoch ends
    assert harness.get_watermarks() == [10, 20]


def test_a_custom_generator_works_without_timestamps() -> None:
    harness = harness_of(WatermarkStrategy.for_generator(AtMarks))
    harness.process_elements([("a", 1), ("mark", 5)])
    assert harness.get_output_with_timestamps() == [(("a", 1), None), (("mark", 5), None)]
    assert harness.get_watermarks() == [5]


def test_a_generator_may_say_that_it_is_idle() -> None:
    class Sleepy(AtMarks):
        def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
            super().on_event(event, event_timestamp, output)
            if event[0] == "sleep":
                output.mark_idle()

    harness = harness_of(WatermarkStrategy.for_generator(Sleepy))
    harness.process_element(("sleep", 0))
    assert harness.is_idle()
    harness.process_element(("a", 0))
    assert not harness.is_idle()


def test_a_generator_that_fails_is_the_users_error() -> None:
    class Broken(AtMarks):
        def on_periodic_emit(self, output: WatermarkOutput) -> None:
            raise RuntimeError("no idea")

    harness = harness_of(WatermarkStrategy.for_generator(Broken))
    with pytest.raises(UserCodeError, match="no idea"):
        harness.process_element(("a", 1))

    class Vague(AtMarks):
        def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
            output.emit_watermark("soon")  # type: ignore[arg-type]

    with pytest.raises(UserCodeError, match="'soon'"):
        harness_of(WatermarkStrategy.for_generator(Vague)).process_element(("a", 1))


def test_a_supplier_must_make_generators() -> None:
    with pytest.raises(ConfigurationError, match="on_event"):
        harness_of(WatermarkStrategy.for_generator(lambda: 42)).open()  # type: ignore[arg-type,return-value]


# -- idleness ---------------------------------------------------------------------------------------------------------


def test_a_silent_split_becomes_idle_and_wakes_up_with_the_next_record() -> None:
    harness = harness_of(monotonous().with_idleness(timedelta(seconds=1)), clock=ManualClock(NOW))
    harness.process_element(("a", 10))
    harness.advance_processing_time(999)
    assert not harness.is_idle()
    harness.advance_processing_time(1)
    assert harness.is_idle()
    harness.process_element(("b", 20))
    assert harness.get_steps()[-3:] == [EmittedIdle(False), Record(("b", 20), 20), EmittedWatermark(19)]


def test_a_split_that_never_had_a_record_becomes_idle_too() -> None:
    harness = harness_of(monotonous().with_idleness(timedelta(seconds=1)), clock=ManualClock(NOW))
    harness.open()
    assert not harness.is_idle()
    harness.advance_processing_time(1_000)
    assert harness.is_idle()


def test_idleness_survives_a_restore() -> None:
    strategy = monotonous().with_idleness(timedelta(seconds=1))
    before = harness_of(strategy, clock=ManualClock(NOW))
    before.process_element(("a", 10))
    snapshot = before.snapshot()
    after = harness_of(strategy, clock=ManualClock(NOW + 1_000)).restore(snapshot)
    after.open()
    assert after.is_idle()


# -- state ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [monotonous(), bounded(3)], ids=["monotonous", "bounded"])
def test_the_watermark_survives_a_restore_and_does_not_go_back(strategy: WatermarkStrategy) -> None:
    before = harness_of(strategy)
    before.process_element(("a", 100))
    emitted = before.get_watermarks()[-1]
    after = harness_of(strategy).restore(pickle.loads(pickle.dumps(before.snapshot())))
    after.process_element(("late", 50))
    assert after.get_watermarks() == []
    after.process_element(("b", 101))
    assert after.get_watermarks() == [emitted + 1]


def test_a_custom_generators_own_state_survives_a_restore() -> None:
    strategy = WatermarkStrategy.for_generator(EveryOther).with_timestamp_assigner(second)
    before = harness_of(strategy)
    before.process_element(("a", 10))
    before.process_element(("b", 20))
    snapshot = before.snapshot()
    after = harness_of(strategy).restore(snapshot)
    after.open()  # call number five
    after.process_element(("c", 15))  # six: emits the highest, but that was emitted already
    assert after.get_watermarks() == []
    after.process_element(("d", 30))
    after.process_element(("e", 25))
    assert after.get_watermarks() == [30]


def test_a_failed_epoch_takes_its_watermarks_back() -> None:
    harness = harness_of(monotonous())
    harness.process_element(("a", 10))
    harness.snapshot()
    harness.process_element(("wrong", 1_000))
    harness.fail_epoch()
    harness.process_element(("b", 20))
    assert harness.get_watermarks() == [9, 19]


def test_another_strategy_under_the_same_uid_starts_anew_but_keeps_the_watermark() -> None:
    before = harness_of(monotonous())
    before.process_element(("a", 100))
    after = harness_of(WatermarkStrategy.for_generator(AtMarks).with_timestamp_assigner(second))
    after.restore(before.snapshot())
    after.process_elements([("mark", 50), ("mark", 150)])
    assert after.get_watermarks() == [150]


# -- pipeline.auto-watermark-interval ---------------------------------------------------------------------------------


def test_with_an_interval_event_time_stands_still_between_two_epochs_that_are_so_far_apart() -> None:
    harness = harness_of(monotonous(), clock=ManualClock(NOW), watermark_interval_ms=1_000)
    harness.process_element(("a", 10))
    harness.process_element(("b", 20))
    assert harness.get_watermarks() == [9, 19]
    harness.snapshot()
    harness.advance_processing_time(999)
    harness.process_element(("c", 30))
    assert harness.get_watermarks() == [9, 19]
    assert harness.operator.next_processing_timer() == NOW + 1_000
    harness.snapshot()
    harness.advance_processing_time(1)  # no record is needed
    assert harness.get_watermarks() == [9, 19, 29]
    assert harness.operator.next_processing_timer() is None


def test_the_interval_goes_on_after_a_restore_and_a_failed_epoch() -> None:
    before = harness_of(monotonous(), clock=ManualClock(NOW), watermark_interval_ms=1_000)
    before.process_element(("a", 10))
    after = harness_of(monotonous(), clock=ManualClock(NOW + 500), watermark_interval_ms=1_000)
    after.restore(before.snapshot())
    after.process_element(("b", 20))
    assert after.get_watermarks() == []
    after.snapshot()
    after.advance_processing_time(500)
    assert after.get_watermarks() == [19]
    after.fail_epoch()
    assert after.get_watermarks() == [19]


def test_another_interval_or_none_reads_the_state_of_the_old_one() -> None:
    before = harness_of(monotonous(), clock=ManualClock(NOW), watermark_interval_ms=1_000)
    before.process_element(("a", 10))
    without = harness_of(monotonous(), clock=ManualClock(NOW + 1)).restore(before.snapshot())
    without.process_element(("b", 20))
    again = harness_of(monotonous(), clock=ManualClock(NOW + 2), watermark_interval_ms=1_000)
    again.restore(without.snapshot())
    again.process_element(("c", 30))
    assert without.get_watermarks() == [19] and again.get_watermarks() == [29]


def test_with_an_interval_of_0_event_time_stands_still_until_the_end() -> None:
    harness = harness_of(monotonous(), clock=ManualClock(NOW), watermark_interval_ms=0)
    harness.process_element(("a", 10))
    harness.advance_processing_time(DAY)
    assert harness.get_watermarks() == [] and harness.operator.next_processing_timer() is None
    harness.end_input()
    assert harness.get_watermarks() == [MAX_WATERMARK]


def test_a_generator_is_asked_once_per_interval_but_always_heard() -> None:
    generated = WatermarkStrategy.for_generator(AtMarks).with_timestamp_assigner(second)
    marks = harness_of(generated, watermark_interval_ms=0)
    marks.process_elements([("mark", 50), ("a", 60)])
    assert marks.get_watermarks() == [50]
    periodic = WatermarkStrategy.for_generator(EveryOther).with_timestamp_assigner(second)
    harness = harness_of(periodic, clock=ManualClock(NOW), watermark_interval_ms=1_000)
    harness.process_element(("a", 10))  # asked when the epoch began, and for the second time after the batch
    harness.snapshot()  # the third time
    harness.advance_processing_time(500)
    harness.process_element(("b", 20))
    assert harness.get_watermarks() == [10]
    assert harness.operator.next_processing_timer() == NOW + 1_000


# -- bad timestamps ---------------------------------------------------------------------------------------------------

BAD = [
    (None, "is None"),
    ("12", "is a str"),
    (True, "is a bool"),
    (-1, "negative"),
    (1.5, "not a whole number"),
    (float("nan"), "not a whole number"),
    (float("inf"), "not a whole number"),
    (NOW + 366 * DAY, "366 days ahead"),
    (NOW * 1_000, "microseconds"),
]


@pytest.mark.parametrize(("timestamp", "problem"), BAD, ids=[repr(timestamp) for timestamp, _ in BAD])
@pytest.mark.parametrize("strategy", [monotonous(), bounded(0), None], ids=["monotonous", "bounded", "custom"])
def test_a_bad_timestamp_fails_and_names_all(timestamp: Any, problem: str, strategy: WatermarkStrategy | None) -> None:
    strategy = strategy or WatermarkStrategy.for_generator(AtMarks).with_timestamp_assigner(second)
    harness = harness_of(strategy, clock=ManualClock(NOW), source_name="payments")
    with pytest.raises(TimestampError, match=problem) as caught:
        harness.process_elements([("good", NOW), ("bad", timestamp), ("good", NOW + 1)])
    text = str(caught.value)
    assert "payments" in text
    assert "Timestamps" in text
    assert "'bad'" in text
    assert repr(timestamp) in text
    assert harness.get_watermarks() == []


@pytest.mark.parametrize(("timestamp", "problem"), BAD, ids=[repr(timestamp) for timestamp, _ in BAD])
def test_bad_timestamps_may_go_to_a_side_output_and_never_touch_the_watermark(timestamp: Any, problem: str) -> None:
    harness = harness_of(monotonous(), clock=ManualClock(NOW), bad_timestamps="side-output")
    harness.process_elements([("good", 10), ("bad", timestamp), ("good", 20)])
    assert harness.get_output_with_timestamps() == [(("good", 10), 10), (("good", 20), 20)]
    assert harness.get_watermarks() == [19]
    (bad,) = harness.get_side_output(BAD_TIMESTAMPS)
    assert bad[0] == "bad"


def test_a_batch_of_only_bad_timestamps_emits_nothing_else() -> None:
    harness = harness_of(monotonous(), bad_timestamps="side-output")
    harness.process_elements([("bad", None), ("bad", -5)])
    assert harness.get_output() == []
    assert harness.get_watermarks() == []
    assert len(harness.get_side_output(BAD_TIMESTAMPS)) == 2


def test_whole_floats_and_numpy_numbers_are_timestamps() -> None:
    numpy = pytest.importorskip("numpy")
    harness = harness_of(monotonous())
    found = [10.0, numpy.int64(20), numpy.int32(30), numpy.float64(40), numpy.float32(50)]
    harness.process_elements([("a", timestamp) for timestamp in found])
    stamps = [timestamp for _, timestamp in harness.get_output_with_timestamps()]
    assert stamps == [10, 20, 30, 40, 50]
    assert {type(stamp) for stamp in stamps} == {int}
    assert harness.get_watermarks() == [49]


def test_a_source_cannot_push_the_watermark_away_either() -> None:
    harness = harness_of(WatermarkStrategy.for_monotonous_timestamps(), clock=ManualClock(NOW))
    with pytest.raises(TimestampError, match="ahead"):
        harness.process_elements(["a", "b"], [NOW, NOW + 400 * DAY])


def test_how_far_ahead_is_too_far_can_be_set() -> None:
    harness = harness_of(monotonous(), clock=ManualClock(NOW), max_ahead_ms=1_000)
    harness.process_element(("a", NOW + 1_000))
    with pytest.raises(TimestampError, match="ahead"):
        harness.process_element(("b", NOW + 1_001))


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"'ignore'.*'fail'"):
        TimestampsAndWatermarksOperator(monotonous(), bad_timestamps="ignore")


def test_the_fast_path_and_the_slow_path_agree() -> None:
    """One odd timestamp sends a batch down the slow path; the rest of it must come out the same."""
    stamps = random.Random(7).choices(range(1_000), k=200)
    fast, slow = harness_of(bounded(10)), harness_of(bounded(10), bad_timestamps="side-output")
    for start in range(0, 200, 20):
        part = [("a", stamp) for stamp in stamps[start : start + 20]]
        fast.process_elements(part)
        slow.process_elements([*part, ("odd", None)])
    assert fast.get_steps() == [step for step in slow.get_steps() if getattr(step, "tag_id", None) is None]
