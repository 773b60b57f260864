"""Webhooks, server-sent events and WebSockets, with servers of the standard library and of `websockets`."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from websockets.sync.server import serve

from headwater.common import SimpleStringSchema
from headwater.common.errors import ConfigurationError, HeadwaterError
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.http import HttpSink, ServerSentEvent, SseSource
from headwater.datastream.connectors.websocket import WebSocketSource
from headwater.testing import STEPS, CollectingSink, JobCrashed, assert_same_records, in_process
from tests.unit.connectors.brokers.programs import NO_EVENT_TIME, crashed_on_the_way_to, run_once, to_sink
from tests.waiting import wait_until


class QuietServer(ThreadingHTTPServer):
    """A client that dies in the middle of a request is what these tests are about."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


class Webhooks:
    """A server that remembers idempotency keys. `answers` says what to do with the first requests."""

    def __init__(self) -> None:
        self.bodies: dict[str, str] = {}
        self.requests: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self.answers: list[Any] = []
        self.lock = threading.Lock()
        hooks = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                with hooks.lock:
                    answer = hooks.answers.pop(0) if hooks.answers else 200
                    key = self.headers["Idempotency-Key"]
                    hooks.requests[key] += 1
                    hooks.headers.append(dict(self.headers))
                    if answer in (200, "lost"):
                        hooks.bodies.setdefault(key, body)
                if answer == "lost":
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.send_response(answer)
                self.send_header("Content-Length", "2")
                if answer == 429:
                    self.send_header("Retry-After", "0.05")
                self.end_headers()
                self.wfile.write(b"ok")

            do_PUT = do_POST

            def log_message(self, *arguments: Any) -> None: ...

        self.server = QuietServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def sink(self, **settings: Any) -> HttpSink:
        builder = HttpSink.builder().set_url(self.url).set_body(SimpleStringSchema())
        for name, value in settings.items():
            getattr(builder, f"set_{name}")(value)
        return builder.build()


@pytest.fixture
def hooks() -> Iterator[Webhooks]:
    hooks = Webhooks()
    yield hooks
    hooks.server.shutdown()
    hooks.server.server_close()


class TestSink:
    @pytest.mark.parametrize("step", STEPS)
    def test_a_crash_at_each_step(self, step: str, hooks: Webhooks) -> None:
        expected = crashed_on_the_way_to(hooks.sink, 50, step)
        assert_same_records(list(hooks.bodies.values()), expected)

    def test_what_is_repeated_has_the_same_key(self, hooks: Webhooks) -> None:
        hooks.answers = [200, 503, "lost", 200, 429, 200, "lost", 200, 500]
        with in_process(epoch_records=10):
            to_sink(lambda: hooks.sink(concurrency=1), 40)
        assert_same_records(list(hooks.bodies.values()), [str(number) for number in range(40)])
        assert sum(hooks.requests.values()) == 45

    def test_a_commit_that_dies_halfway_is_repeated_with_the_same_keys(self, hooks: Webhooks) -> None:
        hooks.answers = [200] * 15 + [400]

        def program() -> None:
            to_sink(lambda: hooks.sink(concurrency=1), 40, parallelism=1)

        with in_process(epoch_records=10):
            with pytest.raises(HeadwaterError, match=r"HttpSink: POST http://127.*/hook: 400 Bad Request: b'ok'"):
                program()
            program()
        assert_same_records(list(hooks.bodies.values()), [str(number) for number in range(40)])
        assert sorted(hooks.requests.values())[-6:] == [2] * 6

    def test_headers_and_secrets(self, hooks: Webhooks, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOOK_TOKEN", "very-secret")
        url = hooks.url
        builder = HttpSink.builder().set_method("PUT").set_url(lambda text: f"{url}/{text}")
        sink = (
            builder.set_body(lambda text: text.encode()).set_header("Authorization", "Bearer ${env:HOOK_TOKEN}").build()
        )
        with in_process():
            to_sink(lambda: sink, 3)
            assert hooks.headers[0]["Authorization"] == "Bearer very-secret"
            hooks.answers = [401]
            with pytest.raises(HeadwaterError) as caught:
                run_once(sink)
        assert "very-secret" not in str(caught.value) and "401" in str(caught.value)
        assert "Bearer" not in repr(sink)

    def test_bad_input(self) -> None:
        away = HttpSink.builder().set_url("http://127.0.0.1:1/").set_body(SimpleStringSchema()).build()
        with pytest.raises(HeadwaterError, match=r"HttpSink: POST http://127.0.0.1:1/: Connection.*refused$"):
            run_once(away)
        builder = HttpSink.builder
        for bad in (
            lambda: builder().build(),
            lambda: builder().set_url("host"),
            lambda: builder().set_url(3),  # type: ignore[arg-type]
            lambda: builder().set_body(3),  # type: ignore[arg-type]
            lambda: builder().set_method("GET"),
            lambda: builder().set_concurrency(0),
        ):
            with pytest.raises(ConfigurationError):
                bad()
        letters = CollectingSink()
        with in_process():
            env = StreamExecutionEnvironment.get_execution_environment()
            sink = builder().set_url(lambda text: text).set_body(lambda text: text).build()
            env.from_collection(["no URL"]).sink_to(sink).with_dead_letters(letters)
            env.execute()
        assert len(letters.results()) == 1


class Events:
    """A server of events with ids: after a request it sends those behind Last-Event-ID, and breaks off now and then,
    in the middle of an event."""

    def __init__(self) -> None:
        self.count = 0
        self.with_ids = True
        self.breaks_after = 1000
        self.closed = False
        events = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path != "/events":
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream; charset=utf-8")
                self.end_headers()
                sent = int(self.headers.get("Last-Event-ID", 0))
                self.wfile.write(b"retry: 20\n: a comment\n\n")
                for _ in range(events.breaks_after):
                    while sent >= events.count and not events.closed:
                        time.sleep(0.005)
                    if events.closed:
                        return
                    sent += 1
                    id = f"id: {sent}\n" if events.with_ids else ""
                    self.wfile.write(f"event: number\n{id}data: {sent}\ndata: x\n\n".encode())
                self.wfile.write(f"event: number\nid: {sent + 1}\nda".encode())

            def log_message(self, *arguments: Any) -> None: ...

        self.server = QuietServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/events"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def events() -> Iterator[Events]:
    events = Events()
    yield events
    events.closed = True
    events.server.shutdown()
    events.server.server_close()


def started(source: Any, results: CollectingSink, letters: CollectingSink | None = None) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_source(source, NO_EVENT_TIME, "source")
    if letters is not None:
        stream = stream.with_dead_letters(letters)
    stream.sink_to(results)
    return env.execute_async("follows")


class TestServerSentEvents:
    def test_breaks_and_crashes_cost_nothing(self, events: Events) -> None:
        events.breaks_after = 7
        source = SseSource.builder().set_url(events.url)
        source = source.set_deserializer(lambda event: (event.event, event.id, event.data)).build()
        results = CollectingSink()
        with in_process(epoch_records=5) as here:
            here.crash_job(epoch=3, at="acked")
            here.fail_attempt(epoch=5)
            events.count = 30
            with pytest.raises(JobCrashed):
                started(source, results).get_job_execution_result().result()
            source.close()  # the end of a process ends its threads; this one lives on
            job = started(SseSource(source.settings), results)
            wait_until(lambda: len(results.results()) >= 30)
            events.count = 40
            wait_until(lambda: len(results.results()) >= 40)
            job.cancel().result()
        assert_same_records(results.results(), [("number", str(n), f"{n}\nx") for n in range(1, 41)])

    def test_rejects_can_be_read_again(self, events: Events) -> None:
        events.count = 3
        results, letters = CollectingSink(), CollectingSink()
        source = (
            SseSource.builder().set_url(events.url).set_deserializer(lambda event: 1 // (int(event.id) - 2)).build()
        )
        with in_process():
            job = started(source, results, letters)
            wait_until(lambda: letters.results() and len(results.results()) == 2)
            job.cancel().result()
        (letter,) = letters.results()
        assert letter.where == f"message 2 of {events.url}, event '2'"
        plain = SseSource.builder().set_url(events.url).build()
        assert plain.read_again(letter.as_rejected()) == (ServerSentEvent("2\nx", "number", "2"),)

    def test_rejects_without_ids_are_letters_of_their_own(self, events: Events) -> None:
        events.count, events.with_ids = 3, False
        results, letters = CollectingSink(), CollectingSink()
        with in_process():
            job = started(SseSource.builder().set_url(events.url).set_deserializer(int).build(), results, letters)
            wait_until(lambda: len(letters.results()) == 3)
            job.cancel().result()
        assert len({letter.id for letter in letters.results()}) == 3

    def test_bad_input(self, events: Events) -> None:
        with pytest.raises(HeadwaterError, match=r"SseSource: .*/none answers 404 .*expected 200 and"):
            run_once(SseSource.builder().set_url(events.url.replace("/events", "/none")).build())
        with pytest.raises(HeadwaterError, match=r"SseSource: cannot read http://127.0.0.1:1/"):
            run_once(SseSource.builder().set_url("http://127.0.0.1:1/").build())
        with pytest.raises(ConfigurationError):
            SseSource.builder().build()


@contextlib.contextmanager
def websocket_server(handler: Any) -> Iterator[str]:
    with serve(handler, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join()


class TestWebSocket:
    def test_messages_come_once_although_attempts_fail_and_the_server_breaks_off(self) -> None:
        sent: list[str] = []

        def handler(connection: Any) -> None:
            assert connection.recv() == "subscribe"
            for _ in range(20):
                sent.append(str(len(sent)))
                connection.send(sent[-1] if len(sent) % 2 else sent[-1].encode())

        results = CollectingSink()
        with websocket_server(handler) as url, in_process(epoch_records=5) as here:
            here.fail_attempt(epoch=2)
            here.fail_attempt(epoch=4, at="begin")
            source = WebSocketSource.builder().set_url(url).set_greetings("subscribe")
            job = started(source.set_value_only_deserializer(SimpleStringSchema()).build(), results)
            wait_until(lambda: len(results.results()) >= 40)
            job.cancel().result()
        found = results.results()
        assert_same_records(found, [str(number) for number in range(len(found))])

    def test_bad_input(self, hooks: Webhooks) -> None:
        with pytest.raises(HeadwaterError, match=r"WebSocketSource: cannot connect to ws://127.0.0.1:1"):
            run_once(WebSocketSource.builder().set_url("ws://127.0.0.1:1").build())
        with pytest.raises(HeadwaterError, match=r"WebSocketSource: ws://127.*(501|404)"):
            run_once(WebSocketSource.builder().set_url(hooks.url.replace("http", "ws")).build())
        for bad in (lambda: WebSocketSource.builder().build(), lambda: WebSocketSource.builder().set_url("http://h")):
            with pytest.raises(ConfigurationError):
                bad()
