"""The page in front of what Flink answered: every shape that the recordings have, without a job.

What Flink has no route for (`live`, `why`, `state`, `log`) is made up here, in the shapes of our own routes.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from headwater.server.dashboard.page_files import CONTENT_SECURITY_POLICY, page_files

RECORDINGS = Path(__file__).parent.parent / "flink_rest"
POINTS = 120


def recorded() -> dict[tuple[str, str], tuple[int, str, Any]]:
    """{(method, path): (status, content type, body)}"""
    found: dict[tuple[str, str], tuple[int, str, Any]] = {}
    for path in sorted(RECORDINGS.glob("*.json")):
        file = json.loads(path.read_text(encoding="utf-8"))
        for each in file["answers"]:
            found.setdefault((file["method"], each["path"]), (each["status"], each["content_type"], each["body"]))
    return found


ANSWERS = recorded()


def job_in_state(state: str) -> str:
    """The id of the recorded job that was RUNNING, FINISHED, FAILED or CANCELED."""
    jobs = ANSWERS["GET", "/jobs/overview"][2]["jobs"]
    return str(next(job["jid"] for job in jobs if job["state"] == state))


RUNNING, FAILED = job_in_state("RUNNING"), job_in_state("FAILED")
SOURCE, COUNT = (vertex["id"] for vertex in ANSWERS["GET", f"/jobs/{RUNNING}"][2]["vertices"])


def live(*, silent: bool = False) -> dict[str, Any]:
    """The count is busy and skewed, and holds its source back. `silent`: nothing comes out."""
    now = int(time.time() * 1000)

    def subtasks(busy: float, held: float, records: tuple[int, int]) -> list[dict[str, Any]]:
        return [
            {
                "busyTimeMsPerSecond": busy,
                "backPressuredTimeMsPerSecond": held,
                "idleTimeMsPerSecond": 1000 - busy - held,
                "numRecordsIn": each,
                "numRecordsOut": each,
                "numRecordsInPerSecond": 4500.5,
                "numRecordsOutPerSecond": 4400.25,
                "currentInputWatermark": now - 5000,
                "watermarkLag": 5000,
                "numLateRecordsDropped": 3,
                "stateEntries": 20_000,
            }
            for each in records
        ]

    wave = [9000 + 1500 * math.sin(point / 9) for point in range(POINTS)]
    return {
        "time": now,
        "job": {},
        "vertices": {
            SOURCE: {"name": "numbers", "aggregate": {}, "subtasks": subtasks(120, 700, (1000, 1000))},
            COUNT: {
                "name": "count",
                "channels": [
                    {
                        "channel": "split 0 of numbers",
                        "watermark": now - 5000,
                        "idle": False,
                        "silent_since": now - 3000,
                    }
                ],
                "aggregate": {"stateEntries": 40_312, "stateBytes": 5_123_456},
                "subtasks": subtasks(940, 0, (1000, 9000)),
                "hotKeys": [{"operator": "count", "key": "'user-42'", "share": 0.31, "subtask": 1}],
            },
        },
        "edges": [{"source": SOURCE, "target": COUNT, "numRecordsPerSecond": 9001.0, "numRecords": 10_000}],
        "history": {
            "time": [now - 2000 * (POINTS - point) for point in range(POINTS)],
            "job": {
                "numRecordsInPerSecond": wave,
                "numRecordsOutPerSecond": [0.0 if silent else each / 10 for each in wave],
                "outputLatency": [each / 200 for each in wave],
                "epochDuration": [each / 400 for each in wave],
                "lastCheckpointDuration": [None if point < 10 else 120 + point % 7 for point in range(POINTS)],
            },
            "vertices": {},
        },
        "findings": [
            {
                "cause": "skew",
                "operator": "count",
                "vertex": COUNT,
                "subtask": 1,
                "text": "partition 1 receives 9.0 times the records of partition 0.",
                "cure": "choose a key with more values.",
            }
        ],
    }


WHY = {
    "causes": [
        {
            "cause": "watermark-stuck",
            "operator": "count",
            "text": "the watermark of partition 1 stands at 10:00:00 because channel 2 is silent since 10:00:01.",
            "cure": "set an idle timeout with with_idleness().",
        }
    ]
}
STATE = {
    "operators": [
        {
            "uid": "count",
            "name": "count",
            "epoch": 812,
            "states": [
                {
                    "name": "book",
                    "kind": "value",
                    "type": "tuple",
                    "ttl": True,
                    "entries": 40_000,
                    "estimated_bytes": 4e6,
                },
                {"name": "recent", "kind": "map", "type": None, "ttl": False, "entries": 312, "estimated_bytes": None},
            ],
        }
    ],
}
STATE_VALUE = {"key": 7, "value": {"payments": 12}, "epoch": 812}
BIG_KEY = 1234567890123456789
BIG_VALUE = [-(2**70), 2.0, 1e22, '9007199254740993 \\ud8001"', {"id": 2**53 + 1, "\U00010000": "\U000100007"}]
"""A double has no room for some of these numbers; the text must not be taken for one."""
STATE_PAGE = {"values": [{"key": 3, "value": [1, 2], "epoch": 812}], "next-page": None}
LOG = "\n".join(f"10:00:{n:02d} {'WARNING' if n % 9 == 0 else 'INFO'} epoch {n} took 23 ms" for n in range(60))


class RecordedServer:
    """Answers from the recordings. `done` is what was asked for that changes something."""

    def __init__(self) -> None:
        self.silent = False
        self.done: list[tuple[str, str, Any]] = []

    def answer(self, method: str, url: str, body: bytes) -> tuple[int, str, bytes, dict[str, str]]:
        path = url.split("?")[0]
        for file in page_files():
            if file.path == path:
                headers = {"Content-Security-Policy": CONTENT_SECURITY_POLICY}
                return 200, file.content_type, file.content, headers
        if method != "GET":
            self.done.append((method, url, json.loads(body) if body else None))
        status, kind, found = self._find(method, url, path)
        return status, kind, found.encode() if isinstance(found, str) else msgspec.json.encode(found), {}

    def _find(self, method: str, url: str, path: str) -> tuple[int, str, Any]:
        json_type, job = "application/json", f"/jobs/{RUNNING}"
        own: dict[tuple[str, str], Any] = {
            ("GET", f"{job}/live"): live(silent=self.silent),
            ("GET", f"{job}/why"): WHY,
            ("GET", f"{job}/state"): STATE,
            ("GET", f"{job}/state/count/book/7"): STATE_VALUE,
            ("GET", f"{job}/state/count/book"): STATE_PAGE,
            ("GET", f"{job}/state/count/recent/{BIG_KEY}"): {"key": BIG_KEY, "value": BIG_VALUE, "epoch": 812},
            ("GET", f"{job}/state/count/recent"): {
                "values": [{"key": BIG_KEY, "value": BIG_VALUE, "epoch": 812}],
                "next-page": None,
            },
            ("PATCH", f"{job}?mode=cancel"): {},
            ("PATCH", f"{job}/rescaling?parallelism=3"): {"request-id": "0" * 32},
            ("GET", f"{job}/rescaling/{'0' * 32}"): {"status": {"id": "COMPLETED"}, "operation": {}},
        }
        for asked in (url, path):
            if (method, asked) in own:
                return 200, json_type, own[method, asked]
        if path == f"{job}/log":
            return 200, "text/plain", LOG
        if method == "GET" and path.startswith(f"{job}/savepoints/"):
            return 200, json_type, {"status": {"id": "COMPLETED"}, "operation": {"location": "/savepoints/sp-1"}}
        missing = (404, json_type, {"errors": [f"Not found: {path}"]})
        return ANSWERS.get((method, url)) or ANSWERS.get((method, path)) or missing


@contextmanager
def recorded_server() -> Iterator[tuple[str, RecordedServer]]:
    """Yield the address and the server."""
    behind = RecordedServer()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, kind, content, headers = behind.answer(self.command, self.path, body)
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = _serve

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", behind
    finally:
        server.shutdown()
        server.server_close()
