"""The end of a stream of refused records."""

from __future__ import annotations

from typing import Any

from headwater.common.connector import Sink
from headwater.common.dead_letter import DeadLetter
from headwater.common.rejected import Rejected
from headwater.operators.sink import SinkOperator


class DeadLetterSinkOperator(SinkOperator):
    """Passes letters to a sink. What a source rejected becomes a letter here."""

    def __init__(self, sink: Sink, operator: str, uid: str) -> None:
        """`operator` and `uid` are those of the node that refuses records."""
        super().__init__(sink)
        self._operator = operator
        self._uid = uid

    def process_batch(self, values: list[Any], timestamps: list[int | None] | None, input_index: int = 0) -> None:
        context = self.context
        super().process_batch(
            [
                DeadLetter.of_source(
                    value, self._operator, self._uid, context.job_id, context.epoch, context.processing_time_ms
                )
                if isinstance(value, Rejected)
                else value
                for value in values
            ],
            timestamps,
        )
