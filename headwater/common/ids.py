"""Names for the small integers that must not be mixed up."""

from typing import NamedTuple, NewType

Epoch = NewType("Epoch", int)


class Place(NamedTuple):
    """One partition of one stage. A plain tuple of the two numbers is equal to it."""

    stage: int
    partition: int


MIN_WATERMARK = -(2**63)
"""The watermark before any other; also: "no timestamp" where Flink uses Long.MIN_VALUE."""

MAX_WATERMARK = 2**63 - 1
"""End of event time: emitted once, when a bounded input has ended."""
