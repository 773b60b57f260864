"""`CEP.dynamic_patterns(stream, patterns)`: the patterns that are looked for come from a stream too."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from headwater.cep.pattern_data import Functions, pattern_from_data, pattern_from_json, pattern_to_json
from headwater.cep.pattern_stream import PatternStream, keyed_stream, output_tag
from headwater.common.errors import PatternError, TypeMismatchError, short_repr
from headwater.common.output_tag import OutputTag
from headwater.common.typeinfo import TypeInformation
from headwater.common.watermark_strategy import WatermarkGenerator, WatermarkOutput, WatermarkStrategy
from headwater.datastream.connected_streams import add_two_input_node
from headwater.datastream.data_stream import DataStream
from headwater.datastream.timestamps import has_watermarks
from headwater.graph.transformation import OperatorTransformation
from headwater.operators.cep.dynamic import DynamicCepOperator, PatternUpdate
from headwater.operators.cep.functions import PatternProcessFunction
from headwater.operators.cep.operator import CepSettings
from headwater.operators.cep.steps import PatternSteps

_KEYS = frozenset({"id", "version", "pattern", "remove"})


@dataclass(frozen=True)
class PatternReader:
    """Reads the records of a pattern stream: dicts, or their JSON."""

    functions: Functions

    def read(self, record: Any) -> PatternUpdate:
        if isinstance(record, str | bytes):
            try:
                record = json.loads(record)
            except (ValueError, RecursionError) as error:
                raise PatternError(f"the record is no JSON: {error}") from None
        if not isinstance(record, dict) or set(map(str, record)) - _KEYS:
            raise PatternError(
                f"expected an object with id, version, and pattern or remove; found {short_repr(record, 200)}"
            )
        pattern_id, version = record.get("id"), record.get("version")
        if not isinstance(pattern_id, str) or not pattern_id:
            raise PatternError(f"'id' must be a text, found {pattern_id!r}")
        if isinstance(version, bool) or not isinstance(version, int):
            raise PatternError(f"'version' must be a whole number, found {version!r}")
        if (record.get("remove") is True) == ("pattern" in record):
            raise PatternError("expected either 'pattern', or 'remove' as true")
        if "pattern" not in record:
            return PatternUpdate(pattern_id, version, None)
        pattern = pattern_from_data(record["pattern"], self.functions)
        return PatternUpdate(pattern_id, version, pattern_to_json(pattern))

    def steps(self, text: str) -> PatternSteps:
        return pattern_from_json(text, self.functions).steps()


class DynamicPatternStream(PatternStream):
    """As `PatternStream`; a match also has `pattern_id` and `version`."""

    def __init__(
        self,
        stream: DataStream,
        patterns: DataStream,
        reader: PatternReader,
        finish_replaced: bool,
        settings: CepSettings | None = None,
        rejected_tag: OutputTag | None = None,
    ) -> None:
        """Not for users: call `CEP.dynamic_patterns`."""
        self._stream = stream
        self._patterns = patterns
        self._reader = reader
        self._finish_replaced = finish_replaced
        self._settings = CepSettings() if settings is None else settings
        self._rejected_tag = rejected_tag

    def side_output_rejected_patterns(self, output_tag_of_rejected: OutputTag) -> DynamicPatternStream:
        """Send records that are no pattern to this side output, as (record, reason), instead of dropping them."""
        tag = output_tag("side_output_rejected_patterns", output_tag_of_rejected)
        return self._copy(self._settings, tag)

    def _with(self, **changes: Any) -> DynamicPatternStream:
        return self._copy(replace(self._settings, **changes), self._rejected_tag)

    def _copy(self, settings: CepSettings, rejected: OutputTag | None) -> DynamicPatternStream:
        return DynamicPatternStream(
            self._stream, self._patterns, self._reader, self._finish_replaced, settings, rejected
        )

    def _add(self, function: PatternProcessFunction, output_type: TypeInformation | None) -> DataStream:
        keyed, patterns = keyed_stream(self._stream), self._patterns
        if self._settings.event_time and not has_watermarks(patterns._transformation):
            patterns = patterns.assign_timestamps_and_watermarks(WatermarkStrategy.for_generator(_AlwaysIdle))
        patterns = patterns.broadcast()
        tag = None if self._rejected_tag is None else self._rejected_tag.tag_id
        factory = partial(
            DynamicCepOperator,
            keyed._key_selector,
            self._reader.read,
            self._reader.steps,
            function,
            self._settings,
            tag,
            self._finish_replaced,
        )
        node = OperatorTransformation(
            name="Dynamic CEP",
            kind="dynamic patterns",
            upstreams=(patterns._transformation, keyed._transformation),
            factory=factory,
            function=(function, self._reader),
            keyed=True,
            needs_ticks=not self._settings.event_time,
        )
        return add_two_input_node((keyed, patterns), node, output_type)


class _AlwaysIdle(WatermarkGenerator):
    """For a stream of patterns that says nothing about time: it does not hold event time back."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.mark_idle()

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.mark_idle()


def check_patterns(stream: DataStream, patterns: Any) -> None:
    """Raise unless `patterns` is a stream of the same environment."""
    if not isinstance(patterns, DataStream):
        raise TypeMismatchError(f"dynamic_patterns() expects a stream of patterns, found {short_repr(patterns)}")
    if patterns._environment is not stream._environment:
        raise TypeMismatchError("dynamic_patterns() of streams of two environments; build both with the same one")
