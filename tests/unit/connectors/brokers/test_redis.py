"""Redis, with a real server: the sink's promise, look-ups, streams."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from headwater.checkpoint.output_files import StoredOutputFiles
from headwater.checkpoint.paths import CheckpointLayout
from headwater.common import SimpleStringSchema, Time, WatermarkStrategy
from headwater.common.connector import CommitterContext, WriterContext
from headwater.common.dead_letter import DeadLetter
from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError, SerializationError
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.async_data_stream import AsyncDataStream
from headwater.datastream.connectors.lookup import AsyncLookup
from headwater.datastream.connectors.redis import (
    DeliveryGuarantee,
    RedisLookup,
    RedisSink,
    RedisStreamRecord,
    RedisStreamsSource,
)
from headwater.testing import (
    SINK_CHECKS,
    SOURCE_CHECKS,
    STEPS,
    CollectingSink,
    JobCrashed,
    SinkCase,
    SourceCase,
    assert_same_records,
    in_process,
)
from tests.unit.connectors.brokers.servers import redis_server


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[Any]:
    client = redis.Redis.from_url(url)
    client.flushall()
    yield client
    client.close()


def pushes(record: Any) -> tuple[Any, ...]:
    return ("RPUSH", "out", repr(record))


def sink(url: str, command: Callable[[Any], Any] = pushes, **settings: Any) -> RedisSink:
    builder = RedisSink.builder().set_url(url).set_command(command)
    for name, value in settings.items():
        getattr(builder, f"set_{name}")(value)
    return builder.build()


def listed(client: Any) -> list[str]:
    return [each.decode() for each in client.lrange("out", 0, -1)]


class TestSink:
    @pytest.mark.parametrize("check", SINK_CHECKS, ids=lambda check: check.__name__)
    def test_contract(self, check: Callable[[SinkCase], None], url: str, client: Any) -> None:
        check(SinkCase(sink(url), visible=lambda: listed(client), shown=repr, whole_epochs=True))

    @pytest.mark.parametrize("step", STEPS)
    def test_a_crash_at_each_step(self, step: str, url: str, client: Any) -> None:
        def program() -> None:
            env = StreamExecutionEnvironment.get_execution_environment()
            env.set_parallelism(2)
            env.from_collection(list(range(50))).key_by(lambda n: n).reduce(lambda a, b: b).sink_to(sink(url))
            env.execute("to redis")

        with in_process(epoch_records=7) as here:
            here.crash_job(epoch=3, at=step)
            with pytest.raises(JobCrashed):
                program()
            program()
        assert_same_records(listed(client), [repr(number) for number in range(50)])

    def test_an_answer_that_is_lost_does_not_double(self, url: str, client: Any) -> None:
        """The server has done it, but the driver does not know."""
        from headwater.datastream.connectors.redis import sink as module

        lost = 0
        real = module.RedisCommitter.deliver

        def deliver(self: Any, name: str, batch: list[Any], mark: int, after: int) -> Any:
            nonlocal lost
            found = real(self, name, batch, mark, after)
            if lost < 3:
                lost += 1
                raise ExternalSystemError("the answer is lost")
            return found

        with pytest.MonkeyPatch.context() as patch, in_process(epoch_records=10):
            patch.setattr(module.RedisCommitter, "deliver", deliver)
            env = StreamExecutionEnvironment.get_execution_environment()
            env.from_collection(list(range(40))).sink_to(sink(url))
            env.execute()
        assert lost == 3
        assert_same_records(listed(client), [repr(number) for number in range(40)])

    def test_a_zombie_delivers_nothing(self, url: str, client: Any) -> None:
        from headwater.datastream.connectors.redis.sink import RedisCommitter

        old, new = RedisCommitter(url), RedisCommitter(url)
        new.deliver("mark", [[b"RPUSH", b"out", b"new"]], 5, -1)
        old.deliver("mark", [[b"RPUSH", b"out", b"old"]], 4, -1)
        old.deliver("mark", [[b"RPUSH", b"out", b"same"]], 5, -1)
        assert listed(client) == ["new"]

    @pytest.mark.parametrize("who", ["the same driver", "another driver"])
    def test_a_server_that_lost_its_last_writes_is_noticed(
        self, url: str, client: Any, tmp_path: Path, who: str
    ) -> None:
        """As after a restart with `appendfsync everysec`, or a failover: the mark goes back with the output."""
        files = StoredOutputFiles(CheckpointLayout(str(tmp_path)), "uid")
        made = sink(url)

        def committer(resumed_epoch: int) -> Any:
            found = made.create_committer()
            found.open(CommitterContext("job", "op", "uid", files, resumed_epoch))
            return found

        def output(epoch: int) -> list[Any]:
            writer = made.create_writer(WriterContext("job", "op", 0, 1, f"a{epoch}", epoch, "uid", files))
            writer.write_batch([epoch], None)
            return writer.prepare_commit()

        first = committer(-1)
        first.commit(output(1))
        first.commit(output(2))
        (mark,) = client.keys("headwater*")
        saved = {name: client.dump(name) for name in ("out", mark)}
        first.commit(output(3))
        for name, content in saved.items():
            client.restore(name, 0, content, replace=True)
        now, fourth = first if who == "the same driver" else committer(3), output(4)
        with pytest.raises(HeadwaterError, match=r"lost writes.*epochs 3 to 3\..*HSET \S+ mark \d+") as error:
            now.commit(fourth)
        assert listed(client) == ["1", "2"]
        _, name, field, value = re.search(r"(HSET) (\S+) (\w+) (\d+)", str(error.value)).groups()  # type: ignore[union-attr]
        client.hset(name, field, value)
        now.commit(fourth)
        assert listed(client) == ["1", "2", "4"]
        first.close()
        now.close()

    def test_a_command_that_redis_refuses_stops_the_job_and_nothing_is_doubled(self, url: str, client: Any) -> None:
        client.set("text", "x")

        def command(number: int) -> tuple[Any, ...]:
            return ("RPUSH", "text" if number == 15 else "out", number)

        def program() -> None:
            env = StreamExecutionEnvironment.get_execution_environment()
            env.set_parallelism(1)
            env.from_collection(list(range(20))).sink_to(sink(url, command))
            env.execute("refused")

        with in_process(epoch_records=10):
            with pytest.raises(HeadwaterError, match=r"refuses .*WRONGTYPE"):
                program()
            assert listed(client) == [str(number) for number in range(15)]
            client.delete("text")
            program()
        assert listed(client) == [str(number) for number in range(20) if number != 15]
        assert client.lrange("text", 0, -1) == [b"15"]

    def test_at_least_once_with_several_commands_and_none(self, url: str, client: Any) -> None:
        def commands(number: int) -> Any:
            return None if number % 2 else [("SADD", "even", number), ("HSET", "squares", number, number**2)]

        with in_process(epoch_records=10):
            env = StreamExecutionEnvironment.get_execution_environment()
            guarantee = DeliveryGuarantee.AT_LEAST_ONCE
            env.from_collection(list(range(20))).sink_to(sink(url, commands, delivery_guarantee=guarantee))
            env.execute()
        assert {int(each) for each in client.smembers("even")} == set(range(0, 20, 2))
        assert {int(k): int(v) for k, v in client.hgetall("squares").items()} == {n: n * n for n in range(0, 20, 2)}

    def test_large_epochs_are_cut_into_scripts(self, url: str, client: Any) -> None:
        with in_process():
            env = StreamExecutionEnvironment.get_execution_environment()
            env.set_parallelism(1)
            env.from_collection(list(range(5000))).sink_to(sink(url))
            env.execute()
        assert listed(client) == [repr(number) for number in range(5000)]

    @pytest.mark.parametrize("bad", [{"a": 1}, (), ("SET", "k", None), ("SET", "k", True), (b"SET", "k")])
    def test_what_is_no_command_is_a_dead_letter(self, bad: Any, url: str, client: Any) -> None:
        letters = CollectingSink()
        with in_process():
            env = StreamExecutionEnvironment.get_execution_environment()
            stream = env.from_collection([0, 1, 2])
            stream.sink_to(sink(url, lambda n: bad if n == 1 else pushes(n))).with_dead_letters(letters)
            env.execute()
        assert listed(client) == ["0", "2"]
        (letter,) = letters.results()
        assert isinstance(letter, DeadLetter) and letter.value() == 1


class TestBadInput:
    def run(self, given: RedisSink | RedisStreamsSource) -> None:
        with in_process():
            env = StreamExecutionEnvironment.get_execution_environment()
            env.get_config()
            if isinstance(given, RedisSink):
                env.from_collection([1]).sink_to(given)
            else:
                env.from_source(given, WatermarkStrategy.no_watermarks(), "s").sink_to(CollectingSink())
            env.execute()

    def test_the_server_is_away(self) -> None:
        with pytest.raises(HeadwaterError, match=r"RedisSink: cannot connect at Redis redis://127.0.0.1:1/0: "):
            self.run(sink("redis://127.0.0.1:1/0"))

    def test_the_password_is_wrong_and_in_no_error(self, tmp_path: Path) -> None:
        with redis_server(tmp_path, password="right") as url:
            for given in ("", ":wrong-secret@"):
                with pytest.raises(HeadwaterError) as caught:
                    self.run(sink(url.replace("redis://", f"redis://{given}")))
                assert "Redis redis://" in str(caught.value) and "wrong-secret" not in str(caught.value)
            os.environ["REDIS_TEST_PASSWORD"] = "right"
            self.run(sink(url.replace("redis://", "redis://:${env:REDIS_TEST_PASSWORD}@")))
            assert "right" not in repr(sink(url.replace("redis://", "redis://:right@")))

    def test_a_stream_that_is_none(self, url: str, client: Any) -> None:
        client.set("text", "x")
        builder = RedisStreamsSource.builder().set_url(url).set_bounded()
        with pytest.raises(HeadwaterError, match=r"'text' at Redis .* is a string; expected a stream"):
            self.run(builder.set_streams("text").build())
        with pytest.raises(HeadwaterError, match=r"'none' at Redis .* does not exist"):
            self.run(builder.set_streams("none").build())

    def test_settings(self) -> None:
        builder = RedisStreamsSource.builder()
        for wrong in (
            lambda: RedisSink.builder().set_url("x").build(),
            lambda: RedisSink.builder().set_command(pushes).build(),
            lambda: RedisSink.builder().set_command(5),  # type: ignore[arg-type]
            lambda: RedisSink.builder().set_delivery_guarantee(DeliveryGuarantee.NONE),
            lambda: RedisLookup(""),
            lambda: RedisLookup("redis://h", cache_size=-1),
            lambda: builder.set_url("redis://h").build(),
            lambda: builder.set_start("soon"),
            lambda: builder.set_streams(),
            lambda: builder.set_deserializer(None),  # type: ignore[arg-type]
            lambda: builder.set_value_only_deserializer(str),  # type: ignore[arg-type]
        ):
            with pytest.raises(ConfigurationError):
                wrong()
        with pytest.raises(ConfigurationError, match="is no URL of a Redis server"):
            sink("http://host").create_committer()


class TestLookup:
    def test_values_are_remembered(self, url: str, client: Any) -> None:
        client.mset({"a": 1, "b": 2})
        lookup = RedisLookup(url, cache_size=3)
        assert lookup.lookup(["a", "b", "a", "none"]) == [b"1", b"2", b"1", None]
        client.mset({"a": 5, "none": 6})
        assert lookup.lookup(["a", "none"]) == [b"1", None]
        assert lookup.asked == 3
        lookup.lookup(["c", "d"])  # push two out: the last used stay
        assert lookup.lookup(["none", "a"])[1] == b"5"
        impatient = RedisLookup(url, cache_seconds=0)
        assert impatient.lookup(["a"]) == [b"5"]
        client.set("a", 7)
        assert impatient.lookup(["a"]) == [b"7"]

    def test_any_command(self, url: str, client: Any) -> None:
        client.hset("h1", mapping={"x": 1})
        lookup = RedisLookup(url, lambda key: ("HGETALL", key))
        assert lookup.lookup(["h1", "h2"]) == [{b"x": b"1"}, None]
        with pytest.raises(HeadwaterError, match="RedisLookup: cannot look up at Redis"):
            RedisLookup("redis://127.0.0.1:1").lookup(["a"])

    def test_in_asynchronous_io(self, url: str, client: Any) -> None:
        client.mset({f"user{n}": f"name{n}" for n in range(5)})
        results = CollectingSink()
        with in_process():
            env = StreamExecutionEnvironment.get_execution_environment()
            stream = env.from_collection(list(range(40)))
            joined = AsyncDataStream.unordered_wait(
                stream,
                AsyncLookup(RedisLookup(url), lambda n: f"user{n % 8}", lambda n, name: name and (n, name)),
                Time.seconds(10),
                20,
            )
            joined.sink_to(results)
            env.execute()
        expected = [(n, f"name{n % 8}".encode()) for n in range(40) if n % 8 < 5]
        assert_same_records(results.results(), expected)


def add(client: Any, stream: str, values: list[Any]) -> list[str]:
    return [client.xadd(stream, {"value": str(value)}).decode() for value in values]


def strings(url: str, *streams: str) -> Any:
    return (
        RedisStreamsSource.builder()
        .set_url(url)
        .set_streams(*streams)
        .set_value_only_deserializer(SimpleStringSchema())
    )


class TestStreams:
    @pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
    def test_contract(self, check: Callable[[SourceCase], None], url: str, client: Any) -> None:
        add(client, "a", list(range(20)))
        add(client, "b", list(range(20, 30)))
        make = strings(url, "a", "b").set_bounded().build
        check(SourceCase(make, [str(number) for number in range(30)], splits=2))

    @pytest.mark.parametrize("step", STEPS)
    def test_a_crash_at_each_step(self, step: str, url: str, client: Any) -> None:
        add(client, "a", list(range(60)))
        results = CollectingSink()

        def program() -> None:
            env = StreamExecutionEnvironment.get_execution_environment()
            source = strings(url, "a").set_bounded().build()
            stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "a")
            stream.key_by(lambda text: text).reduce(lambda a, b: b).sink_to(results)
            env.execute("from redis")

        with in_process(epoch_records=10) as here:
            here.crash_job(epoch=3, at=step)
            with pytest.raises(JobCrashed):
                program()
            program()
        assert_same_records(results.results(), [str(number) for number in range(60)])

    def test_following_with_timestamps_and_rejects(self, url: str, client: Any) -> None:
        results, letters = CollectingSink(), CollectingSink()
        first = add(client, "a", [0, "no number"])
        writer = threading.Timer(0.2, lambda: add(client, "a", [1, 2]))
        with in_process():
            env = StreamExecutionEnvironment.get_execution_environment()
            source = RedisStreamsSource.builder().set_url(url).set_streams("a", "later")
            source = source.set_deserializer(lambda entry: (entry.timestamp, int(entry.fields[b"value"])))
            stream = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "a")
            stream.with_dead_letters(letters).sink_to(results)
            writer.start()
            job = env.execute_async()
            deadline = time.monotonic() + 20
            while len(results.results()) < 3:
                assert time.monotonic() < deadline
                time.sleep(0.02)
            job.cancel().result()
            writer.join()
        assert [number for _, number in results.results()] == [0, 1, 2]
        assert results.results()[0][0] == int(first[0].split("-")[0])
        (letter,) = letters.results()
        assert letter.where == f"entry {first[1]} of stream 'a'" and "ValueError" in letter.error
        assert source.set_deserializer(lambda entry: entry).build().read_again(letter.as_rejected())[0] == (
            RedisStreamRecord("a", first[1], {b"value": b"no number"})
        )

    def test_from_the_end_and_from_an_id(self, url: str, client: Any) -> None:
        ids = add(client, "a", [0, 1, 2, 3])
        (split,) = strings(url, "a").set_start("$").build().discover_splits(1, frozenset())
        assert split.payload.start == ids[-1]
        source = strings(url, "a").set_start(ids[1]).set_bounded().build()
        (split,) = source.discover_splits(1, frozenset())
        assert source.open_reader(split, None).read_batch(10) == ["2", "3"]

    def test_waiting(self, url: str, client: Any) -> None:
        ids = add(client, "a", [0])
        source = strings(url, "a").build()
        (split,) = source.discover_splits(1, frozenset())
        reader = source.open_reader(split, ids[0])
        waiting, waker = os.pipe()
        writer = threading.Timer(0.1, lambda: add(client, "a", [1]))
        try:
            assert not reader.wait_readable(time.monotonic() + 0.05, waiting)
            writer.start()
            assert reader.wait_readable(time.monotonic() + 20, waiting)
            writer.join()
            assert reader.read_batch(10) == ["1"]
            os.write(waker, b"x")
            assert not reader.wait_readable(time.monotonic() + 20, waiting)
        finally:
            os.close(waiting)
            os.close(waker)
            reader.close()

    def test_a_stream_that_was_trimmed_is_told(self, url: str, client: Any, caplog: Any) -> None:
        ids = add(client, "a", [0, 1, 2])
        client.xtrim("a", maxlen=1, approximate=False)
        source = strings(url, "a").build()
        (split,) = source.discover_splits(1, frozenset())
        with caplog.at_level(logging.WARNING):
            source.open_reader(split, ids[0])
        assert f"entry {ids[0]} of stream 'a', which the job has read last, was deleted" in caplog.text


def test_serialization_errors_are_of_their_kind(url: str) -> None:
    with pytest.raises(SerializationError, match="expected a tuple such as"):
        sink(url, lambda n: "SET").messages([1])
