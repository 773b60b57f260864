"""Log files over HTTP: as long as they are now, or their end."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response, StreamingResponse

from headwater.server.http_error import HttpError

PART_BYTES = 256 << 10


def listed(path: str | None) -> dict[str, Any]:
    """Flink's list of log files: the one, if it exists."""
    status = _status(path)
    if path is None or status is None:
        return {"logs": []}
    return {"logs": [{"name": os.path.basename(path), "size": status.st_size, "mtime": int(status.st_mtime * 1000)}]}


def log_response(
    path: str | None, whose: str, last_bytes: int | None = None, name: str | None = None, begin: int | None = None
) -> Response:
    """The file as text. Raises HttpError 404 if there is none, or none of that name.

    A log grows while it is sent: what comes after the beginning of the answer is not in it.
    """
    status = _status(path)
    if path is None or status is None or name not in (None, os.path.basename(path)):
        raise HttpError(
            404,
            f"This file does not exist: {whose} has no log file{f' {name}' if name else ''}. Its output goes where the "
            "process that started it sends it.",
        )
    begin = min(begin or 0, status.st_size)
    if last_bytes is not None:
        begin = max(begin, status.st_size - last_bytes)
    headers = {"Content-Length": str(status.st_size - begin)}
    return StreamingResponse(
        _parts(path, begin, status.st_size), headers=headers, media_type="text/plain; charset=UTF-8"
    )


def _status(path: str | None) -> os.stat_result | None:
    try:
        status = os.stat(path) if path is not None else None
    except OSError:
        return None
    return status if status is not None and stat.S_ISREG(status.st_mode) else None


async def _parts(path: str, begin: int, end: int) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(open, path, "rb") as file:
        file.seek(begin)
        left = end - begin
        while left > 0:
            part = await asyncio.to_thread(file.read, min(PART_BYTES, left))
            left -= len(part)
            if not part:
                part = b"\0" * left  # the file was cut in the meantime, and its length is announced
                left = 0
            yield part
