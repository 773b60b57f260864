"""What a kernel may know besides its arguments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Frame:
    """The rows that are computed together. `now_ms` is fixed for them: time stands still within a frame."""

    rows: int
    zone: str = "UTC"
    """The session's time zone (`table.local-time-zone`)."""
    now_ms: int = 0
    """Milliseconds since the epoch at which this frame is computed."""
    query_start_ms: int | None = None
    """When the query started, if CURRENT_TIMESTAMP and the like stand still for the whole query (batch)."""
    watermark_ms: int | None = None
    """The operator's watermark; None before there is one."""
