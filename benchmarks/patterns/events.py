"""The events that all contenders match. Also in SQL: so there is no arithmetic here that Flink's SQL lacks.

Imported inside Flink's environment too, so: the standard library only.
"""

from __future__ import annotations

KEYS = 10_000
WITHIN_MS = 600_000
LOW, HIGH = 30, 60
"""A value below LOW, one up to HIGH, and one from HIGH on are the three steps."""

PRIME = 2147483647
MIXED_SQL = f"MOD(MOD(f0 * 48271, {PRIME}) * MOD(f0 * 48271, {PRIME}), {PRIME})"
KEY_SQL = f"MOD({MIXED_SQL}, {{keys}})"
VALUE_SQL = f"MOD(MOD({MIXED_SQL} * 69621, {PRIME}), 100)"
TIME_SQL = "MOD(f0, {half}) * 2 + CASE WHEN f0 >= {half} THEN 1 ELSE 0 END"
"""A thousand events per second, none at the same time. The numbers are read as two halves, side by side."""


def mixed(i: int) -> int:
    """As good as random. No product leaves 63 bits."""
    residue = i * 48271 % PRIME
    return residue * residue % PRIME


def key_of(i: int, keys: int) -> int:
    return mixed(i) % keys


def value_of(i: int) -> int:
    return mixed(i) * 69621 % PRIME % 100


def time_of(i: int, half: int) -> int:
    return i % half * 2 + (1 if i >= half else 0)
