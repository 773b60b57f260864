"""A Unix socket at the driver, to operate a running job from another terminal.

A request is one line of JSON, and so is the answer: `{"ok": ...}` or `{"error": "text"}`. After a request to end the
job, the client gets a second line when the job has ended: `{"ended": "FINISHED", "problem": ""}`. Nothing is ever
unpickled, and the socket is in a directory that only the job's user can enter.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from headwater.common.completable_future import CompletableFuture
from headwater.common.errors import HeadwaterError, short_repr
from headwater.common.job_status import JobStatus
from headwater.common.machine.hardware import hardware
from headwater.common.machine.processes import start_time
from headwater.common.query_error import QueryError, QueryProblem
from headwater.runtime.job.run_directory import JobCard, RunDirectory, token_digest
from headwater.runtime.slot.starter import local_host

log = logging.getLogger(__name__)

T = TypeVar("T")

Request = dict[str, Any]
Answer = dict[str, Any]

MAX_REQUEST_BYTES = 4 << 20
"""Room for a query of 10,000 keys. What is longer is read to its end, and refused."""
ACCEPT_AGAIN_SECONDS = 0.5
REQUEST_SECONDS = 10
"""Time limit for a client's request."""
LAST_ANSWERS_SECONDS = 5
_POLL_SECONDS = 0.05


class OperableJob(Protocol):
    """The job that the socket operates: its handle in this process."""

    def get_job_status(self) -> CompletableFuture[JobStatus]: ...
    def progress(self) -> dict[str, Any]: ...
    def checkpoints(self) -> list[dict[str, Any]]: ...
    def describe(self) -> dict[str, Any]: ...
    def exceptions(self) -> dict[str, Any]: ...
    def checkpoint(self, epoch: object) -> dict[str, Any]: ...
    def metrics(self, since_ms: int = 0) -> dict[str, Any]: ...
    def why(self) -> list[dict[str, Any]]: ...
    def locate_state(self) -> dict[str, Any]: ...
    def ask_slot(self, stage: int, partition: int, request: dict[str, Any]) -> dict[str, Any]: ...
    def series(self) -> list[dict[str, Any]]: ...
    def read_archive(self, series: str, key: str, from_ms: int, to_ms: int, epoch: int) -> dict[str, Any]: ...
    def trigger_savepoint(self, savepoint_directory: str | None = None) -> CompletableFuture[str]: ...
    def ask_to_stop(self, drain: bool, savepoint_directory: str | None = None) -> CompletableFuture[str]: ...
    def trigger_checkpoint(self) -> CompletableFuture[int]: ...
    def rescale(self, parallelism: int) -> CompletableFuture[float]: ...
    def replay_dead_letters(self, directory: str, ids: list[str] | None) -> CompletableFuture[dict[str, Any]]: ...
    def cancel(self) -> CompletableFuture[None]: ...


def open_control(
    state_directory: str,
    job: OperableJob,
    job_id: str,
    name: str,
    checkpoint_dir: str,
    parallelism: Callable[[], int],
    token: str | None = None,
) -> ControlServer | None:
    """Make the job operable from other terminals. If that fails, warn and return None: the job runs all the same."""
    card = JobCard(
        job_id,
        name,
        os.getpid(),
        socket.gethostname(),
        int(time.time() * 1000),
        checkpoint_dir,
        token_digest=token_digest(token),
        process=start_time(os.getpid()) or "",
    )
    server = ControlServer(RunDirectory(state_directory), card, job, parallelism)
    try:
        server.start()
    except (OSError, HeadwaterError) as error:
        log.warning("job '%s' cannot be operated from another terminal: %s", name, error)
        return None
    return server


class ControlServer:
    """Answers from `start` to `close`. Each request has its own thread, so that it can wait for a savepoint."""

    def __init__(
        self, directory: RunDirectory, card: JobCard, job: OperableJob, parallelism: Callable[[], int]
    ) -> None:
        self._directory = directory
        self._card = card
        self._job = job
        self._parallelism = parallelism
        self._listener: socket.socket
        self._lock = threading.Lock()
        self._answering: set[threading.Thread] = set()
        self._watching: list[socket.socket] = []  # connections that wait for the job's end
        self._ended = threading.Event()
        self._last_words: Answer = {}

    def start(self) -> None:
        self._directory.create()
        self._directory.cards()  # removes the cards of dead processes
        self._listener = self._directory.listen(self._card)
        threading.Thread(target=self._accept, name="control", daemon=True).start()
        self._directory.publish(self._card)

    def close(self, status: JobStatus, problem: str = "") -> None:
        """Send the last answers. Called when the job has ended, before the program that started it knows."""
        self._directory.withdraw(self._card)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._last_words = {"ended": status.name, "problem": problem}
        self._ended.set()
        deadline = time.monotonic() + LAST_ANSWERS_SECONDS
        with self._lock:
            answering = list(self._answering)
        for thread in answering:
            thread.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            watching, self._watching = self._watching, []
        for connection in watching:
            _send(connection, self._last_words)
            connection.close()

    # --- connections

    def _accept(self) -> None:
        while not self._ended.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed, or there are too many open files just now
                self._ended.wait(ACCEPT_AGAIN_SECONDS)
                continue
            threading.Thread(target=self._serve, args=(connection,), name="control-request", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        stays_open = False
        try:
            try:
                line = _receive(connection)
            except QueryError as error:
                return _send(connection, {"error": str(error), "query": error.to_json()})
            with self._lock:
                self._answering.add(threading.current_thread())
            try:
                answer, stays_open = self._answer(line)
                _send(connection, answer)
                stays_open = stays_open and self._watch(connection)
            finally:
                with self._lock:
                    self._answering.discard(threading.current_thread())
        except OSError:
            pass  # the client is gone
        finally:
            if not stays_open:
                connection.close()

    def _watch(self, connection: socket.socket) -> bool:
        """Keep the connection open until the job ends. Return False if the job has already ended."""
        with self._lock:
            if not self._ended.is_set():
                self._watching.append(connection)
                return True
        _send(connection, self._last_words)
        return False

    # --- requests

    def _answer(self, line: bytes) -> tuple[Answer, bool]:
        """Return the answer, and True if the client also waits for the job's end."""
        try:
            request = json.loads(line)
            verb = request.get("verb") if isinstance(request, dict) else None
            if verb not in _VERBS:
                raise HeadwaterError(f"unknown request {short_repr(verb)}; expected one of {', '.join(_VERBS)}")
            return {"ok": _VERBS[verb](self, request)}, verb in ("stop", "cancel")
        except QueryError as error:
            return {"error": str(error), "query": error.to_json()}, False
        except HeadwaterError as error:
            return {"error": str(error)}, False
        except Exception as error:
            log.debug("a request failed", exc_info=True)
            return {"error": f"{type(error).__name__}: {error}"}, False

    def _status(self, request: Request) -> Answer:
        return {
            "job_id": self._card.job_id,
            "name": self._card.name,
            "status": self._job.get_job_status().result().name,
            "parallelism": self._parallelism(),
            "progress": self._job.progress(),
        }

    def _checkpoints(self, request: Request) -> list[Answer]:
        return self._job.checkpoints()

    def _describe(self, request: Request) -> Answer:
        card = self._card
        return self._job.describe() | {
            "checkpoint_dir": card.checkpoint_dir,
            "host": card.host,
            "pid": card.pid,
            "slot_host": local_host(),  # how slots name this host
            "hardware": hardware(),
        }

    def _exceptions(self, request: Request) -> Answer:
        return self._job.exceptions()

    def _checkpoint(self, request: Request) -> Answer:
        return self._job.checkpoint(request.get("id"))

    def _metrics(self, request: Request) -> Answer:
        since_ms = request.get("since", 0)
        if not isinstance(since_ms, int | float):
            raise HeadwaterError(f"'since' is {short_repr(since_ms)}; expected milliseconds since 1970")
        return self._job.metrics(int(since_ms))

    def _why(self, request: Request) -> list[Answer]:
        return self._job.why()

    def _locate_state(self, request: Request) -> Answer:
        return self._job.locate_state()

    def _ask_slot(self, request: Request) -> Answer:
        stage, partition, query = request.get("stage"), request.get("partition"), request.get("query")
        if not isinstance(stage, int) or not isinstance(partition, int) or not isinstance(query, dict):
            raise HeadwaterError("ask_slot needs a stage and a partition, which are numbers, and a query")
        return self._job.ask_slot(stage, partition, query)

    def _series(self, request: Request) -> list[Answer]:
        return self._job.series()

    def _read_archive(self, request: Request) -> Answer:
        texts = [request.get(name) for name in ("series", "key")]
        numbers = [request.get(name) for name in ("from_ms", "to_ms", "epoch")]
        if not all(isinstance(text, str) for text in texts) or not all(isinstance(each, int) for each in numbers):
            raise HeadwaterError("read_archive needs a series and a key, which are text, and from_ms, to_ms, epoch")
        return self._job.read_archive(*texts, *numbers)  # type: ignore[arg-type]

    def _savepoint(self, request: Request) -> str:
        return self._result(self._job.trigger_savepoint(_directory(request)))

    def _stop(self, request: Request) -> str:
        drain = request.get("drain") is True
        return self._result(self._job.ask_to_stop(drain, _directory(request)))

    def _trigger_checkpoint(self, request: Request) -> int:
        return self._result(self._job.trigger_checkpoint())

    def _rescale(self, request: Request) -> float:
        return self._result(self._job.rescale(request.get("parallelism")))  # type: ignore[arg-type]  # it checks

    def _replay(self, request: Request) -> Answer:
        directory, ids = request.get("directory"), request.get("ids")
        if not isinstance(directory, str) or not (
            ids is None or (isinstance(ids, list) and all(isinstance(each, str) for each in ids))
        ):
            raise HeadwaterError("replay needs a directory, and a list of ids or none")
        return self._result(self._job.replay_dead_letters(directory, ids))

    def _cancel(self, request: Request) -> None:
        self._job.cancel()

    def _result(self, future: CompletableFuture[T]) -> T:
        """Wait for the result, but not longer than the job lasts."""
        while not future.done():
            if self._ended.wait(_POLL_SECONDS) and not future.done():
                raise HeadwaterError(f"the job ended before that was done ({self._last_words['ended']})")
        return future.result()


_VERBS: dict[str, Callable[[ControlServer, Request], Any]] = {
    "status": ControlServer._status,
    "checkpoints": ControlServer._checkpoints,
    "describe": ControlServer._describe,
    "exceptions": ControlServer._exceptions,
    "checkpoint": ControlServer._checkpoint,
    "metrics": ControlServer._metrics,
    "why": ControlServer._why,
    "locate_state": ControlServer._locate_state,
    "ask_slot": ControlServer._ask_slot,
    "series": ControlServer._series,
    "read_archive": ControlServer._read_archive,
    "savepoint": ControlServer._savepoint,
    "stop": ControlServer._stop,
    "trigger_checkpoint": ControlServer._trigger_checkpoint,
    "rescale": ControlServer._rescale,
    "replay": ControlServer._replay,
    "cancel": ControlServer._cancel,
}


def _directory(request: Request) -> str | None:
    value = request.get("directory")
    if value is None or isinstance(value, str):
        return value
    raise HeadwaterError(f"'directory' is {short_repr(value)}; expected text")


def _receive(connection: socket.socket) -> bytes:
    """Return one line. Raises OSError if none comes in time, QueryError after the end of one that is too long."""
    connection.settimeout(REQUEST_SECONDS)
    received, length, part = bytearray(), 0, b""
    until = time.monotonic() + REQUEST_SECONDS
    while not part.endswith(b"\n"):
        part = connection.recv(1 << 16)
        length += len(part)
        if not part or time.monotonic() > until or length > 8 * MAX_REQUEST_BYTES:
            raise ConnectionError("no request")
        if length <= MAX_REQUEST_BYTES + 1:
            received += part
    if length > MAX_REQUEST_BYTES + 1:
        text = f"the request has {length:,} bytes; the driver takes {MAX_REQUEST_BYTES:,}: ask for less at once"
        raise QueryError(QueryProblem.BAD_REQUEST, text)
    return bytes(received)


def _send(connection: socket.socket, answer: Answer) -> None:
    with contextlib.suppress(OSError):  # the client is gone
        connection.sendall(json.dumps(answer, default=str).encode() + b"\n")
