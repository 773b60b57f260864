"""The entry points of complex event processing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headwater.cep.dynamic import DynamicPatternStream, PatternReader, check_patterns
from headwater.cep.pattern import Pattern
from headwater.cep.pattern_stream import PatternStream
from headwater.cep.trace import PatternTrace, trace
from headwater.common.errors import TypeMismatchError, short_repr
from headwater.datastream.data_stream import DataStream


class CEP:
    """As in Flink."""

    @staticmethod
    def pattern(
        stream: DataStream, pattern: Pattern, comparator: Callable[[Any, Any], int] | None = None
    ) -> PatternStream:
        """Look for `pattern` in `stream`: in the events of each key if it is keyed, otherwise in all of them.

        `comparator` orders events of one timestamp. Raises `PatternError` if the pattern cannot mean anything.
        """
        if not isinstance(stream, DataStream):
            raise TypeMismatchError(f"CEP.pattern() expects a stream, found {short_repr(stream)}")
        if not isinstance(pattern, Pattern):
            raise TypeMismatchError(f"CEP.pattern() expects a Pattern, found {short_repr(pattern)}")
        found = PatternStream(stream, pattern)
        return found if comparator is None else found.with_comparator(comparator)

    @staticmethod
    def trace(
        pattern: Pattern, events: Iterable[Any], timestamps: Callable[[Any], int] | Iterable[int] | None = None
    ) -> PatternTrace:
        """Run `pattern` over a few events of one key, here and now, and tell what became of each partial match.

        `timestamps` are in ms: one per event, or a function of the event; without them, event number n happens at n.
        The result's text is a table, `to_svg()` is a picture. Not for whole streams: it keeps all it sees.
        """
        return trace(pattern, events, timestamps)

    @staticmethod
    def dynamic_patterns(
        stream: DataStream,
        patterns: DataStream,
        *,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        partial_matches: str = "drop",
    ) -> DynamicPatternStream:
        """Look for the patterns that `patterns` brings: each record adds, replaces or removes one.

        A record is `{"id": text, "version": number, "pattern": {...}}` (see `headwater.cep.pattern_data`), or has
        `"remove": true` instead of a pattern; or is the JSON of this. A change needs a greater version. It holds for
        the events from its record's timestamp on; in processing time, or without a timestamp, from when it is read.
        Patterns may name `functions`. `partial_matches` of a version that is replaced or removed are dropped ("drop"),
        or go on ("finish").
        """
        if not isinstance(stream, DataStream):
            raise TypeMismatchError(f"CEP.dynamic_patterns() expects a stream, found {short_repr(stream)}")
        check_patterns(stream, patterns)
        if partial_matches not in ("drop", "finish"):
            raise TypeMismatchError(f"partial_matches must be 'drop' or 'finish', found {partial_matches!r}")
        return DynamicPatternStream(stream, patterns, PatternReader(functions or {}), partial_matches == "finish")
