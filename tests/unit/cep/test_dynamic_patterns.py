"""Patterns that come, change and go while the job runs."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from headwater.cep import CEP, pattern_from_data
from headwater.cep.dynamic import PatternReader
from headwater.cep.pattern_stream import _Selecting
from headwater.common import Configuration, WatermarkStrategy
from headwater.common.errors import TypeMismatchError, UserCodeError
from headwater.common.output_tag import OutputTag
from headwater.datastream import StreamExecutionEnvironment
from headwater.operators.cep.dynamic import DynamicCepOperator
from headwater.operators.cep.operator import CepSettings
from headwater.testing import in_process
from headwater.testing.two_input_harness import TwoInputOperatorHarness

REJECTED = OutputTag("rejected")


def pattern(first: str, second: str, within: int | None = 1_000) -> dict[str, Any]:
    steps = [{"name": "one", "where": first}, {"followed_by": "two", "where": second}]
    return {"steps": steps} | ({} if within is None else {"within_ms": within})


def update(pattern_id: str, version: int, first: str = "kind == 'a'", second: str = "kind == 'b'") -> dict[str, Any]:
    return {"id": pattern_id, "version": version, "pattern": pattern(first, second)}


def flat(match: Any) -> Any:
    return match.pattern_id, match.version, *(event["n"] for events in match.values() for event in events)


def key_of(event: Any) -> Any:
    return event["key"]


def harness(finish: bool = False, functions: Any = None) -> TwoInputOperatorHarness:
    reader = PatternReader(functions or {})
    operator = DynamicCepOperator(
        key_of, reader.read, reader.steps, _Selecting(flat, "select"), CepSettings(), "rejected", finish
    )
    return TwoInputOperatorHarness(operator, (key_of, None))


class Feeding:
    """Events one after the other, each a millisecond later, each processed at once."""

    def __init__(self, here: TwoInputOperatorHarness, start: int = 0) -> None:
        self.here = here
        self.n = start

    def __call__(self, *kinds: str, key: str = "k") -> None:
        for kind in kinds:
            self.n += 1
            self.here.process_element1({"key": key, "kind": kind, "n": self.n}, self.n)
            self.here.process_watermark(self.n)


def test_patterns_are_added_replaced_and_removed() -> None:
    with harness() as here:
        feed = Feeding(here)
        feed("a", "b")
        here.process_element2(update("p", 1))
        feed("a", "b")
        assert here.get_output() == [("p", 1, 3, 4)]
        feed("a")
        here.process_element2(json.dumps(update("p", 2, second="kind == 'c'")))
        feed("b", "c", "a", "c")  # the partial match of version 1 is dropped
        assert here.get_output()[1:] == [("p", 2, 8, 9)]
        feed("a")
        here.process_element2({"id": "p", "version": 3, "remove": True})
        feed("c", "a", "c")
        assert len(here.get_output()) == 2
        assert here.num_keyed_state_entries() == 0 and here.num_event_time_timers() == 0


def test_partial_matches_of_a_replaced_version_are_finished() -> None:
    with harness(finish=True) as here:
        feed = Feeding(here)
        here.process_element2(update("p", 1))
        feed("a")
        here.process_element2(update("p", 2, first="kind == 'x'"))
        feed("a", "x", "b")
        assert sorted(here.get_output()) == [("p", 1, 1, 4), ("p", 2, 3, 4)]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ("no json", "no JSON"),
        (7, "expected an object"),
        ({"id": "p", "version": 1, "pattern": {}, "more": 1}, "expected an object"),
        ({"id": "", "version": 1, "remove": True}, "'id' must be a text"),
        ({"id": "p", "version": "1", "remove": True}, "whole number"),
        ({"id": "p", "version": 9}, "either 'pattern'"),
        ({"id": "p", "version": 9, "pattern": {}, "remove": True}, "either 'pattern'"),
        ({"id": "p", "version": 9, "pattern": pattern("kind = 3", "x")}, "cannot be read"),
        ({"id": "p", "version": 1, "pattern": pattern("kind == 3", "x == 1")}, "comes too late"),
    ],
)
def test_rubbish_goes_aside_with_the_reason_and_changes_nothing(record: Any, said: str) -> None:
    with harness() as here:
        feed = Feeding(here)
        here.process_element2(update("p", 1))
        here.process_element2(record)
        ((rejected, reason),) = here.get_side_output(REJECTED)
        assert rejected == record and said in reason
        feed("a", "b")
        assert here.get_output() == [("p", 1, 1, 2)]


def test_a_failed_epoch_takes_its_patterns_with_it_and_a_restore_brings_them_back() -> None:
    with harness() as here:
        feed = Feeding(here)
        here.process_element2(update("p", 1))
        feed("a")
        taken = here.snapshot()
        here.process_element2({"id": "p", "version": 2, "remove": True})
        here.process_element2(update("q", 1))
        here.fail_epoch()
        feed.n = 1
        feed("b", "a", "b")
        assert here.get_output() == [("p", 1, 1, 2), ("p", 1, 3, 4)]
    with harness().restore(taken) as again:
        Feeding(again, 1)("b")
        assert again.get_output() == [("p", 1, 1, 2)]


def test_what_is_removed_leaves_nothing_in_keys_that_are_never_met_again() -> None:
    with harness() as here:
        feed = Feeding(here)
        for name in "pq":
            here.process_element2({"id": name, "version": 1, "pattern": pattern("kind == 'a'", "kind == 'b'", None)})
        for key in ("k", "l"):
            feed("a", "a", key=key)
        here.process_element2({"id": "p", "version": 2, "remove": True})
        here.process_element2({"id": "q", "version": 2, "remove": True})
        assert here.num_keyed_state_entries() == 0


def bad(event: Any) -> bool:
    return bool(event["size"] > 3)


def test_a_first_condition_that_raises_is_named() -> None:
    steps = [{"name": "one", "where": {"function": "bad"}}, {"followed_by": "two", "where": "kind == 'b'"}]
    with harness(functions={"bad": bad}) as here:
        here.process_element2({"id": "p", "version": 1, "pattern": {"steps": steps}})
        with pytest.raises(UserCodeError, match="step 'one'"):
            Feeding(here)("a")


def test_a_first_step_of_several_events() -> None:
    steps = [{"name": "one", "where": "kind == 'a'", "times": 2}, {"next": "two", "where": "kind == 'b'"}]
    with harness() as here:
        here.process_element2({"id": "p", "version": 1, "pattern": {"steps": steps}})
        here.process_element2(update("q", 1))
        Feeding(here)("a", "c", "a", "b")
        assert sorted(here.get_output()) == [("p", 1, 1, 3, 4), ("q", 1, 1, 4), ("q", 1, 3, 4)]


def test_time_runs_out_for_each_pattern_and_for_removed_ones() -> None:
    with harness() as here:
        feed = Feeding(here)
        here.process_element2(update("p", 1))
        here.process_element2(update("q", 1))
        feed("a")
        here.process_element2({"id": "q", "version": 2, "remove": True})
        here.process_watermark(5_000)
        assert here.num_keyed_state_entries() == 0 and here.num_event_time_timers() == 0


def test_many_patterns_find_what_each_finds_alone() -> None:
    rng = random.Random(5)
    firsts = [
        "kind == 'a'",
        "kind == 'b' and size > 3",
        "size > 5",
        "size == 2",
        "'c' == kind",
        "missing == 1",
        "size >= 0",
    ]
    seconds = ["size > last(one.size)", "kind == 'c'", "kind != 'a' and size < 5"]
    updates = [update(f"p{n}", 1, rng.choice(firsts), rng.choice(seconds)) for n in range(60)]
    events = [{"key": rng.randrange(3), "kind": rng.choice("abc"), "size": rng.randrange(9)} for _ in range(150)]
    events = [event | {"n": number} for number, event in enumerate(events)]

    def found(chosen: list[Any]) -> Counter[Any]:
        with harness() as here:
            here.process_elements2(chosen)
            here.process_elements1(events, list(range(len(events))))
            here.process_watermark(1 << 40)
            return Counter(here.get_output())

    alone = sum((found([each]) for each in updates), Counter())
    assert found(updates) == alone and alone.total() > 500


def test_a_pattern_of_the_stream_finds_what_the_same_pattern_finds() -> None:
    rng = random.Random(6)
    events = [{"key": rng.randrange(9), "kind": rng.choice("abc"), "n": n} for n in range(600)]

    def run(dynamic: bool, parallelism: int, backend: str) -> Counter[Any]:
        conf = Configuration()
        conf.set_string("state.backend.type", backend)
        env = StreamExecutionEnvironment.get_execution_environment(conf)
        env.set_parallelism(parallelism)
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event["n"])
        stream = env.from_collection(events).assign_timestamps_and_watermarks(strategy).key_by(key_of)
        if dynamic:
            patterns = env.from_collection([update("p", 1), "rubbish"])
            matched = CEP.dynamic_patterns(stream, patterns).side_output_rejected_patterns(REJECTED)
            results = matched.select(lambda match: flat(match)[2:])
            results = results.union(results.get_side_output(REJECTED).map(lambda pair: pair[0]))
        else:
            one = pattern_from_data(update("p", 1)["pattern"])
            results = CEP.pattern(stream, one).select(
                lambda match: tuple(e["n"] for part in match.values() for e in part)
            )
        with results.execute_and_collect() as collected:
            return Counter(collected)

    with in_process():
        expected = run(False, 1, "hashmap")
    for backend in ("hashmap", "rocksdb"):
        with in_process(epoch_records=20) as here:
            here.kill_slot("Dynamic CEP", epoch=7)
            rescaled: list[Any] = []
            here.call(lambda job, asked=rescaled: asked.append(job.rescale(2)), epoch=12)
            assert run(True, 3, backend) == expected + Counter(["rubbish"])
        assert rescaled[0].result(0) > 0


def test_what_is_no_stream_of_patterns() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_collection([1])
    with pytest.raises(TypeMismatchError, match="a stream of patterns"):
        CEP.dynamic_patterns(stream, [1])  # type: ignore[arg-type]
    with pytest.raises(TypeMismatchError, match="'drop' or 'finish'"):
        CEP.dynamic_patterns(stream, stream, partial_matches="keep")
