"""Rows that come too late: dropped and counted, and handed to the table that keeps them, if the job has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwater.operators.functions.runtime_context import RuntimeContext
from headwater.operators.window.base import LATE_RECORDS_DROPPED
from headwater.table.plan.expressions import Column
from headwater.table.stream.changes import Changes
from headwater.table.stream.operators.base import EpochOperator

LATE_ROWS = "late rows"
"""The side output in which operators tell what they dropped."""


@dataclass(frozen=True)
class LateRows:
    """What an operator dropped in an epoch, and the watermark that had passed it. A record of the side output."""

    operator: str
    watermark_ms: int
    columns: tuple[Column, ...]
    changes: Changes


class LateDrop:
    """Takes the late rows of an operator that is being opened. `keep`: they go to the side output, too."""

    def __init__(self, operator: EpochOperator, keep: bool) -> None:
        self._operator = operator
        self._keep = keep
        self.counter = RuntimeContext(operator.context).get_metrics_group().counter(LATE_RECORDS_DROPPED)

    def drop(self, changes: Changes, columns: Sequence[Column]) -> None:
        """Count the rows. `columns` are theirs."""
        self.counter.inc(int(np.abs(changes.weight_array()).sum()))
        if self._keep:
            operator = self._operator
            late = LateRows(operator.context.name, operator.watermark_before, tuple(columns), changes)
            operator.output.emit_side(LATE_ROWS, [late], None)
