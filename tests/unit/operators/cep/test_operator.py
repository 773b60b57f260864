"""The operator: order, late events, time-outs, epochs that fail, restores, both backends, errors."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from headwater.cep import CEP, AfterMatchSkipStrategy, Pattern, PatternProcessFunction
from headwater.common import Configuration, Duration, WatermarkStrategy
from headwater.common.errors import PatternError, StateMigrationError, TimestampError, UserCodeError
from headwater.common.output_tag import OutputTag
from headwater.datastream import StreamExecutionEnvironment
from headwater.operators.cep.operator import CepOperator, CepSettings
from headwater.testing import in_process
from headwater.testing.operator_harness import OperatorHarness

LATE = OutputTag("late")
OUT_OF_TIME = OutputTag("out of time")


def key_of(event: Any) -> Any:
    return event[0]


class Both(PatternProcessFunction):
    """Matches as they are; time-outs to a side output."""

    def process_match(self, match: Any, ctx: Any) -> Any:
        yield tuple(event[1] for events in match.values() for event in events)

    def process_timed_out_match(self, match: Any, ctx: Any) -> Any:
        ctx.output(OUT_OF_TIME, (tuple(event[1] for events in match.values() for event in events), ctx.timestamp()))


def small_then_large() -> Pattern:
    small = Pattern.begin("small").where(lambda event: event[1] < 10)
    return small.followed_by("large").where(lambda event: event[1] >= 10).within(100)


def harness(pattern: Pattern | None = None, **settings: Any) -> OperatorHarness:
    steps = (pattern or small_then_large()).steps()
    return OperatorHarness(CepOperator(key_of, steps, Both(), CepSettings(late_tag="late", **settings)), keyed=True)


def feed(here: OperatorHarness, *events: tuple[Any, ...]) -> None:
    """Events are (key, value, timestamp)."""
    here.open()
    here.operator.process_batch([event[:2] for event in events], [event[2] for event in events])


def results(here: OperatorHarness) -> list[Any]:
    return list(here.get_output())


def test_events_are_matched_in_the_order_of_their_timestamps() -> None:
    with harness() as here:
        feed(here, ("k", 50, 20), ("k", 1, 10), ("k", 60, 5))
        assert results(here) == []
        here.process_watermark(30)
        assert results(here) == [(1, 50)]


def test_an_event_on_the_watermark_is_late() -> None:
    with harness() as here:
        here.process_watermark(30)
        feed(here, ("k", 1, 30), ("k", 2, 31), ("k", 99, 29), ("k", 50, 40))
        here.process_watermark(50)
        assert results(here) == [(2, 50)]
        assert here.get_side_output(LATE) == [("k", 1), ("k", 99)]


def test_a_partial_match_runs_out_of_time_without_another_event() -> None:
    with harness() as here:
        feed(here, ("k", 1, 10), ("k", 2, 20), ("other", 3, 15))
        here.process_watermark(109)
        assert here.get_side_output(OUT_OF_TIME) == []
        here.process_watermark(119)
        assert here.get_side_output(OUT_OF_TIME) == [((1,), 110), ((3,), 115)]
        here.process_watermark(120)
        assert here.get_side_output(OUT_OF_TIME)[-1] == ((2,), 120)
        assert here._keyed_backend is not None and here._keyed_backend.number_of_entries() == 0
        assert len(here._keyed_backend.event_timers) == 0


def test_keys_that_have_nothing_to_do_run_out_of_time_in_the_order_of_time() -> None:
    with harness() as here:
        feed(here, ("a", 1, 10), ("b", 2, 20), ("b", 3, 130), ("a", 4, 200))
        here.process_watermark(500)
        assert here.get_side_output(OUT_OF_TIME) == [((1,), 110), ((2,), 120), ((3,), 230), ((4,), 300)]


def test_an_error_at_the_end_of_a_time_is_told_once() -> None:
    class Failing(Both):
        def process_timed_out_match(self, match: Any, ctx: Any) -> Any:
            raise ValueError("too late")

    operator = CepOperator(key_of, small_then_large().steps(), Failing(), CepSettings())
    with OperatorHarness(operator, keyed=True) as here, pytest.raises(UserCodeError, match="too late") as raised:
        feed(here, ("a", 1, 10), ("b", 2, 200))
        here.process_watermark(300)
    assert "<end of time at 110 of key 'a'>" in raised.value.record_repr


def test_a_comparator_orders_events_of_one_timestamp() -> None:
    with harness(comparator=lambda one, two: one[1] - two[1]) as here:
        feed(here, ("k", 50, 10), ("k", 1, 10))
        here.process_watermark(10)
        assert results(here) == [(1, 50)]


@pytest.mark.parametrize("comparator", [None, lambda one, two: one[1] - two[1]])
def test_processing_time(comparator: Any) -> None:
    with harness(event_time=False, comparator=comparator) as here:
        here.set_processing_time(1_000)
        here.operator.process_batch([("k", 1)], None)
        here.snapshot()
        here.set_processing_time(1_050)
        here.operator.process_batch([("k", 20), ("k", 2)], None)
        here.snapshot()
        assert results(here) == ([(1, 20)] if comparator is None else [(1, 20), (2, 20)])
        here.set_processing_time(1_149)
        assert here.get_side_output(OUT_OF_TIME) == []
        here.set_processing_time(1_150)
        assert here.get_side_output(OUT_OF_TIME) == ([((2,), 1_150)] if comparator is None else [])


def test_a_failed_epoch_leaves_nothing_and_a_snapshot_keeps_all() -> None:
    with harness() as here:
        feed(here, ("k", 1, 10), ("k", 50, 40))
        here.process_watermark(20)
        taken = here.snapshot()
        feed(here, ("k", 60, 30))
        here.process_watermark(35)
        assert results(here) == [(1, 60)]
        here.fail_epoch()
        here.process_watermark(60)
        assert results(here) == [(1, 50)]
    with harness().restore(taken) as again:
        feed(again, ("k", 2, 25))
        again.process_watermark(60)
        assert sorted(results(again)) == [(1, 50), (2, 50)]


def test_a_pattern_with_other_steps_does_not_go_on_with_the_partial_matches() -> None:
    with harness() as here:
        feed(here, ("k", 1, 10))
        here.process_watermark(20)
        taken = here.snapshot()
    other = Pattern.begin("small").next("middle").next("large").within(100)
    with (
        harness(other).restore(taken) as again,
        pytest.raises(StateMigrationError, match="give the operator a new uid"),
    ):
        feed(again, ("k", 2, 30))
        again.process_watermark(40)


def test_a_match_that_would_skip_to_its_own_start() -> None:
    skip = AfterMatchSkipStrategy.skip_to_first("small")
    steps = Pattern.begin("small", skip.throw_exception_on_miss()).next("large")
    with harness(steps) as here, pytest.raises(PatternError, match="find the same match again"):
        feed(here, ("k", 1, 10), ("k", 2, 20))
        here.process_watermark(20)


def test_a_condition_that_raises_is_named() -> None:
    pattern = Pattern.begin("first").next("ratio").where(lambda event: 1 / event[1])
    with harness(pattern) as here, pytest.raises(UserCodeError, match="ZeroDivisionError") as raised:
        feed(here, ("k", 1, 10), ("k", 0, 20))
        here.process_watermark(20)
    assert "raised by a condition of step 'ratio'" in str(raised.value)
    assert "('k', 0)" in raised.value.record_repr


def test_an_event_without_a_timestamp() -> None:
    with harness() as here, pytest.raises(TimestampError, match="in_processing_time"):
        here.open()
        here.operator.process_batch([("k", 1)], None)


def test_matches_do_not_share_events_that_can_change() -> None:
    class Spoiling(PatternProcessFunction):
        def process_match(self, match: Any, ctx: Any) -> Any:
            yield [event["n"] for events in match.values() for event in events]
            for events in match.values():
                for event in events:
                    event["n"] = -1

    pattern = Pattern.begin("one").followed_by_any("two")
    operator = CepOperator(lambda event: 0, pattern.steps(), Spoiling(), CepSettings())
    with OperatorHarness(operator, keyed=True) as here:
        here.open()
        here.operator.process_batch([{"n": 1}, {"n": 2}, {"n": 3}], [1, 2, 3])
        here.process_watermark(3)
        assert results(here) == [[1, 2], [1, 3], [2, 3]]


def test_an_event_that_fits_nothing_writes_nothing() -> None:
    with harness() as here:
        feed(here, ("k", 1, 10))
        here.process_watermark(10)
        here.snapshot()
        feed(here, ("k", 5.5, 11), ("empty", 70, 12))  # 5.5 begins a second partial match; 70 begins none
        here.process_watermark(12)
        backend = here._keyed_backend
        assert backend is not None and "empty" not in backend.keys("cep-runs")
        delta = {section.name for section in backend.delta_sections()}
        assert {"cep-runs", "cep-entries", "cep-events"} <= delta
        here.snapshot()
        feed(here, ("empty", 70, 13))
        here.process_watermark(13)
        assert backend.delta_sections() == []


# -- whole jobs -------------------------------------------------------------------------------------------------------


def events_of(seed: int, count: int = 400) -> list[tuple[int, int, int]]:
    """(key, value, time), out of order by less than 20."""
    rng = random.Random(seed)
    return [(rng.randrange(12), rng.randrange(15), number * 3 + rng.randrange(20)) for number in range(count)]


def three_steps() -> Pattern:
    return (
        Pattern.begin("low", AfterMatchSkipStrategy.skip_past_last_event())
        .where(lambda event: event[1] < 5)
        .followed_by("mid")
        .where(lambda event, ctx: 5 <= event[1] < 10 and len(ctx.get_events_for_pattern("low")) == 1)
        .one_or_more()
        .not_followed_by("never")
        .where(lambda event: event[1] == 14)
        .followed_by("high")
        .where(lambda event: 10 <= event[1] < 14)
        .within(300)
    )


def run(events: list[Any], parallelism: int, backend: str = "hashmap", keyed: bool = True) -> Counter[Any]:
    settings = Configuration()
    settings.set_string("state.backend.type", backend)
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.set_parallelism(parallelism)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(25))
    stream = env.from_collection(events).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda event, _: event[2])
    )
    source = stream.key_by(lambda event: event[0]) if keyed else stream
    found = CEP.pattern(source, three_steps()).select(
        lambda match: tuple(event for part in match.values() for event in part),
        timed_out_tag=OUT_OF_TIME,
        timeout_function=lambda match, at: ("out of time", at, *(event for part in match.values() for event in part)),
    )
    with found.union(found.get_side_output(OUT_OF_TIME)).execute_and_collect() as collected:
        return Counter(collected)


@pytest.mark.parametrize("keyed", [True, False])
def test_the_result_does_not_depend_on_epochs_backends_parallelism_or_kills(keyed: bool) -> None:
    events = events_of(3)
    with in_process(epoch_records=10_000):
        expected = run(events, 1, keyed=keyed)
    assert sum(1 for result in expected if result[0] != "out of time") > 3
    assert any(result[0] == "out of time" for result in expected)
    for backend in ("hashmap", "rocksdb"):
        with in_process(epoch_records=7) as here:
            here.kill_slot("CEP", epoch=9)
            here.fail_attempt(epoch=20)
            assert run(events, 3, backend, keyed) == expected


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_rescale_in_the_middle_of_matches(backend: str) -> None:
    events = events_of(3)
    with in_process(epoch_records=10_000):
        expected = run(events, 1)
    rescaled: list[Any] = []
    with in_process(epoch_records=7) as here:
        for epoch, parallelism in ((6, 3), (14, 1), (22, 2)):
            here.call(lambda job, to=parallelism: rescaled.append(job.rescale(to)), epoch=epoch)
        assert run(events, 2, backend) == expected
    assert [each.result(0) > 0 for each in rescaled] == [True] * 3
