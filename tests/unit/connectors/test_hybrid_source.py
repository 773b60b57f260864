"""HybridSource: one source after the other, each in parallel, and a switch that crashes do not disturb."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from headwater.common import Duration, SimpleStringSchema, WatermarkStrategy
from headwater.common.connector import Source
from headwater.common.errors import CheckpointError, ConfigurationError
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.collection import CollectionSource
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.file_system import FileSource, StreamFormat
from headwater.datastream.connectors.hybrid_source import HybridSource, SwitchContext
from headwater.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.testing import STEPS, CollectingSink, JobCrashed, in_process
from headwater.testing.kafka import KafkaBroker
from tests.unit.connectors.kafka import clients
from tests.waiting import wait_until

NO_EVENT_TIME = WatermarkStrategy.no_watermarks()


def text_source(path: Path) -> Any:
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path))


def files(directory: Path, count: int, lines: int, first: int = 0) -> None:
    directory.mkdir(exist_ok=True)
    for number in range(count):
        start = first + number * lines
        (directory / f"{number:03d}").write_text("".join(f"{n}\n" for n in range(start, start + lines)))


def run(source: Source, sink: CollectingSink, parallelism: int = 2, strategy: Any = NO_EVENT_TIME) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    stream = env.from_source(source, strategy, "hybrid")
    stream.key_by(str).reduce(lambda one, other: other).sink_to(sink)
    env.execute("hybrid")


def test_sources_come_in_turn_and_each_in_parallel(tmp_path: Path) -> None:
    files(tmp_path / "old", 4, 25)
    sink = CollectingSink()
    source = (
        HybridSource.builder(text_source(tmp_path / "old").build())
        .add_source(CollectionSource([]))
        .add_source(NumberSequenceSource(100, 199))
        .add_source(CollectionSource([]))
        .build()
    )
    assert len(source.discover_splits(4, frozenset())) == 4
    with in_process(epoch_records=20):
        run(source, sink)
    results = sink.results()
    assert Counter(map(int, results)) == Counter(range(200))
    assert max(results.index(str(n)) for n in range(100)) < min(results.index(n) for n in range(100, 200))


def test_only_empty_sources() -> None:
    sink = CollectingSink()
    with in_process():
        run(HybridSource.builder(CollectionSource([])).add_source(CollectionSource([])).build(), sink)
    assert sink.results() == []


@pytest.mark.parametrize("step", STEPS)
def test_crashes_around_the_switch(tmp_path: Path, step: str) -> None:
    files(tmp_path / "old", 3, 10)
    sink = CollectingSink()

    def program() -> None:
        made = HybridSource.builder(text_source(tmp_path / "old").build()).add_source(
            lambda context: NumberSequenceSource(30, 59), bounded=True
        )
        run(made.build(), sink)

    with in_process(epoch_records=10) as here:
        epochs = (1, 2) if step == "chunk-received" else (1, 2, 3, 4)  # an epoch at the switch may have no records
        for epoch in epochs:
            here.crash_job(epoch=epoch, at=step)
        for _ in epochs:
            with pytest.raises(JobCrashed):
                program()
        program()
    assert Counter(map(int, sink.results())) == Counter(range(60))


def test_the_next_source_is_made_from_the_time_that_was_reached(tmp_path: Path) -> None:
    seen: list[int | None] = []
    sink = CollectingSink()

    def later(context: SwitchContext) -> Source:
        assert isinstance(context.previous, NumberSequenceSource)
        seen.append(context.watermark_ms)
        start = (context.watermark_ms or 0) + 2
        return NumberSequenceSource(start, start + 10)

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
    with in_process(epoch_records=10) as here:
        here.crash_job(epoch=5, at="manifest-written")
        for attempt in range(2):
            source = HybridSource.builder(NumberSequenceSource(1, 40)).add_source(later, bounded=True).build()
            if attempt == 0:
                with pytest.raises(JobCrashed):
                    run(source, sink, strategy=strategy)
            else:
                run(source, sink, strategy=strategy)
    assert set(seen) == {39}
    assert Counter(sink.results()) == Counter(range(1, 52))


def appear(path: Path, text: str) -> None:
    """Make a file as a whole: one that is found while it is empty is read as that."""
    hidden = path.with_name(f".{path.name}")
    hidden.write_text(text)
    hidden.rename(path)


def test_files_are_looked_for_when_their_turn_comes_and_then_watched(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    sink = CollectingSink()
    watched = text_source(tmp_path / "new").monitor_continuously(Duration.of_millis(20)).build()
    with in_process(epoch_records=10):
        env = StreamExecutionEnvironment.get_execution_environment()
        source = HybridSource.builder(NumberSequenceSource(0, 9)).add_source(watched).build()
        env.from_source(source, NO_EVENT_TIME, "hybrid").sink_to(sink)
        job = env.execute_async("watch")
        wait_until(lambda: len(sink.results()) == 10, "the first source is read")
        appear(tmp_path / "new/a", "a\n")
        wait_until(lambda: len(sink.results()) == 11, "the first file is read")
        appear(tmp_path / "new/b", "b\n")
        wait_until(lambda: len(sink.results()) == 12, "the second file is read")
        job.cancel()
    assert sink.results()[10:] == ["a", "b"]


@pytest.mark.parametrize("step", ["processed", "manifest-written", "sink-committed"])
def test_files_then_kafka_with_offsets_for_the_group(tmp_path: Path, step: str) -> None:
    files(tmp_path / "old", 2, 20)
    sink = CollectingSink()
    with KafkaBroker({"in": 2}) as broker:
        servers = broker.bootstrap_servers
        clients.produce(servers, "in", range(40, 100))

        def program() -> None:
            kafka = KafkaSource.builder().set_bootstrap_servers(servers).set_topics("in").set_group_id("group")
            kafka.set_bounded(KafkaOffsetsInitializer.latest()).set_value_only_deserializer(SimpleStringSchema())
            run(HybridSource.builder(text_source(tmp_path / "old").build()).add_source(kafka.build()).build(), sink)

        with in_process(epoch_records=10) as here:
            for epoch in (2, 4, 6):
                here.crash_job(epoch=epoch, at=step)
            for _ in range(3):
                with pytest.raises(JobCrashed):
                    program()
            program()
        assert sum(broker.committed("group").values()) == 60
    assert Counter(map(int, sink.results())) == Counter(range(100))


def test_the_slowest_rate_holds_for_all() -> None:
    slow = DataGeneratorSource(lambda i: i, 5, rate_per_second=10)
    assert HybridSource.builder(NumberSequenceSource(1, 2)).add_source(slow).build().rate_per_second == 10
    assert HybridSource.builder(NumberSequenceSource(1, 2)).build().rate_per_second is None


def test_bad_settings(tmp_path: Path) -> None:
    watched = text_source(tmp_path).monitor_continuously(Duration.of_seconds(1)).build()
    with pytest.raises(ConfigurationError, match="never ends"):
        HybridSource.builder(watched).add_source(NumberSequenceSource(1, 2))
    with pytest.raises(ConfigurationError, match="never ends"):
        HybridSource.builder(NumberSequenceSource(1, 2)).add_source(lambda _: watched).add_source(watched)
    with pytest.raises(ConfigurationError, match="expected a source"):
        HybridSource.builder("files")  # type: ignore[arg-type]
    wrong = HybridSource.builder(CollectionSource([])).add_source(lambda _: NumberSequenceSource(1, 2)).build()
    with pytest.raises(ConfigurationError, match="that is unbounded"):
        cloudpickle.loads(cloudpickle.dumps(wrong)).continue_after(1, frozenset(), None)
    with pytest.raises(CheckpointError, match="earlier version"):
        wrong.discover_splits(1, frozenset({"all"}))
