"""A trace as a picture: a column for each event, a line for each partial match, in SVG and without any library."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from headwater.cep.trace import ENDS, MATCHES, OUT_OF_TIME, PatternTrace, Taken, TraceRow
from headwater.common.errors import short_repr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LEAST_COLUMN, LANE, LEFT, TOP, RADIUS, FORK = 96, 30, 56, 64, 6, 28
LONGEST, LETTER = 32, 5.6
"""Of an event's text: how many letters at most, and how wide one is."""
COLOURS = {MATCHES: "#1a7f37", OUT_OF_TIME: "#b35900"}
DEAD = "#8c8c8c"
HALO = 'stroke="white" stroke-width="3" paint-order="stroke"'


@dataclass
class _Lane:
    """A partial match from its first event to its end. One that forks off begins at the event where it does."""

    number: int
    taken: Taken
    points: list[tuple[float, str]] = field(default_factory=list)
    """(column, step) of the events it takes."""
    last: float = 0
    parent: tuple[int, float] | None = None
    """(lane, column) where it comes from."""
    end: str = ""


def trace_picture(trace: PatternTrace) -> str:
    """Draw `trace`. Columns are events in order; the end of some time lies between two of them."""
    lanes = _below_their_parents(_lanes(trace.rows))
    labels = [shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…" for shown in map(short_repr, trace.events)]
    column = max(LEAST_COLUMN, round(LETTER * max(map(len, labels), default=0)) + 16)
    width = LEFT * 2 + column * len(labels) + LEAST_COLUMN

    def x_of(place: float) -> float:
        return LEFT + column * (place + 0.5)

    height = TOP + LANE * (len(lanes) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for y, heading in ((20, "time"), (38, "event")):
        parts.append(f'<text x="8" y="{y}" fill="{DEAD}">{heading}</text>')
    for index, (event, timestamp, label) in enumerate(zip(trace.events, trace.timestamps, labels, strict=True)):
        x = x_of(index)
        parts.append(f'<line x1="{x}" y1="{TOP - 14}" x2="{x}" y2="{height - 8}" stroke="#e0e0e0"/>')
        parts.append(f'<text x="{x}" y="20" text-anchor="middle" fill="#555">{timestamp}</text>')
        whole = f"<title>{escape(short_repr(event))}</title>"
        parts.append(f'<text x="{x}" y="38" text-anchor="middle">{escape(label)}{whole}</text>')
    for lane in lanes:
        parts += _drawn(lane, x_of)
    return "\n".join([*parts, "</svg>", ""])


def _lanes(rows: Iterable[TraceRow]) -> list[_Lane]:
    lanes: list[_Lane] = []
    living: dict[Taken, _Lane] = {}
    column = -1.0
    passed = 0
    pending: list[TraceRow] = []

    def flush() -> None:
        """The rows of one moment: first who goes on alone, then who forks off."""
        stays = {row.before for row in pending if row.taken == row.before and row.outcome not in ENDS}
        for row in pending:
            if row.outcome in ENDS and row.taken == row.before:
                if lane := living.pop(row.taken, None):
                    lane.last, lane.end = column, row.outcome
            elif row.taken == row.before:
                if lane := living.get(row.taken):
                    lane.last = column
            else:
                _advance(row, stays)

    def _advance(row: TraceRow, stays: set[Taken]) -> None:
        parent = living.get(row.before) if row.before else None
        if parent is not None and row.before not in stays:
            lane = living.pop(row.before)
        else:
            lane = _Lane(len(lanes), row.taken, parent=(parent.number, parent.last) if parent else None)
            lanes.append(lane)
            if parent is None and row.before:
                lane.parent = _former(lanes, row.before)
        lane.taken, lane.last = row.taken, column
        lane.points.append((column, row.taken[-1][0]))
        if row.outcome in ENDS:
            lane.end = row.outcome
        else:
            living[row.taken] = lane

    moment: object = None
    for row in rows:
        now = (row.event, row.timestamp)
        if now != moment:
            flush()
            pending, moment = [], now
            if row.event is None:
                passed += 1
                column = max(int(column), 0) + 1 - 0.5 / passed
            else:
                column, passed = float(row.event), 0
        if row.taken:
            pending.append(row)
    flush()
    return lanes


def _former(lanes: list[_Lane], taken: Taken) -> tuple[int, float] | None:
    """The lane that was this partial match when a sibling took it over."""
    for lane in lanes:
        if lane.taken[: len(taken)] == taken and len(lane.points) > 1:
            return lane.number, lane.points[-2][0]
    return None


def _below_their_parents(lanes: list[_Lane]) -> list[_Lane]:
    """The lanes from top to bottom: each above those that fork off it, so that few lines cross."""
    children: dict[int | None, list[_Lane]] = {}
    for lane in lanes:
        children.setdefault(lane.parent and lane.parent[0], []).append(lane)
    ordered: list[_Lane] = []
    to_place = children.get(None, [])[::-1]
    while to_place:
        ordered.append(to_place.pop())
        to_place += children.get(ordered[-1].number, [])[::-1]
    places = {lane.number: place for place, lane in enumerate(ordered)}
    for lane in ordered:
        lane.number = places[lane.number]
        lane.parent = lane.parent and (places[lane.parent[0]], lane.parent[1])
    return ordered


def _drawn(lane: _Lane, x_of: Callable[[float], float]) -> list[str]:
    y = _y(lane.number)
    colour = COLOURS.get(lane.end, DEAD if lane.end else "#0969da")
    first = lane.points[0][0]
    parts = []
    if lane.parent is not None:
        above = _y(lane.parent[0])
        # Close to the event that it takes, where no text is.
        begin, end = max(x_of(lane.parent[1]), x_of(first) - FORK), x_of(first)
        parts.append(
            f'<path d="M {begin} {above} C {begin + FORK * 0.7} {above} {end - FORK * 0.9} {y} {end} {y}" '
            f'fill="none" stroke="{colour}" stroke-width="1.5" stroke-dasharray="3 3"/>'
        )
    parts.append(
        f'<line x1="{x_of(first)}" y1="{y}" x2="{x_of(lane.last)}" y2="{y}" stroke="{colour}" stroke-width="2"/>'
    )
    for column, step in lane.points:
        parts.append(f'<circle cx="{x_of(column)}" cy="{y}" r="{RADIUS}" fill="{colour}"/>')
        parts.append(
            f'<text x="{x_of(column)}" y="{y - 9}" text-anchor="middle" fill="{colour}" {HALO}>{escape(step)}</text>'
        )
    x = x_of(lane.last)
    if lane.end:
        mark = "✓" if lane.end == MATCHES else "…" if lane.end == OUT_OF_TIME else "✗"
        parts.append(f'<text x="{x + 9}" y="{y + 4}" fill="{colour}">{mark} {escape(lane.end)}</text>')
    return parts


def _y(lane: int) -> float:
    return TOP + LANE * (lane + 0.5)
