"""The ids of the edges between stages."""

from __future__ import annotations


def edge_id(consumer: int, position: int) -> int:
    """Return the id of an edge, made of the consuming operator's id and the position of the input."""
    return consumer << 8 | position


def consumer_of(edge: int) -> int:
    """Return the id of the operator that consumes an edge."""
    return edge >> 8
