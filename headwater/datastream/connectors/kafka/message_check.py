"""What the parts of messages must be, so that whatever a checkpoint promises can be written. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any, Final

from headwater.common.errors import SerializationError, short_repr

_BYTES: Final = frozenset((bytes, type(None)))
_TEXT: Final = frozenset((str,))
_TOPIC: Final = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
"""Kafka's rule for names of topics."""


def check_bytes(what: str, column: Sequence[Any]) -> None:
    """Raise unless all that a serialiser returned is bytes or None."""
    if not _BYTES.issuperset(map(type, column)):
        raise _unfit(what, "bytes or None", next(each for each in column if type(each) not in _BYTES))


def check_topics(topics: Sequence[Any]) -> None:
    """Raise unless all that a selector returned can be names of topics."""
    if not _TEXT.issuperset(map(type, topics)):
        raise _unfit("topic", "a str", next(each for each in topics if type(each) is not str))
    for topic in set(topics):
        if not _TOPIC.fullmatch(topic):
            raise _unfit("topic", "a name of up to 249 letters, digits, '.', '_' and '-'", topic)


def partition_numbers(given: Iterable[Any]) -> list[int]:
    """Return what a partitioner returned, as ints. Raises unless all can be numbers of partitions."""
    numbers: list[int] = []
    for each in given:
        number = index(each) if hasattr(each, "__index__") else -1
        if number < 0:
            raise _unfit("partition", "an int that is not negative", each)
        numbers.append(number)
    return numbers


def headers_as_pairs(given: Any) -> list[tuple[str, bytes | None]]:
    """Return what a provider of headers returned, as it can be sent. Raises for what it may not return."""
    pairs: list[tuple[str, bytes | None]] = []
    if not isinstance(given, list | tuple):
        raise _unfit("headers", "a list of pairs (name, bytes or None)", given)
    for pair in given:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise _unfit("header", "a pair (name, bytes or None)", pair)
        name, value = pair
        if type(name) is not str:
            raise _unfit("name of a header", "a str", name)
        if type(value) not in _BYTES:
            raise _unfit(f"header '{name}'", "bytes or None", value)
        pairs.append((name, value))
    return pairs


def _unfit(what: str, expected: str, found: Any) -> SerializationError:
    hint = "; encode it" if isinstance(found, str) and "bytes" in expected else ""
    return SerializationError(
        f"{what}: expected {expected}, found {type(found).__name__} {short_repr(found, 100)}{hint}"
    )
