"""Functions of strings that are written in another form: Base64, character sets, URLs, maps as text."""

from __future__ import annotations

import base64
import binascii
import re
import urllib.parse

from headwater.common.errors import ComputationError
from headwater.table.functions.kernels import row_by_row
from headwater.table.functions.signatures import BINARY, TEXT, call
from headwater.table.functions.strings import define
from headwater.table.types import logical as t


def _from_base64(value: str) -> str | None:
    try:
        return base64.b64decode(value, validate=False).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None


_CHARSETS = {
    "US-ASCII": "ascii",
    "ISO-8859-1": "latin-1",
    "UTF-8": "utf-8",
    "UTF-16BE": "utf-16-be",
    "UTF-16LE": "utf-16-le",
}


def _codec(charset: str) -> str:
    name = charset.upper()
    if name == "UTF-16":
        return "utf-16-be"
    if name not in _CHARSETS:
        raise ComputationError(f"unknown character set '{charset}'; known are {', '.join([*_CHARSETS, 'UTF-16'])}")
    return _CHARSETS[name]


def _encode(value: str, charset: str) -> bytes:
    mark = b"\xfe\xff" if charset.upper() == "UTF-16" else b""
    return mark + value.encode(_codec(charset), "replace")


def _decode(value: bytes, charset: str) -> str:
    if charset.upper() == "UTF-16" and value[:2] in (b"\xfe\xff", b"\xff\xfe"):
        return value.decode("utf-16", "replace")
    return value.decode(_codec(charset), "replace")


def _url_decode(value: str) -> str | None:
    if re.search(r"%(?![0-9A-Fa-f]{2})", value):
        return None
    return urllib.parse.unquote_plus(value, errors="replace")


def _url_encode(value: str) -> str:
    return urllib.parse.quote_plus(value, safe="*").replace("~", "%7E")


def _parse_url(url: str, part: str, key: str | None = None) -> str | None:
    """The parts of java.net.URL."""
    try:
        found = urllib.parse.urlsplit(url)
        if not found.scheme or not re.match(r"[A-Za-z][\w+.-]*:/", url):
            return None
        if part == "QUERY" and key is not None:
            match = re.search(rf"(?:^|&){re.escape(key)}=([^&]*)", found.query)
            return match.group(1) if match else None
        if key is not None:
            return None
        query = f"?{found.query}" if found.query else ""
        return {
            "HOST": found.hostname and found.netloc.rpartition("@")[2].partition(":")[0],
            "PATH": found.path,
            "QUERY": found.query or None,
            "REF": found.fragment or None,
            "PROTOCOL": found.scheme,
            "FILE": found.path + query,
            "AUTHORITY": found.netloc,
            "USERINFO": found.netloc.rpartition("@")[0] or None,
        }.get(part)
    except ValueError:
        return None


def _str_to_map(value: str, pairs: str = ",", keys: str = "=") -> list[tuple[str, str | None]]:
    found: dict[str, str | None] = {}
    for pair in re.split(pairs, value) if value else []:
        key, *rest = re.split(keys, pair, maxsplit=1)
        found[key] = rest[0] if rest else None
    return list(found.items())


FUNCTIONS = (
    define(
        "TO_BASE64",
        call(TEXT, result=t.STRING),
        "TO_BASE64(s)",
        "In base 64.",
        row_by_row(lambda value: base64.b64encode(value.encode()).decode()),
        "base64(CAST({0} AS BINARY))",
    ),
    define(
        "FROM_BASE64", call(TEXT, result=t.STRING), "FROM_BASE64(s)", "What base 64 encodes.", row_by_row(_from_base64)
    ),
    define(
        "ENCODE", call(TEXT, TEXT, result=t.BYTES), "ENCODE(s, charset)", "The string's bytes.", row_by_row(_encode)
    ),
    define(
        "DECODE",
        call(BINARY, TEXT, result=t.STRING),
        "DECODE(bytes, charset)",
        "The string of these bytes.",
        row_by_row(_decode),
    ),
    define(
        "URL_ENCODE",
        call(TEXT, result=t.STRING, nullable=True),
        "URL_ENCODE(s)",
        "For a URL's query, in UTF-8.",
        row_by_row(_url_encode),
    ),
    define(
        "URL_DECODE",
        call(TEXT, result=t.STRING, nullable=True),
        "URL_DECODE(s)",
        "What a URL's query encodes; NULL if it is malformed.",
        row_by_row(_url_decode),
    ),
    define(
        "PARSE_URL",
        call(TEXT, TEXT, TEXT, result=t.STRING, optional=1, nullable=True),
        "PARSE_URL(url, part [, key])",
        "A part of a URL: HOST, PATH, QUERY, REF, PROTOCOL, AUTHORITY, FILE, USERINFO; a key of the QUERY.",
        row_by_row(_parse_url),
    ),
    define(
        "STR_TO_MAP",
        call(TEXT, TEXT, TEXT, result=t.MapType(key=t.STRING, value=t.STRING), optional=2),
        "STR_TO_MAP(s [, pairs, keys])",
        "'a=1,b=2' as a map. The separators are regular expressions.",
        row_by_row(_str_to_map),
    ),
)
