"""Compares output as a multiset: what is lost and what is there twice, in whatever order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

_SHOWN = 5


def assert_same_records(found: Iterable[Any], expected: Iterable[Any]) -> None:
    """Raise AssertionError unless both have the same records, each as often. Order does not matter."""
    found, expected = list(found), list(expected)
    here, there = _counted(found), _counted(expected)
    if here != there:
        lost, extra = there - here, here - there
        parts = [f"{name}: {_shown(records)}" for name, records in (("lost", lost), ("too many", extra)) if records]
        raise AssertionError(f"found {len(found)} records, expected {len(expected)}; " + "; ".join(parts))


def _counted(records: list[Any]) -> Counter[Any]:
    try:
        return Counter(records)
    except TypeError:  # not hashable
        return Counter(map(repr, records))


def _shown(records: Counter[Any]) -> str:
    texts = [f"{record!r} (x {count})" if count > 1 else repr(record) for record, count in records.items()]
    more = f" and {len(texts) - _SHOWN} others" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more
