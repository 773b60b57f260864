"""Draws how latencies are spread, one contender under the other on one logarithmic axis, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from benchmarks.latency.distribution import Histogram

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 920, 250, 50, 100, 58
ROW, CURVE = 74, 48
"""Heights of a row, and of the highest curve in it."""
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
INK, PALE, GRID, LIMIT = "#1f2933", "#66727f", "#e4e8ec", "#c2410c"


@dataclass(frozen=True)
class Row:
    """One contender. `median_ms` and `p99_ms` are of the values themselves, not of their bins."""

    name: str
    colour: str
    histogram: Histogram
    median_ms: float
    p99_ms: float


def shown_ms(value_ms: float) -> str:
    """With three digits at most, in seconds from 1,000 ms on."""
    if value_ms >= 1000:
        return f"{value_ms / 1000:.1f} s" if value_ms < 10_000 else f"{value_ms / 1000:.0f} s"
    return f"{value_ms:.1f} ms" if value_ms < 10 else f"{value_ms:.0f} ms"


@dataclass(frozen=True)
class Axis:
    """Milliseconds to pixels, from a whole decade to a whole decade."""

    low: int
    high: int

    @staticmethod
    def around(rows: Sequence[Row], limits_ms: Sequence[tuple[str, float]]) -> Axis:
        shown = [ms for row in rows for ms, height in row.histogram.curve() if height > 0.004]
        shown += [ms for _, ms in limits_ms]
        low, high = math.floor(math.log10(min(shown))), math.ceil(math.log10(max(shown)))
        return Axis(low, max(high, low + 1))

    def x(self, ms: float) -> float:
        share = (math.log10(ms) - self.low) / (self.high - self.low)
        return LEFT + min(max(share, 0.0), 1.0) * (WIDTH - LEFT - RIGHT)

    def ticks(self) -> list[tuple[float, bool]]:
        """(ms, whether it has a label) of the grid's lines."""
        decades = range(self.low, self.high)
        lines = [(10.0**decade * step, step == 1) for decade in decades for step in range(1, 10)]
        return [*lines, (10.0**self.high, True)]


def latency_plot(title: str, rows: Sequence[Row], limits_ms: Sequence[tuple[str, float]]) -> str:
    """The drawing as the text of an SVG file. `limits_ms` are what is promised: (what, ms)."""
    axis = Axis.around(rows, limits_ms)
    bottom = TOP + ROW * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + BOTTOM}" width="{WIDTH}" '
        f'height="{bottom + BOTTOM}" font-family="{FONT}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{bottom + BOTTOM}" rx="8" fill="#ffffff"/>',
        _text(24, 34, title, 17, INK, weight=600),
        _text(24, 56, "Line: median. Ring: p99. All curves are drawn equally high.", 12, PALE),
        *_grid(axis, bottom),
        *(mark for n, (what, ms) in enumerate(limits_ms) for mark in _limit(axis, what, ms, bottom, left=n % 2 == 0)),
        *(part for number, row in enumerate(rows) for part in _row(axis, row, TOP + ROW * (number + 1) - 14)),
        _text((LEFT + WIDTH - RIGHT) / 2, bottom + 46, "from a record's creation until its result is visible", 12, PALE,
              anchor="middle"),
        "</svg>",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _grid(axis: Axis, bottom: float) -> list[str]:
    parts = []
    for ms, labelled in axis.ticks():
        x = axis.x(ms)
        width = 1 if labelled else 0.5
        parts.append(
            f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="{GRID}" stroke-width="{width}"/>'
        )
        if labelled:
            label = f"{ms:g} ms" if ms < 1000 else f"{ms / 1000:g} s"
            parts.append(_text(x, bottom + 20, label, 12, INK, anchor="middle"))
    return parts


def _limit(axis: Axis, what: str, ms: float, bottom: float, *, left: bool) -> list[str]:
    x = axis.x(ms)
    label_x, anchor = (x + 4, "end") if left else (x - 4, "start")
    return [
        f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}" stroke="{LIMIT}" stroke-width="1" '
        'stroke-dasharray="3 4"/>',
        _text(label_x, TOP - 14, f"{what} ≤ {shown_ms(ms)}", 11, LIMIT, anchor=anchor),
    ]


def _row(axis: Axis, row: Row, base: float) -> list[str]:
    curve = row.histogram.curve()
    highest = max(height for _, height in curve)
    points = [(axis.x(ms), base - CURVE * height / highest) for ms, height in curve]
    outline = " L".join(f"{x:.1f},{y:.1f}" for x, y in points)
    median, p99 = axis.x(row.median_ms), axis.x(row.p99_ms)
    top = _height_at(points, median, base)
    return [
        f'<line x1="{LEFT}" y1="{base}" x2="{WIDTH - RIGHT}" y2="{base}" stroke="{PALE}" stroke-width="0.5"/>',
        f'<path d="M{points[0][0]:.1f},{base} L{outline} L{points[-1][0]:.1f},{base} Z" fill="{row.colour}" '
        f'fill-opacity="0.28" stroke="{row.colour}" stroke-width="1.6" stroke-linejoin="round"/>',
        f'<line x1="{median:.1f}" y1="{base}" x2="{median:.1f}" y2="{top:.1f}" stroke="{row.colour}" '
        'stroke-width="2.4"/>',
        f'<circle cx="{p99:.1f}" cy="{base}" r="3.6" fill="#ffffff" stroke="{row.colour}" stroke-width="1.8"/>',
        _text(24, base - 20, row.name, 13, INK, weight=600),
        _text(24, base - 3, f"median {shown_ms(row.median_ms)}, p99 {shown_ms(row.p99_ms)}", 12, PALE),
    ]


def _height_at(points: Sequence[tuple[float, float]], x: float, base: float) -> float:
    """The curve's y at `x`."""
    for (left, y_left), (right, y_right) in pairwise(points):
        if left <= x <= right and right > left:
            return y_left + (y_right - y_left) * (x - left) / (right - left)
    return base


def _text(x: float, y: float, text: str, size: int, colour: str, *, anchor: str = "start", weight: int = 400) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )
