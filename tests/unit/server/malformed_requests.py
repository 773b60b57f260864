"""Requests that no server may obey, made at random from a seed: each is malformed in one way, and otherwise right."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

from headwater.server.route import Field, Kind, Route
from headwater.server.routes import ROUTES

TRAVERSALS = (
    *("..", "../..", "../../../../etc/passwd", "/etc/passwd", "..\\..\\windows", "....//", "..%2f..%2fetc", "%2e%2e"),
    *("a/../../b", "~/.ssh/id_rsa", "file:///etc/passwd", "\x00", "job\x00.py", "\u202e", "..\uff0f", "a\nb", " ", "."),
)
WORDS = (
    "",
    "null",
    "NaN",
    "-1",
    "1e9",
    "0x10",
    "\u0661\u0662",
    "true",
    "{}",
    "[]",
    "'",
    '"',
    "%",
    "a" * 5000,
    "ä" * 33,
)


class Malformed:
    """An endless source of malformed requests to a server that shows `job`."""

    def __init__(self, seed: int, job: str) -> None:
        self._random = random.Random(seed)
        self._job = job
        self._kinds: tuple[Callable[[], bytes], ...] = (
            *(self._bad_name, self._bad_query, self._bad_body) * 2,
            *(self._unknown_path, self._wrong_method, self._bad_upload, self._bad_head, self._noise),
        )

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        while True:
            kind = self._random.choice(self._kinds)
            yield kind.__name__.strip("_"), kind()

    # --- malformed in what the routes mean

    def _bad_name(self) -> bytes:
        """A route with names, one of which cannot be one."""
        route = self._random.choice([route for route in ROUTES if ":" in route.path])
        names = re.findall(r":(\w+)", route.path)
        bad = self._random.choice(names)
        # A name of any words accepts all but what cannot be printed.
        texts = ("\x00", "a\nb", "\u202e", "a" * 5000) if bad in ("operator", "state", "series", "key") else None
        values = {name: self._good_name(name) for name in names} | {bad: self._bad_text(texts)}
        path = re.sub(r":(\w+)", lambda match: quote(values[match[1]], safe=""), route.path)
        return self._request(route.method, path, b"{}" if route.body is not None else b"")

    def _bad_query(self) -> bytes:
        """A field of a query with a value of another type."""
        fields = [
            (route, each)
            for route in ROUTES
            for each in route.query
            if each.choices or each.kind in (Kind.INTEGER, Kind.BOOLEAN)
        ]
        route, field = self._random.choice(fields)
        value = self._random.choice(("x", "-1", "1.5", "tru", "", "9" * 30, "\u0661", "%00", "1,2", "1e3"))
        return self._request(route.method, f"{self._path(route)}?{field.name}={quote(value)}")

    def _bad_body(self) -> bytes:
        """A body that is not JSON, is no object, or has a field of another type."""
        route = self._random.choice([route for route in ROUTES if route.body])
        assert route.body
        field = self._random.choice(route.body)
        body = self._random.choice(
            (
                self._bytes(40).replace(b" ", b"{"),
                b"{" * self._random.randint(1, 5000),
                b"[" * self._random.randint(1, 5000),
                json.dumps(self._random.choice(([], 1, "x", True, [{}]))).encode(),
                json.dumps({field.name: self._wrong_value(field)}).encode(),
                json.dumps({field.name: self._wrong_value(field)}).encode()[:-1],
                b'{"' + self._bytes(8) + b'": 1}\xff',
                b"x" * ((1 << 20) + 1) if self._random.random() < 0.01 else b"\x00",
            )
        )
        return self._request(route.method, self._path(route), body, "application/json")

    def _wrong_value(self, field: Field) -> Any:
        values: list[Any] = [1.5, [1], [None], {"a": {}}, True, 1, "no choice of anything"]
        allowed: dict[Kind, type | tuple[type, ...]] = {
            Kind.TEXT: str, Kind.INTEGER: int, Kind.BOOLEAN: bool, Kind.OBJECT: dict, Kind.TEXTS: (),
        }  # fmt: skip
        wrong = [
            value
            for value in values
            if not isinstance(value, allowed[field.kind])
            or (field.choices and isinstance(value, str))
            or (isinstance(value, bool) and field.kind is Kind.INTEGER)
        ]
        return self._random.choice(wrong)

    def _unknown_path(self) -> bytes:
        parts = [self._random.choice((*TRAVERSALS, *WORDS, "jobs", "v1", "jars")) for _ in range(8)]
        return self._request(self._random.choice(("GET", "POST", "DELETE")), "/" + "/".join(map(quote, parts)) + "/x")

    def _wrong_method(self) -> bytes:
        route = self._random.choice(ROUTES)
        known = {each.method for each in ROUTES if each.segments == route.segments} | {"HEAD", "CONNECT"}
        methods = [each for each in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE") if each not in known]
        return self._request(self._random.choice(methods), self._path(route))

    def _bad_upload(self) -> bytes:
        border = self._random.choice(("m", "m" * 70, "", "\xff", '"m"', "m; x=y"))
        name = self._random.choice((*TRAVERSALS, "x", "x.exe", "", ".py", "a" * 300 + ".py")).replace("\n", "\r\n")
        part = f'--m\r\nContent-Disposition: form-data; name="jarfile"; filename="{name}"\r\n\r\nx\r\n'.encode()
        body = self._random.choice(
            (part + b"--m--\r\n", part * 2 + b"--m--\r\n", part[:-8], b"--m", self._bytes(200), b"")
        )
        kind = self._random.choice(("multipart/form-data", "multipart/form-data; boundary=" + border, "text/plain"))
        return self._request("POST", self._random.choice(("/jars/upload", "/programs/upload")), body, kind)

    # --- malformed HTTP

    def _bad_head(self) -> bytes:
        """A request that is right but for one header."""
        bad = self._random.choice(
            (
                b"Host: evil.example",
                b"Host: localhost\r\nHost: localhost",
                b"Host: a b",
                b"Host: localhost\r\nContent-Length: -1",
                b"Host: localhost\r\nContent-Length: x",
                b"Host: localhost\r\nContent-Length: 3\r\nContent-Length: 4",
                b"Host: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked",
                b"Host: localhost\r\nTransfer-Encoding: nonsense",
                b"Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                b"Host: localhost\r\nOrigin: http://evil.example",
                b"Host: localhost\r\nSec-Fetch-Site: cross-site",
                b"Host: localhost\r\nX: " + b"x" * 40_000,
                b"Host: localhost\r\n" + b"".join(b"X-%d: %s\r\n" % (n, b"y" * 90) for n in range(400)) + b"Z: 1",
                b"Host: localhost\r\nBad Header: x",
                b"Host: localhost\r\n: x",
                b"Host: localhost\r\nX\x00: x",
            )
        )
        return b"POST /jars/upload HTTP/1.1\r\n" + bad + b"\r\nConnection: close\r\n\r\n"

    def _noise(self) -> bytes:
        return self._random.choice(
            (
                self._bytes(100).replace(b"\r\n", b"xx").lstrip(b"\r\n\x00 ") + b"?\r\n\r\n",
                b"GET\r\n\r\n",
                b"GET / HTTP/9.9\r\n\r\n",
                b"GET / HTTP/1.1 x\r\n\r\n",
                b"GET no-slash HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n",
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + self._bytes(50) + b"\r\n\r\n",  # TLS
                b"GET / HTTP/1.1\r\n" + b"X: y" * 30_000 + b"\r\n\r\n",
            )
        )

    # --- parts

    def _path(self, route: Route) -> str:
        return re.sub(r":(\w+)", lambda match: self._good_name(match[1]), route.path)

    def _good_name(self, name: str) -> str:
        known = {"jobid": self._job, "subtaskindex": "0", "attempt": "0", "checkpointid": "1", "jarid": "x_y.py"}
        return known.get(name, "f" * 32)

    def _bad_text(self, texts: tuple[str, ...] | None = None) -> str:
        # "." and spaces are no file, no id and no number; words that are a name somewhere are left out.
        return self._random.choice(texts or (*TRAVERSALS, "x" * 33, "g" * 32, "-1", "1.5", "a b", "ä", "a" * 5000))

    def _bytes(self, length: int) -> bytes:
        return bytes(self._random.choices(range(256), k=self._random.randint(1, length)))

    def _request(self, method: str, path: str, body: bytes = b"", kind: str = "") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
        return (head + (f"Content-Type: {kind}\r\n" if kind else "")).encode("latin-1", "replace") + b"\r\n" + body
