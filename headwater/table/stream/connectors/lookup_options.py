"""Flink's options of look-ups: what is remembered, and for how long."""

from __future__ import annotations

import sys

from headwater.table.stream.connectors.contract import TableContext
from headwater.table.stream.operators.lookup_join import LookupCache

CACHE_OPTIONS = (
    "lookup.cache",
    "lookup.partial-cache.max-rows",
    "lookup.partial-cache.expire-after-write",
    "lookup.partial-cache.expire-after-access",
    "lookup.partial-cache.cache-missing-key",
)


def lookup_cache(context: TableContext, *more: str) -> LookupCache | None:
    """'lookup.cache' = 'PARTIAL': what it may hold. None for 'NONE', and for those in `more` that the caller knows."""
    kind = (context.options.text("lookup.cache") or "NONE").upper()
    context.options.ignored(*CACHE_OPTIONS)
    if kind not in ("NONE", "PARTIAL", *more):
        raise context.error(f"'lookup.cache' = '{kind}': there is {', '.join(('NONE', 'PARTIAL', *more))}")
    if kind != "PARTIAL":
        return None
    rows = context.options.number("lookup.partial-cache.max-rows")
    write = context.duration_ms("lookup.partial-cache.expire-after-write")
    access = context.duration_ms("lookup.partial-cache.expire-after-access")
    missing = context.options.flag("lookup.partial-cache.cache-missing-key", True)
    if rows is None and write is None and access is None:
        raise context.error(
            "'lookup.cache' = 'PARTIAL' needs an end: 'lookup.partial-cache.max-rows', 'expire-after-write' or"
            " 'expire-after-access'"
        )
    return LookupCache(sys.maxsize if rows is None else int(rows), write, access, missing)
