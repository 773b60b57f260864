"""A schema registry for tests: Confluent's REST interface, with references, passwords, and faults on demand."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


class Registry:
    """What is registered, and what was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.schemas: dict[int, dict[str, Any]] = {}  # {id: answer}
        self.versions: dict[str, list[int]] = {}  # {subject: ids}
        self.requests: list[str] = []
        self.password: str | None = None
        self.failures: list[int] = []
        """The statuses of the next answers, whatever is asked."""
        self.compatible = True

    def add(self, subject: str, text: str, references: list[dict[str, Any]] | None = None) -> int:
        for schema_id in self.versions.get(subject, []):
            if self.schemas[schema_id]["schema"] == text:
                return schema_id
        schema_id = len(self.schemas) + 100
        self.schemas[schema_id] = {"schema": text, "references": references or []}
        self.versions.setdefault(subject, []).append(schema_id)
        return schema_id

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if method == "GET" and parts[:2] == ["schemas", "ids"]:
            found = self.schemas.get(int(parts[2]))
            return (200, found) if found else (404, {"error_code": 40403, "message": f"Schema {parts[2]} not found"})
        if method == "GET" and parts[0] == "subjects" and parts[2] == "versions":
            ids = self.versions.get(parts[1])
            if not ids:
                return 404, {"error_code": 40401, "message": f"Subject '{parts[1]}' not found."}
            schema_id = ids[-1] if parts[3] == "latest" else ids[int(parts[3]) - 1]
            return 200, {"subject": parts[1], "id": schema_id, **self.schemas[schema_id]}
        if method == "POST" and parts[0] == "subjects" and len(parts) == 3:
            if not self.compatible:
                return 409, {"error_code": 409, "message": "Schema being registered is incompatible"}
            return 200, {"id": self.add(parts[1], body["schema"])}
        if method == "POST" and parts[0] == "subjects":
            for schema_id in self.versions.get(parts[1], []):
                if self.schemas[schema_id]["schema"] == body["schema"]:
                    return 200, {"id": schema_id, "schema": body["schema"]}
            return 404, {"error_code": 40403, "message": "Schema not found"}
        return 405, {"message": "what?"}


@contextmanager
def running_registry() -> Iterator[Registry]:
    registry = Registry("")

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            registry.requests.append(f"{self.command} {self.path}")
            expected = registry.password and "Basic " + base64.b64encode(registry.password.encode()).decode()
            if registry.failures:
                status, answer = registry.failures.pop(0), {"message": "not now"}
            elif expected and self.headers.get("Authorization") != expected:
                status, answer = 401, {"message": "Unauthorized"}
            else:
                status, answer = registry.answer(self.command, self.path, body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = handle_one

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
