"""Collection, number sequence and generator: what bad input gets, and what is special about each."""

from __future__ import annotations

import threading
from typing import Any

import cloudpickle
import pytest

from headwater.common.errors import ConfigurationError, SerializationError
from headwater.datastream.connectors.collection import CollectionSource
from headwater.datastream.connectors.data_generator import DataGeneratorSource, GeneratorFunction, RateLimiterStrategy
from headwater.datastream.connectors.number_seq import NumberSequenceSource


class TestCollection:
    def test_the_items_are_not_shipped_with_the_source(self) -> None:
        source = CollectionSource([b"x" * 1000] * 100)
        assert len(cloudpickle.dumps(source)) < 1_000
        (split,) = source.discover_splits(8, frozenset())
        assert len(cloudpickle.dumps(source.plan_read(split, 10, 3))) < 5_000

    def test_a_task_reads_what_was_planned_and_says_that_more_will_come(self) -> None:
        source = CollectionSource("abcde")
        (split,) = source.discover_splits(1, frozenset())
        reader = source.open_reader(source.plan_read(split, 1, 2), 1)
        assert reader.read_batch(10) == ["b", "c"]
        assert reader.read_batch(10) == []
        assert reader.position() == 3
        reader = source.open_reader(source.plan_read(split, 3, 9), 3)
        assert [reader.read_batch(10), reader.read_batch(10)] == [["d", "e"], None]

    def test_a_task_without_a_plan_says_what_is_wrong(self) -> None:
        there = cloudpickle.loads(cloudpickle.dumps(CollectionSource([1])))
        (split,) = there.discover_splits(1, frozenset())
        with pytest.raises(ConfigurationError, match="plan_read"):
            there.open_reader(split, None)

    def test_what_the_program_does_to_its_list_later_does_not_matter(self) -> None:
        items = [1, 2]
        source = CollectionSource(items)
        items.append(3)
        assert len(source) == 2

    def test_an_item_that_cannot_be_pickled_is_named(self) -> None:
        class Payment:
            lock: Any = None

        broken = Payment()
        broken.lock = threading.Lock()
        for items, text in (
            ([1, 2, ("lock", threading.Lock())], r"item 2 of the collection, .*: item 1 of a tuple is a lock, which"),
            ([Payment(), broken], r"item 1 of the collection, .*: attribute 'lock' of Payment is a lock, which"),
            ([0] * 20_000 + [(n for n in "a")], r"item 20000 of the collection, .* a generator cannot be pickled"),
        ):
            with pytest.raises(SerializationError, match=text):
                CollectionSource(items)
        assert len(CollectionSource([Payment(), lambda: 1, (1, "a")])) == 3

    def test_an_item_that_was_changed_later_is_named_too(self) -> None:
        item = ["lock"]
        source = CollectionSource(["a", item])
        item.append(threading.Lock())  # type: ignore[arg-type]
        (split,) = source.discover_splits(1, frozenset())
        with pytest.raises(SerializationError, match=r"item 1 of the collection, .*: item 1 of a list is a lock"):
            source.plan_read(split, 1, 10)

    def test_a_shorter_collection_after_a_restart_is_refused(self) -> None:
        source = CollectionSource([1, 2])
        (split,) = source.discover_splits(1, frozenset())
        with pytest.raises(ConfigurationError, match="now has 2 items, but 5"):
            source.plan_read(split, 5, 10)


class TestNumberSequence:
    def test_parts_cover_the_sequence_without_gaps(self) -> None:
        for total in (1, 2, 7, 100):
            splits = NumberSequenceSource(10, 9 + total).discover_splits(3, frozenset())
            numbers = [number for split in splits for number in range(*split.payload)]
            assert numbers == list(range(10, 10 + total))
            sizes = [len(range(*split.payload)) for split in splits]
            assert max(sizes) - min(sizes) <= 1

    @pytest.mark.parametrize(("start", "end"), [(1, 0), ("1", 2), (1, 2.5), (True, 3)])
    def test_bad_bounds_are_refused(self, start: Any, end: Any) -> None:
        with pytest.raises(ConfigurationError, match="NumberSequenceSource"):
            NumberSequenceSource(start, end)


class TestDataGenerator:
    def test_splits_advance_together(self) -> None:
        source = DataGeneratorSource(lambda index: index, 10)
        readers = [source.open_reader(split, None) for split in source.discover_splits(3, frozenset())]
        assert [reader.read_batch(2) for reader in readers] == [[0, 3], [1, 4], [2, 5]]

    def test_without_a_count_it_does_not_end(self) -> None:
        source = DataGeneratorSource(lambda index: index)
        assert not source.bounded
        split = source.discover_splits(2, frozenset())[1]
        reader = source.open_reader(split, 2**60 + 1)
        assert reader.read_batch(2) == [2**60 + 1, 2**60 + 3]

    def test_objects_with_map_are_generator_functions(self) -> None:
        class Squares(GeneratorFunction):
            def map(self, value: int) -> int:
                return value * value

        source = DataGeneratorSource(Squares(), 4)
        assert source.open_reader(source.discover_splits(1, frozenset())[0], None).read_batch(9) == [0, 1, 4, 9]

    def test_a_class_of_such_objects_is_a_forgotten_call(self) -> None:
        with pytest.raises(ConfigurationError, match="did you forget to call it"):
            DataGeneratorSource(GeneratorFunction, 4)  # type: ignore[arg-type]

    def test_an_error_of_the_function_does_not_move_the_position(self) -> None:
        source = DataGeneratorSource(lambda index: 1 // (3 - index), 10)
        reader = source.open_reader(source.discover_splits(1, frozenset())[0], None)
        reader.read_batch(2)
        with pytest.raises(ZeroDivisionError):
            reader.read_batch(2)
        assert reader.position() == 2

    def test_rates(self) -> None:
        def make(**settings: Any) -> DataGeneratorSource:
            return DataGeneratorSource(str, 1, **settings)

        assert make().rate_per_second is None
        assert make(rate_per_second=5).rate_per_second == 5
        assert make(rate_limiter_strategy=RateLimiterStrategy.per_second(7)).rate_per_second == 7
        assert make(rate_limiter_strategy=RateLimiterStrategy.no_op()).rate_per_second is None
        with pytest.raises(ConfigurationError, match="rate_limiter_strategy is 'fast'; expected one such as"):
            make(rate_limiter_strategy="fast")
        with pytest.raises(ConfigurationError, match="not both"):
            make(rate_per_second=5, rate_limiter_strategy=RateLimiterStrategy.no_op())
        for rate in (0, -1, float("nan")):
            with pytest.raises(ConfigurationError, match="more than 0"):
                make(rate_per_second=rate)

    @pytest.mark.parametrize(("function", "count"), [("text", 3), (str, -1), (str, 2.5), (str, True), (lambda: 1, 3)])
    def test_bad_arguments_are_refused(self, function: Any, count: Any) -> None:
        with pytest.raises(ConfigurationError, match="DataGeneratorSource"):
            DataGeneratorSource(function, count)
