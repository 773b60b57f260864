"""Keys for where event time stands in a partition: at the input and at the output of each operator.

Acknowledgements and manifests hold watermarks as {key: watermark}. The keys are persisted: do not change their text.
"""

from __future__ import annotations

_INPUT = "head:"
_OUTPUT = "out:"


def at_input(uid: str) -> str:
    """The key of the watermark that has reached operator `uid`."""
    return _INPUT + uid


def at_output(uid: str) -> str:
    """The key of the watermark that operator (or source) `uid` has emitted."""
    return _OUTPUT + uid


def is_input(key: str) -> bool:
    """Return True if `at_input` made `key`."""
    return key.startswith(_INPUT)


def is_output(key: str) -> bool:
    """Return True if `at_output` made `key`."""
    return key.startswith(_OUTPUT)


def uid_of(key: str) -> str:
    """Return the uid in `key`."""
    return key.partition(":")[2]


def with_uid(key: str, uid: str) -> str:
    """Return `key` with another uid."""
    return f"{key.partition(':')[0]}:{uid}"
