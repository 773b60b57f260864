"""The configuration keys of Flink, to tell them from misspelt ones.

`flink_keys.txt` has those of Flink 2.3, former ones included; `make parity` takes them from its classes.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_FAMILIES = (
    "$internal.",
    "containerized.",
    "external-resource.",
    "flink.hadoop.",
    "fs.",
    "kubernetes.",
    "metrics.reporter.",
    "s3.",
    "security.kerberos.token.provider.",
    "traces.reporter.",
    "yarn.",
)
"""Keys with a free part in them, such as the name of a reporter, and those that Flink sets itself."""


def is_flink_key(key: str) -> bool:
    """Return True if Flink has a setting `key`."""
    return key in flink_keys() or key.startswith(_FAMILIES)


@cache
def flink_keys() -> frozenset[str]:
    """All keys that are known by name."""
    return frozenset(Path(__file__).with_name("flink_keys.txt").read_text(encoding="utf-8").split())
