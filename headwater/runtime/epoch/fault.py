"""The named steps of an epoch, and a hook that tests install to be told of them (to kill a process there, say).

The product installs none: a step then costs one look at a module global.
"""

from __future__ import annotations

from collections.abc import Callable

STEPS = (
    "chunk-received",
    "mid-chunk",
    "processed",
    "snapshot-written",
    "acked",
    "manifest-written",
    "sink-committed",
)
"""In order. Nothing here reaches "mid-chunk": a test that wants it cuts batches in two itself."""

hook: Callable[[str, int], None] | None = None
"""Called with step and epoch, in the process and thread that reached the step."""


def reached(step: str, epoch: int) -> None:
    """The engine is at a step of an epoch."""
    if hook is not None:
        hook(step, epoch)
