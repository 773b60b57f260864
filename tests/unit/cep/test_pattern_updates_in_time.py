"""Patterns that change meet the events of their own time, however the streams are read."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from headwater.cep import CEP
from headwater.common import Configuration, Duration, WatermarkStrategy
from headwater.common.output_tag import OutputTag
from headwater.datastream import StreamExecutionEnvironment
from headwater.testing import in_process
from tests.unit.cep.test_dynamic_patterns import Feeding, flat, harness, key_of, pattern, update

REJECTED = OutputTag("rejected")
OUT_OF_ORDER_MS = 40


def updates_in_time() -> list[tuple[int, Any]]:
    """(when it holds, update): patterns that come, change, go, and one that is too late."""
    return [
        (0, update("p", 1)),
        (100, update("p", 2, second="kind == 'c'")),
        (100, update("q", 1, first="kind == 'b'", second="kind == 'c'")),
        (150, update("p", 2)),
        (220, {"id": "q", "version": 2, "remove": True}),
        (300, {"id": "p", "version": 3, "remove": True}),
        (360, {"id": "p", "version": 4, "pattern": pattern("kind == 'c'", "kind == 'a'", None)}),
        (420, {"id": "p", "version": 5, "remove": True}),
    ]


def events_in_time() -> list[dict[str, Any]]:
    rng = random.Random(3)
    return [{"key": rng.randrange(4), "kind": rng.choice("abc"), "n": n * 5} for n in range(90)]


def shuffled(records: list[Any], time_of: Any, seed: int) -> list[Any]:
    """As they may come if they are out of order by a little."""
    rng = random.Random(seed)
    return sorted(records, key=lambda record: time_of(record) + rng.randrange(OUT_OF_ORDER_MS))


def found(
    seed: int | None = None, parallelism: int = 1, backend: str = "hashmap", finish: bool = False, timed: bool = True
) -> Counter[Any]:
    conf = Configuration()
    conf.set_string("state.backend.type", backend)
    env = StreamExecutionEnvironment.get_execution_environment(conf)
    env.set_parallelism(parallelism)
    updates, events = updates_in_time(), events_in_time()
    if seed is not None:
        updates = shuffled(updates, lambda pair: pair[0], seed)
        events = shuffled(events, lambda event: event["n"], seed)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(OUT_OF_ORDER_MS))
    stream = env.from_collection(events).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda event, _: event["n"])
    )
    patterns = (
        env.from_collection(updates)
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda pair, _: pair[0]))
        .map(lambda pair: pair[1])
    )
    matched = CEP.dynamic_patterns(
        stream.key_by(key_of), patterns, partial_matches="finish" if finish else "drop"
    ).side_output_rejected_patterns(REJECTED)
    results = matched.select(flat)
    rejected = results.get_side_output(REJECTED).map(lambda pair: ("rejected", pair[0]["id"], pair[0]["version"]))
    with results.union(rejected).execute_and_collect() as collected:
        return Counter(collected)


def by_hand(finish: bool) -> Counter[Any]:
    """The same, one event after the other, each update right before the events of its time."""
    with harness(finish) as here:
        updates = updates_in_time()
        for event in events_in_time():
            while updates and updates[0][0] <= event["n"]:
                here.process_element2(updates.pop(0)[1])
            here.process_element1(event, event["n"])
            here.process_watermark(event["n"])
        rejected = [("rejected", pair[0]["id"], pair[0]["version"]) for pair in here.get_side_output(REJECTED)]
        return Counter(here.get_output()) + Counter(rejected)


@pytest.mark.parametrize("finish", [False, True])
def test_neither_epochs_nor_the_order_of_arrival_matter(finish: bool) -> None:
    expected = by_hand(finish)
    assert expected[("rejected", "p", 2)] == 1 and len({version[:2] for version in expected}) == 5
    for epoch_records, seed in ((1000, None), (1, None), (3, None), (1, 1), (2, 2), (5, 3), (1000, 4)):
        with in_process(epoch_records=epoch_records):
            assert found(seed, finish=finish) == expected, (epoch_records, seed)


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_waiting_updates_survive_a_lost_slot_and_a_rescale(backend: str) -> None:
    expected = by_hand(False)
    with in_process(epoch_records=3) as here:
        here.kill_slot("Dynamic CEP", epoch=2)
        here.fail_attempt(epoch=3)
        here.kill_slot("Dynamic CEP", epoch=20)
        rescaled: list[Any] = []
        here.call(lambda job: rescaled.append(job.rescale(2)), epoch=4)
        assert found(5, 3, backend) == expected
    assert rescaled[0].result(0) > 0


def test_updates_wait_for_their_time_and_come_before_its_events() -> None:
    with harness() as here:
        here.process_element2(update("p", 1), 10)
        here.process_elements1(
            [{"key": "k", "kind": kind, "n": n} for n, kind in ((9, "a"), (10, "a"), (11, "b"))], [9, 10, 11]
        )
        here.process_watermark(11)
        assert here.get_output() == [("p", 1, 10, 11)]


def test_versions_of_one_time_are_applied_in_their_order() -> None:
    with harness() as here:
        here.process_elements2([update("p", 2, second="kind == 'c'"), update("p", 1)], [5, 5])
        feed = Feeding(here, 10)
        feed("a", "b", "c")
        assert here.get_output() == [("p", 2, 11, 13)] and not here.get_side_output(REJECTED)


def test_an_update_that_waits_is_restored() -> None:
    with harness() as here:
        here.process_element2(update("p", 1), 10)
        taken = here.snapshot()
    with harness().restore(taken) as again:
        feed = Feeding(again, 8)
        feed("a", "a", "b")
        assert again.get_output() == [("p", 1, 10, 11)]


def test_a_late_update_holds_at_once() -> None:
    with harness() as here:
        feed = Feeding(here, 10)
        feed("a")
        here.process_element2(update("p", 1), 5)
        feed("a", "b")
        assert here.get_output() == [("p", 1, 12, 13)]


def test_a_stream_of_patterns_without_time_does_not_hold_events_back() -> None:
    """It does not end before the matches are there."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    def patterns_for_ever() -> Any:
        yield update("p", 1)
        version = 1
        while True:
            version += 1
            yield {"id": "other", "version": version, "pattern": pattern("kind == 'x'", "kind == 'y'")}

    def events_for_ever() -> Any:
        n = 0
        while True:
            n += 1
            yield {"key": "k", "kind": "ab"[n % 2], "n": n}

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event["n"])
    events = env.add_source(events_for_ever).assign_timestamps_and_watermarks(strategy).key_by(key_of)
    matches = CEP.dynamic_patterns(events, env.add_source(patterns_for_ever)).select(lambda match: match.pattern_id)
    with in_process(epoch_records=10), matches.execute_and_collect() as collected:
        assert next(iter(collected)) == "p"
