"""The writing end of an edge: who gets what, in which chunks, under which watermark."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.errors import (
    HeadwaterError,
    InvalidKeyError,
    SerializationError,
    TypeMismatchError,
    UserCodeError,
)
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.common.typeinfo import Types
from headwater.common.types import Row
from headwater.graph.checked_key_selector import CheckedKeySelector
from headwater.graph.plan import Exchange, InputSpec
from headwater.runtime.epoch.chunk import EVERY, FrameKind, Header, decode_header, decode_records, payload_of
from headwater.runtime.stage.edges import CHUNK_RECORDS, EdgeWriter
from headwater.state.keys.frozen_keys import frozen
from headwater.state.keys.key_groups import KeyRouter, key_group, partition_of_key_group

MAX_PARALLELISM = 128
Timestamps = list[int | None] | None


class Wire:
    """Keeps what an edge emits."""

    def __init__(self) -> None:
        self.frames: list[tuple[int, bytes]] = []

    def emit(self, target: int, frame: bytes) -> None:
        self.frames.append((target, frame))

    def headers(self, kind: int | None = None) -> list[Header]:
        found = [decode_header(frame) for _, frame in self.frames]
        return [header for header in found if kind is None or header.kind == kind]

    def records(self, target: int) -> list[Any]:
        """The values that went to `target`, in order."""
        return [value for value, _ in self.stamped(target)]

    def stamped(self, target: int) -> list[tuple[Any, int | None]]:
        found: list[tuple[Any, int | None]] = []
        for to, frame in self.frames:
            header = decode_header(frame)
            assert header.target == to
            if to == target and header.kind == FrameKind.DATA:
                values, timestamps = decode_records(payload_of(frame))
                assert header.records == len(values)
                found += zip(values, timestamps or [None] * len(values), strict=True)
        return found


def edge(
    wire: Wire,
    exchange: Exchange,
    parallelism: int = 3,
    partition: int = 0,
    key_selector: Callable[[Any], Any] | None = None,
    partitioner: Callable[[Any, int], int] | None = None,
) -> EdgeWriter:
    writer = EdgeWriter(
        edge=(7 << 8) | 1,
        spec=InputSpec(3, exchange=exchange, chained=False, key_selector=key_selector, partitioner=partitioner),
        dest_stage=2,
        dest_parallelism=parallelism,
        max_parallelism=MAX_PARALLELISM,
        partition=partition,
        operator_name="next",
        emit=wire.emit,
    )
    writer.begin_channel("3/0", MIN_WATERMARK)
    return writer


def send(exchange: Exchange, batches: list[list[Any]], **how: Any) -> list[list[Any]]:
    """What each target gets."""
    wire = Wire()
    writer = edge(wire, exchange, **how)
    for batch in batches:
        writer.write(list(batch), None)
    writer.end_channel(ended=False)
    return [wire.records(target) for target in range(how.get("parallelism", 3))]


BATCHES = [list(range(10)), [10], list(range(11, 40))]
NUMBERS = list(range(40))


def test_forward_goes_to_the_partition_of_the_same_number() -> None:
    assert send(Exchange.FORWARD, BATCHES, partition=1) == [[], NUMBERS, []]
    assert send(Exchange.FORWARD, BATCHES, partition=4) == [[], NUMBERS, []]  # more producers than consumers


def test_global_goes_to_the_first() -> None:
    assert send(Exchange.GLOBAL, BATCHES, partition=2) == [NUMBERS, [], []]


def test_broadcast_goes_to_all() -> None:
    assert send(Exchange.BROADCAST, BATCHES) == [NUMBERS] * 3
    assert send(Exchange.BROADCAST, BATCHES, parallelism=1) == [NUMBERS]


@pytest.mark.parametrize("exchange", [Exchange.REBALANCE, Exchange.RESCALE])
@pytest.mark.parametrize("partition", [0, 1, 2])
def test_in_turn_across_batches_beginning_at_the_own_number(exchange: Exchange, partition: int) -> None:
    found = send(exchange, BATCHES, partition=partition)
    expected: list[list[int]] = [[], [], []]
    for turn, number in enumerate(NUMBERS):
        expected[(partition + turn) % 3].append(number)
    assert found == expected


def test_shuffle_looks_random_and_is_the_same_on_replay() -> None:
    numbers = list(range(3_000))
    first = send(Exchange.SHUFFLE, [numbers[:1000], numbers[1000:]])
    assert first == send(Exchange.SHUFFLE, [numbers[:1000], numbers[1000:]])
    assert Counter(chain.from_iterable(first)) == Counter(numbers)
    assert all(900 < len(part) < 1100 for part in first)


@given(st.lists(st.one_of(st.integers(), st.text(max_size=5), st.tuples(st.integers(), st.text(max_size=3)))))
def test_hash_sends_a_key_to_the_owner_of_its_key_group(keys: list[Any]) -> None:
    for parallelism in (1, 2, 3):
        found = send(
            Exchange.HASH,
            [[(key, n) for n, key in enumerate(keys)]],
            parallelism=parallelism,
            key_selector=lambda pair: pair[0],
        )
        for target, records in enumerate(found):
            for key, _ in records:
                group = key_group(key, MAX_PARALLELISM)
                assert partition_of_key_group(group, MAX_PARALLELISM, parallelism) == target
            assert [n for _, n in records] == sorted(n for _, n in records), "order within a target"
        assert sum(map(len, found)) == len(keys)


def test_custom_asks_the_partitioner_with_the_key() -> None:
    found = send(
        Exchange.CUSTOM, BATCHES, key_selector=lambda n: n * 10, partitioner=lambda key, n: key // 10 % 2 * (n - 1)
    )
    assert found == [[n for n in NUMBERS if n % 2 == 0], [], [n for n in NUMBERS if n % 2]]


@pytest.mark.parametrize("answer", [3, -1, "0", None, 1.0, True])
def test_a_partitioner_that_answers_nonsense(answer: Any) -> None:
    with pytest.raises(HeadwaterError, match="from 0 to 2"):
        send(Exchange.CUSTOM, [[5]], partitioner=lambda key, n: answer)


def test_a_partitioner_that_raises_tells_the_record() -> None:
    with pytest.raises(UserCodeError) as raised:
        send(Exchange.CUSTOM, [[5, 0, 1]], partitioner=lambda key, n: 1 // key)
    assert raised.value.record_repr == "0"


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("bad", [float("nan"), [float("nan")], numpy.timedelta64(1, "D"), object()])
def test_bad_keys_are_refused_at_any_parallelism(parallelism: int, bad: Any) -> None:
    with pytest.raises(InvalidKeyError, match="next"):
        send(Exchange.HASH, [[1, bad]], parallelism=parallelism, key_selector=lambda key: key)


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("key", [[1], {1: [2]}, {3}, Row(1), ("a", [1])], ids=repr)
def test_keys_that_can_be_changed_are_routed_as_their_frozen_copies(parallelism: int, key: Any) -> None:
    wire = Wire()
    writer = edge(wire, Exchange.HASH, parallelism, key_selector=lambda key: key)
    for watermark, stamps in ((10, None), (20, [15] * 4)):
        writer.write([1, "a", key, key], stamps)  # type: ignore[arg-type]
        writer.advance(watermark)
    target = KeyRouter(MAX_PARALLELISM, parallelism)[frozen(key)]
    assert [value for value in wire.records(target) if value == key] == [key] * 4


def test_a_key_that_does_not_fit_its_declared_type_is_refused_in_words() -> None:
    selector = CheckedKeySelector(lambda pair: pair[0], Types.STRING())
    with pytest.raises(TypeMismatchError) as raised:
        send(Exchange.HASH, [[("a", 1), (2, 3)]], key_selector=selector)
    text = str(raised.value)
    assert "key_by before operator 'next'" in text
    assert "record (2, 3): expected STRING, found int 2" in text


def test_a_key_selector_that_raises_tells_the_record() -> None:
    with pytest.raises(UserCodeError) as raised:
        send(Exchange.HASH, [[(1,), ()]], key_selector=lambda pair: pair[0])
    assert raised.value.record_repr == "()" and "key_by" in raised.value.operator_name


def test_an_unpicklable_record_is_named() -> None:
    with pytest.raises(SerializationError, match=r"next.*lock"):
        send(Exchange.FORWARD, [[1, threading.Lock()]])


def test_timestamps_stay_with_their_records() -> None:
    wire = Wire()
    writer = edge(wire, Exchange.REBALANCE, parallelism=2)
    writer.write([1, 2, 3], None)
    writer.write([4, 5, 6], [40, None, 60])
    writer.write([7], None)
    writer.end_channel(ended=False)
    assert wire.stamped(0) == [(1, None), (3, None), (5, None), (7, None)]
    assert wire.stamped(1) == [(2, None), (4, 40), (6, 60)]


def test_chunks_are_cut_by_size_and_numbered_per_channel() -> None:
    wire = Wire()
    writer = edge(wire, Exchange.FORWARD)
    for _ in range(3):
        writer.write(list(range(CHUNK_RECORDS)), None)
    writer.write([1], None)
    writer.end_channel(ended=True)
    data = wire.headers(FrameKind.DATA)
    assert [header.seq for header in data] == [0, 1, 2, 3]
    assert [header.records for header in data] == [CHUNK_RECORDS] * 3 + [1]
    assert {(header.stage, header.edge, header.channel) for header in data} == {(2, (7 << 8) | 1, "3/0")}


@pytest.mark.parametrize("parallelism", [1, 3, 64])
def test_one_frame_tells_every_target_how_the_channel_ends(parallelism: int) -> None:
    wire = Wire()
    writer = edge(wire, Exchange.HASH, parallelism, key_selector=lambda n: n)
    writer.advance(50)
    writer.idle = True
    writer.end_channel(ended=True)
    ends = wire.headers(FrameKind.END)
    assert [(end.target, end.watermark, end.idle, end.ended) for end in ends] == [(EVERY, 50, True, True)]


def test_a_chunk_carries_the_watermark_that_held_before_its_records() -> None:
    wire = Wire()
    writer = edge(wire, Exchange.FORWARD)
    writer.write(list(range(100)), None)
    writer.advance(10)
    writer.write(list(range(100, 200)), None)
    writer.advance(5)  # goes back: ignored
    writer.advance(20)
    writer.write(list(range(200, 300)), None)
    writer.advance(MAX_WATERMARK)
    writer.end_channel(ended=True)
    data = [(header.watermark, header.records) for header in wire.headers(FrameKind.DATA)]
    assert data == [(MIN_WATERMARK, 100), (10, 100), (20, 100)]
    assert wire.headers(FrameKind.END)[0].watermark == MAX_WATERMARK


@given(st.lists(st.one_of(st.integers(0, 50).map(lambda n: ("watermark", n)), st.just(("records", 0))), max_size=30))
def test_no_record_is_sent_under_a_watermark_that_came_after_it(script: list[tuple[str, int]]) -> None:
    wire = Wire()
    writer = edge(wire, Exchange.REBALANCE)
    reached = MIN_WATERMARK
    for kind, watermark in script:
        if kind == "watermark":
            writer.advance(watermark)
            reached = max(reached, watermark)
        else:
            writer.write([reached] * 4, None)  # each record is the watermark at its writing
    writer.end_channel(ended=False)
    for _, frame in wire.frames:
        header = decode_header(frame)
        if header.kind == FrameKind.DATA:
            assert all(header.watermark <= written_at for written_at in decode_records(payload_of(frame))[0])


def test_begin_channel_starts_afresh() -> None:
    wire = Wire()
    writer = edge(wire, Exchange.REBALANCE)
    writer.write([1], None)
    writer.end_channel(ended=True)
    writer.begin_channel("3/1", 99)
    writer.write([2], None)
    writer.end_channel(ended=False)
    last = wire.headers(FrameKind.DATA)[-1]
    assert (last.channel, last.seq, last.watermark, last.target) == ("3/1", 0, 99, 0)
