"""The broadcast state pattern, on streams with and without keys."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.common.errors import PlanError, UserCodeError
from headwater.common.output_tag import OutputTag
from headwater.operators.functions.broadcast import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedStateFunction,
)
from headwater.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from headwater.testing import TwoInputOperatorHarness

LIMITS = MapStateDescriptor("limits")
OTHER = MapStateDescriptor("other")
ODD = OutputTag("odd")
PENDING = ListStateDescriptor("pending")


class Limit(BroadcastProcessFunction):
    """Lets amounts pass that are at most the limit; a rule is (name, limit), None takes it away."""

    def process_element(self, value: int, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Any:
        limits = ctx.get_broadcast_state(LIMITS)
        if any(value > limit for limit in limits.values()):
            yield ODD, value
        else:
            yield value, ctx.timestamp()

    def process_broadcast_element(self, value: Any, ctx: BroadcastProcessFunction.Context) -> Any:
        name, limit = value
        if limit is None:
            ctx.get_broadcast_state(LIMITS).remove(name)
        else:
            ctx.get_broadcast_state(LIMITS).put(name, limit + 0)
        yield ODD, (name, ctx.timestamp(), ctx.current_watermark() > 0, ctx.current_processing_time())


class Hold(KeyedBroadcastProcessFunction):
    """Keeps what exceeds the limit of its key, until a rule lets it go or 100 ms are over."""

    def open(self, runtime_context: Any) -> None:
        self.pending = runtime_context.get_list_state(PENDING)

    def process_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Any:
        key, amount = value
        limit = ctx.get_broadcast_state(LIMITS).get(key)
        if limit is not None and amount > limit:
            self.pending.add(amount)
            ctx.timer_service().register_event_time_timer(ctx.timestamp() + 100)  # type: ignore[operator]
        else:
            yield ctx.get_current_key(), amount

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastProcessFunction.Context) -> Any:
        name, limit = value
        ctx.get_broadcast_state(LIMITS).put(name, limit)
        released: list[Any] = []

        def release(key: Any, state: Any) -> None:
            if key == name:
                released.extend((key, amount) for amount in state if amount <= limit)
                state.update([amount for amount in state if amount > limit])

        ctx.apply_to_keyed_state(PENDING, release)
        return released

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Any:
        for amount in self.pending:
            yield "gave up", ctx.get_current_key(), amount, ctx.get_broadcast_state(LIMITS).get(ctx.get_current_key())
        self.pending.clear()


def unkeyed(**settings: Any) -> TwoInputOperatorHarness:
    return TwoInputOperatorHarness(Limit(), broadcast_states=[LIMITS], **settings)


def keyed(function: Any = None, **settings: Any) -> TwoInputOperatorHarness:
    return TwoInputOperatorHarness(function or Hold(), (lambda value: value[0], None), [LIMITS, OTHER], **settings)


def test_rules_change_what_happens_to_the_records_after_them() -> None:
    harness = unkeyed()
    harness.process_elements1([5, 50], [1, 2])
    harness.process_element2(("max", 10), 3)
    harness.process_elements1([5, 50], [4, 5])
    harness.process_watermark(20)
    harness.set_processing_time(77)
    harness.process_element2(("max", None))
    harness.process_element1(50)
    assert harness.get_output_with_timestamps() == [
        ((5, 1), 1), ((50, 2), 2), ((5, 4), 4), ((50, None), None)
    ]  # fmt: skip
    assert harness.get_side_output(ODD) == [("max", 3, False, 0), 50, ("max", None, True, 77)]


def test_rules_survive_a_restore_at_any_parallelism_and_a_failed_epoch_does_not_change_them() -> None:
    harness = unkeyed()
    harness.process_elements2([("max", 10), ("gone", 1), ("gone", None)])
    snapshot = harness.snapshot()
    harness.process_element2(("max", 1000))
    harness.fail_epoch()
    harness.process_element1(50)
    assert harness.get_output() == []
    for partition in range(3):
        # As after a rescale: the same rules in each of the new partitions, from whichever old ones they are read.
        part = unkeyed(partition=partition, parallelism=3).restore(snapshot, snapshot)
        part.process_elements1([5, 50])
        assert part.get_output() == [(5, None)]


def test_rubbish_on_the_rule_stream_fails_with_the_operator_and_the_rule() -> None:
    harness = unkeyed(name="limits")
    with pytest.raises(UserCodeError, match=r"operator 'limits' failed(.|\n)*record: \('max', 'ten'\)"):
        harness.process_elements2([("min", 1), ("max", "ten")])


def test_the_other_side_cannot_change_the_rules() -> None:
    class Writes(BroadcastProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_broadcast_state(LIMITS).put("mine", value)

        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            return None

    with pytest.raises(UserCodeError, match="read-only here"):
        TwoInputOperatorHarness(Writes(), broadcast_states=[LIMITS]).process_element1(1)


def test_only_declared_states() -> None:
    class Asks(Limit):
        def process_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_broadcast_state(OTHER)

        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_broadcast_state("limits")

    harness = TwoInputOperatorHarness(Asks(), broadcast_states=[LIMITS])
    with pytest.raises(UserCodeError, match="'other', but the stream was broadcast with 'limits'"):
        harness.process_element1(1)
    with pytest.raises(UserCodeError, match="pass its descriptor to broadcast"):
        harness.process_element2(1)
    with pytest.raises(PlanError, match="broadcast_states"):
        TwoInputOperatorHarness(Limit())


def test_keyed_state_timers_and_apply_to_keyed_state() -> None:
    harness = keyed()
    harness.process_elements2([("a", 10), ("b", 10)], [0, 0])
    harness.process_elements1([("a", 5), ("a", 15), ("a", 99), ("b", 15)], [1, 2, 3, 4])
    assert harness.get_output() == [("a", 5)]
    harness.process_element2(("a", 20), 5)
    assert harness.get_output_with_timestamps() == [(("a", 5), 1), (("a", 15), 5)]
    snapshot = harness.snapshot()
    restored = keyed().restore(snapshot)
    restored.process_watermark(200)
    assert restored.get_output_with_timestamps() == [
        (("gave up", "a", 99, 20), 102), (("gave up", "b", 15, 10), 104)
    ]  # fmt: skip
    assert restored.num_keyed_state_entries() == 0


def test_apply_to_keyed_state_takes_an_object_and_knows_states_nobody_used() -> None:
    class Forget(KeyedStateFunction):
        def process(self, key: Any, state: Any) -> None:
            state.clear()

    class Forgetful(Hold):
        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            ctx.apply_to_keyed_state(ValueStateDescriptor("never used"), Forget())
            if value == "forget":
                ctx.apply_to_keyed_state(PENDING, Forget())
            else:
                ctx.get_broadcast_state(LIMITS).put(*value)

    harness = keyed(Forgetful())
    harness.process_element2(("a", 1))
    harness.process_elements1([("a", 5), ("b", 5)], [0, 0])
    assert harness.num_keyed_state_entries() == 1
    harness.process_element2("forget")
    assert harness.num_keyed_state_entries() == 0
    harness.fail_epoch()


def test_there_is_no_key_while_a_rule_is_processed() -> None:
    class Touches(Hold):
        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            self.pending.add(1)

    harness = keyed(Touches())
    harness.process_element1(("a", 1), 0)
    with pytest.raises(UserCodeError, match="there is no current key"):
        harness.process_element2(("a", 1))


def test_a_keyed_function_needs_a_key_selector() -> None:
    with pytest.raises(PlanError, match="key_selectors"):
        TwoInputOperatorHarness(Hold(), broadcast_states=[LIMITS])
