"""The end of a stream."""

from __future__ import annotations

from headwater.datastream.operator_settings import OperatorSettings
from headwater.graph.transformation import OperatorTransformation, PhysicalTransformation


class DataStreamSink(OperatorSettings):
    """A sink that was added to the job: it can be named and tuned, nothing comes after it."""

    def __init__(self, transformation: OperatorTransformation) -> None:
        self._transformation = transformation

    def _settings_of(self, method: str) -> PhysicalTransformation:
        return self._transformation
