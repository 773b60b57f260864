"""A straight line through what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the line with the least squares: how much more `y` for each `x`. 0 for a single point."""
    if len(points) < 2:
        return 0.0
    return statistics.linear_regression([x for x, _ in points], [y for _, y in points]).slope
