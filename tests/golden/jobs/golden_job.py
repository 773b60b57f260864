"""What a golden job is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headwater.datastream import DataStream, StreamExecutionEnvironment


@dataclass(frozen=True)
class GoldenJob:
    """A job with a fixed input, and its output as a plain loop over that input gives it.

    The output must not depend on parallelism, on where epochs end or on how far the watermark lags: then any
    difference between two runs is a fault of the engine.
    """

    name: str
    build: Callable[[StreamExecutionEnvironment], DataStream]
    expected: Callable[[], Counter[Any]]
    epoch_records: int
    """Records per source and epoch: so few that the input makes at least six epochs."""
