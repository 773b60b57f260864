"""The end of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from headwater.common.connector import Sink
from headwater.common.errors import PlanError
from headwater.datastream.dead_letters import dead_letters_of, letter_sink
from headwater.datastream.operator_settings import OperatorSettings
from headwater.graph.transformation import OperatorTransformation, PhysicalTransformation


class DataStreamSink(OperatorSettings):
    """A sink that was added to the job: it can be named and tuned, nothing comes after it."""

    def __init__(
        self, transformation: OperatorTransformation, add: Callable[[OperatorTransformation], object] | None = None
    ) -> None:
        """`add` adds an operator to the job."""
        self._transformation = transformation
        self._add = add

    def with_dead_letters(self, sink: Sink | str) -> Self:
        """Send the records that this sink refuses (`SerializationError`) to `sink`, and go on without them.

        See `DataStream.with_dead_letters`.
        """
        if self._add is None:
            raise PlanError("with_dead_letters() of a sink that is no part of a job")
        self._add(dead_letters_of(self._transformation, letter_sink(sink)))
        return self

    def _settings_of(self, method: str) -> PhysicalTransformation:
        return self._transformation
