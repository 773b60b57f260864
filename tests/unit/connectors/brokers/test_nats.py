"""NATS JetStream, with a real server."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.js.api import RetentionPolicy

from headwater.common import SimpleStringSchema
from headwater.common.connector import CommitterContext
from headwater.common.errors import ConfigurationError, ExternalSystemError, HeadwaterError
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.nats import DeliveryGuarantee, NatsRecord, NatsSink, NatsSource
from headwater.datastream.connectors.nats import sink as sink_module
from headwater.datastream.connectors.nats.client import NatsClient
from headwater.testing import (
    SINK_CHECKS,
    SOURCE_CHECKS,
    STEPS,
    CollectingSink,
    SinkCase,
    SourceCase,
    assert_same_records,
    in_process,
)
from tests.unit.connectors.brokers.programs import (
    NO_EVENT_TIME,
    crashed_on_the_way_to,
    crashed_while_reading,
    run_once,
    to_sink,
)
from tests.unit.connectors.brokers.servers import nats_server, self_signed
from tests.waiting import wait_until

_numbers = itertools.count()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with nats_server(tmp_path_factory.mktemp("nats")) as url:
        yield url


def with_js(url: str, work: Callable[[Any], Any]) -> Any:
    async def connected() -> Any:
        connection = await nats.connect(url)
        try:
            return await work(connection.jetstream())
        finally:
            await connection.close()

    return asyncio.run(connected())


class Stream:
    """A new stream, with a client of its own."""

    def __init__(self, url: str, **config: Any) -> None:
        self.url = url
        self.name = f"S{next(_numbers)}"
        with_js(url, lambda js: js.add_stream(name=self.name, subjects=[f"{self.name}.>"], **config))

    def publish(self, values: list[Any], subject: str = "a") -> None:
        async def work(js: Any) -> None:
            for value in values:
                await js.publish(f"{self.name}.{subject}", str(value).encode(), headers={"n": str(value)})

        with_js(self.url, work)

    def read(self) -> list[str]:
        async def work(js: Any) -> list[str]:
            state = (await js.stream_info(self.name)).state
            found = [await js.get_msg(self.name, seq) for seq in range(max(1, state.first_seq), state.last_seq + 1)]
            return [message.data.decode() for message in found]

        return with_js(self.url, work)

    def source(self, *subjects: str) -> Any:
        builder = NatsSource.builder().set_url(self.url).set_stream(self.name)
        if subjects:
            builder.set_subjects(*(f"{self.name}.{subject}" for subject in subjects))
        return builder.set_value_only_deserializer(SimpleStringSchema())

    def sink(self, guarantee: DeliveryGuarantee = DeliveryGuarantee.EXACTLY_ONCE) -> NatsSink:
        builder = NatsSink.builder().set_url(self.url).set_stream(self.name).set_subject(f"{self.name}.out")
        return builder.set_value_serializer(SimpleStringSchema()).set_delivery_guarantee(guarantee).build()


@pytest.fixture
def stream(url: str) -> Stream:
    return Stream(url)


class TestSink:
    @pytest.mark.parametrize("check", SINK_CHECKS, ids=lambda check: check.__name__)
    def test_contract(self, check: Callable[[SinkCase], None], stream: Stream) -> None:
        def texts(start: int, stop: int) -> list[str]:
            return [f"ä{number}" for number in range(start, stop)]

        check(SinkCase(stream.sink(), visible=stream.read, records=texts, whole_epochs=True))

    @pytest.mark.parametrize("step", STEPS)
    def test_a_crash_at_each_step(self, step: str, url: str) -> None:
        # A window so short that the server forgets ids at once: what is there must be found by looking.
        stream = Stream(url, duplicate_window=0.1)
        expected = crashed_on_the_way_to(stream.sink, 50, step)
        assert_same_records(stream.read(), expected)

    @pytest.mark.parametrize("retention", [RetentionPolicy.WORK_QUEUE, RetentionPolicy.INTEREST])
    def test_a_stream_that_deletes_what_was_read_is_refused(self, url: str, retention: RetentionPolicy) -> None:
        """It could not tell after a failure which messages were published."""
        stream = Stream(url, retention=retention)
        committer = stream.sink().create_committer()
        try:
            with pytest.raises(ConfigurationError, match=rf"'{retention.value}'.*expected 'limits'.*AT_LEAST_ONCE"):
                committer.open(CommitterContext("job", "op", "uid"))
        finally:
            committer.close()
        lenient = stream.sink(DeliveryGuarantee.AT_LEAST_ONCE).create_committer()
        lenient.open(CommitterContext("job", "op", "uid"))
        lenient.close()

    def test_a_commit_that_stops_halfway_is_finished_much_later(
        self, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stream, real, calls = Stream(url, duplicate_window=0.1), sink_module.publish, itertools.count()

        async def half(client: Any, name: str, messages: list[Any]) -> None:
            if next(calls) in (1, 4, 5):
                await real(client, name, messages[: len(messages) // 2 + 1])
                await asyncio.sleep(0.3)  # the window is over
                raise ExternalSystemError("the connection broke")
            await real(client, name, messages)

        monkeypatch.setattr(sink_module, "publish", half)
        with in_process(epoch_records=10):
            to_sink(stream.sink, 40)
        assert_same_records(stream.read(), [str(number) for number in range(40)])

    def test_at_least_once(self, stream: Stream) -> None:
        with in_process(epoch_records=10):
            to_sink(lambda: stream.sink(DeliveryGuarantee.AT_LEAST_ONCE), 40)
        assert_same_records(stream.read(), [str(number) for number in range(40)])


class TestSource:
    @pytest.mark.parametrize("check", SOURCE_CHECKS, ids=lambda check: check.__name__)
    def test_contract(self, check: Callable[[SourceCase], None], stream: Stream) -> None:
        stream.publish(list(range(8)), "a")
        stream.publish(list(range(8, 12)), "b")
        check(SourceCase(stream.source("a", "b").set_bounded().build, [str(n) for n in range(12)], splits=2))

    @pytest.mark.parametrize("step", STEPS)
    def test_a_crash_at_each_step(self, step: str, stream: Stream) -> None:
        stream.publish(list(range(60)))
        results = crashed_while_reading(stream.source().set_bounded().build, step)
        assert_same_records(results, [str(number) for number in range(60)])

    def test_following_with_rejects(self, stream: Stream) -> None:
        stream.publish([0, "no number"])
        results, letters = CollectingSink(), CollectingSink()
        builder = NatsSource.builder().set_url(stream.url).set_stream(stream.name)
        with in_process():
            env = StreamExecutionEnvironment.get_execution_environment()
            source = builder.set_deserializer(lambda each: (int(each.data), each.sequence, each.headers["n"])).build()
            env.from_source(source, NO_EVENT_TIME, "s").with_dead_letters(letters).sink_to(results)
            job = env.execute_async()
            wait_until(lambda: len(results.results()) == 1)
            stream.publish([1, 2])
            wait_until(lambda: len(results.results()) == 3)
            job.cancel().result()
        assert results.results() == [(0, 1, "0"), (1, 3, "1"), (2, 4, "2")]
        (letter,) = letters.results()
        assert letter.where == f"message 2 of stream '{stream.name}'"
        (again,) = builder.set_deserializer(lambda each: each).build().read_again(letter.as_rejected())
        assert isinstance(again, NatsRecord) and (again.data, again.headers) == (b"no number", {"n": "no number"})

    def test_waiting_and_where_to_start(self, stream: Stream) -> None:
        stream.publish([0, 1])
        source = stream.source().set_start(0).build()
        (split,) = source.discover_splits(1, frozenset())
        reader = source.open_reader(split, None)
        waiting, waker = os.pipe()
        writer = threading.Timer(0.1, lambda: stream.publish([2, 3]))
        try:
            assert reader.read_batch(10) == []
            assert not reader.wait_readable(time.monotonic() + 0.05, waiting)
            writer.start()
            assert reader.wait_readable(time.monotonic() + 20, waiting)
            read = reader.read_batch(1) or []
            assert read == ["2"] and reader.position() == 4
            wait_until(lambda: read.extend(reader.read_batch(10) or []) or read == ["2", "3"])
            writer.join()
            os.write(waker, b"x")
            assert not reader.wait_readable(time.monotonic() + 20, waiting)
        finally:
            os.close(waiting)
            os.close(waker)
            reader.close()

    def test_messages_that_were_deleted_are_told(self, stream: Stream) -> None:
        stream.publish(list(range(5)))
        source = stream.source().build()
        (split,) = source.discover_splits(1, frozenset())
        with_js(stream.url, lambda js: js.purge_stream(stream.name, seq=4))
        with pytest.raises(HeadwaterError, match=r"go on at message 2, but NATS .* has messages 4 to 5 only"):
            source.open_reader(split, 2)

    def test_a_server_that_restarts_costs_only_time(self, tmp_path: Path) -> None:
        results = CollectingSink()
        with nats_server(tmp_path) as url:
            stream = Stream(url)
            stream.publish(list(range(30)))
        port = int(url.rsplit(":", 1)[1])

        def program() -> Any:
            env = StreamExecutionEnvironment.get_execution_environment()
            env.from_source(stream.source().build(), NO_EVENT_TIME, "s").sink_to(results)
            return env.execute_async()

        with in_process(epoch_records=10):
            with nats_server(tmp_path, port=port):
                job = program()
                wait_until(lambda: len(results.results()) == 30)
            with nats_server(tmp_path, port=port):
                stream.publish(list(range(30, 40)))
                wait_until(lambda: len(results.results()) == 40)
            job.cancel().result()
        assert_same_records(results.results(), [str(number) for number in range(40)])


class TestTls:
    def test_a_server_whose_certificate_a_file_vouches_for(self, tmp_path: Path) -> None:
        certificate, key = self_signed(tmp_path)
        pair = [f"--tlscert={certificate}", f"--tlskey={key}"]
        both_ways = ["--tls", *pair, "--tlsverify", f"--tlscacert={certificate}"]  # the client must have one, too
        with nats_server(tmp_path / "one-way", options=["--tls", *pair]) as url:
            address = url.replace("nats://", "tls://")
            known = f"{address}?ssl_ca_certs={certificate}"
            client = NatsClient("test", known)
            client.run("add", client.js.add_stream(name="S", subjects=["s"]))
            client.close()
            sink = NatsSink.builder().set_url(known).set_stream("S").set_subject("s")
            with in_process(epoch_records=10):
                to_sink(sink.set_value_serializer(SimpleStringSchema()).build, 20)
            results = CollectingSink()
            source = NatsSource.builder().set_url(known).set_stream("S").set_bounded()
            with in_process():
                env = StreamExecutionEnvironment.get_execution_environment()
                made = source.set_value_only_deserializer(SimpleStringSchema()).build()
                env.from_source(made, NO_EVENT_TIME, "s").sink_to(results)
                env.execute()
            assert_same_records(results.results(), [str(number) for number in range(20)])
            with pytest.raises(HeadwaterError, match="certificate verify failed") as caught:
                NatsClient("test", address)
            assert not isinstance(caught.value, ExternalSystemError), "it does not pass"
        with nats_server(tmp_path / "both-ways", options=both_ways) as url:
            known = f"{url.replace('nats://', 'tls://')}?ssl_ca_certs={certificate}"
            NatsClient("test", f"{known}&ssl_certfile={certificate}&ssl_keyfile={key}").close()
            with pytest.raises(HeadwaterError, match="cannot connect"):
                NatsClient("test", known)

    def test_bad_files_and_options(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="'ssl_ca' is no option of a URL; expected one of ssl_ca_certs"):
            NatsSink.builder().set_url("tls://h:4222?ssl_ca=/x")
        with pytest.raises(ConfigurationError, match=r"cannot use the files for TLS .*No such file"):
            NatsClient("test", f"tls://127.0.0.1:1?ssl_ca_certs={tmp_path}/none.pem")


class TestBadInput:
    def test_no_server_no_stream_wrong_password(self, stream: Stream, tmp_path: Path) -> None:
        away = NatsSink.builder().set_url("nats://127.0.0.1:1").set_stream("S").set_subject("s")
        with pytest.raises(HeadwaterError, match=r"NatsSink \(S\): cannot connect at NATS nats://127.0.0.1:1: "):
            run_once(away.set_value_serializer(SimpleStringSchema()).build())
        missing = NatsSource.builder().set_url(stream.url).set_stream("NONE").build()
        with pytest.raises(HeadwaterError, match=r"cannot read stream 'NONE' at NATS .*not found"):
            run_once(missing)
        with nats_server(tmp_path, password="right") as url:
            wrong = NatsSource.builder().set_url(url.replace("//", "//user:wrong-secret@")).set_stream("S").build()

            def told() -> bool:
                """The server hangs up behind its answer: a busy client may see only that."""
                with pytest.raises(HeadwaterError) as caught:
                    run_once(wrong)
                assert "wrong-secret" not in str(caught.value) + repr(wrong)
                return "uthorization" in str(caught.value)

            wait_until(told, "the server's answer to a wrong password")

    def test_settings(self) -> None:
        for bad in (
            lambda: NatsSource.builder().set_url("host"),
            lambda: NatsSource.builder().set_url("nats://h").build(),
            lambda: NatsSource.builder().set_start(-1),
            lambda: NatsSource.builder().set_subjects(),
            lambda: NatsSink.builder().set_url("nats://h").build(),
            lambda: NatsSink.builder().set_subject(5),  # type: ignore[arg-type]
            lambda: NatsSink.builder().set_value_serializer(str),  # type: ignore[arg-type]
            lambda: NatsSink.builder().set_delivery_guarantee(DeliveryGuarantee.NONE),
        ):
            with pytest.raises(ConfigurationError):
                bad()
