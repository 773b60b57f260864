"""The files of the dashboard: read once, served from memory, under an address that changes when any of them does.

All files but index.html are below `/dashboard/<version>/`, where the version is a hash of all of them. Modules import
each other by relative paths and so stay within their version; browsers may keep a version for ever, and ask for
index.html each time.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

CONTENT_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""Files of other kinds (licences, a README) are not served."""

FOR_EVER = "public, max-age=31536000, immutable"
ASK_EACH_TIME = "no-cache"

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""For index.html: nothing from another host, no inline script, no inline style, no eval."""


@dataclass(frozen=True)
class PageFile:
    """One file: its path at the server, and its answer."""

    path: str
    content: bytes
    content_type: str
    cache_control: str


@cache
def page_files() -> tuple[PageFile, ...]:
    """Return all files, index.html (path `/`) first."""
    found = dict(_read(resources.files("headwater.server.dashboard") / "page", ""))
    index = found.pop("index.html")
    digest = hashlib.sha256()
    for name, content in sorted(found.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    version = digest.hexdigest()[:16]
    first = PageFile("/", index.replace(b"@VERSION@", version.encode()), CONTENT_TYPES["html"], ASK_EACH_TIME)
    return first, *(
        PageFile(f"/dashboard/{version}/{name}", content, CONTENT_TYPES[_kind(name)], FOR_EVER)
        for name, content in sorted(found.items())
    )


def _read(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    """Return (path below the page's folder, content) of every file that is served."""
    found = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _read(entry, f"{prefix}{entry.name}/")
        elif _kind(entry.name) in CONTENT_TYPES:
            found.append((prefix + entry.name, entry.read_bytes()))
    return found


def _kind(name: str) -> str:
    return name.rpartition(".")[2]
