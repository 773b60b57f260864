"""Jobs with streaming DataFrames: Structured Streaming calls us once per micro-batch, which is an epoch."""

from __future__ import annotations

from typing import Any


def run_streaming_query(coordinator: Any, context: Any, layout: Any, epoch_ms: int, *, ticks: bool) -> None:
    raise NotImplementedError
