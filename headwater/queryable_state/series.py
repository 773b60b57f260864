"""One query over past and present: the closed windows of a key from the archive, the open ones from the slot.

The slot is read first. It says as of which checkpoint it answers, and the archive has the output of that checkpoint
before any slot counts it as durable. So whatever the slot no longer holds is in the archive when that is read, and what
the archive has got since then is told by its epoch (docs/decisions/0023-the-seam-of-a-series.md).
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

from headwater.common.errors import InvalidKeyError
from headwater.common.query_error import QueryError, QueryProblem
from headwater.datastream.connectors.archive.closed_window import key_text
from headwater.datastream.connectors.archive.seam import AsOf, SeriesWindow, joined
from headwater.datastream.connectors.archive.store import BEGINNING_MS, END_MS, ArchivedWindow
from headwater.operators.window.base import PANES
from headwater.queryable_state.reader import Json, StateReader
from headwater.state.query.json_form import to_json


@dataclass(frozen=True)
class Series:
    """The windows of one key as of one checkpoint, in order. Each is there once."""

    name: str
    key: Any
    epoch: int
    windows: list[SeriesWindow]

    def to_json(self) -> Json:
        windows = [window.to_json() for window in self.windows]
        return {"series": self.name, "key": to_json(self.key), "epoch": self.epoch, "windows": windows}


def read_series(reader: StateReader, name: str, key: Any, from_ms: int, to_ms: int) -> Series:
    """Return the windows of `key` that share a moment with [from_ms, to_ms). Raises `QueryError`.

    A key that the series does not know has no windows: that is no error, because a series forgets nothing.
    """
    try:
        text = key_text(key)
    except InvalidKeyError as error:
        raise QueryError(QueryProblem.BAD_KEY, str(error)) from None
    try:
        (held,) = reader.get(name, PANES, [key])
    except QueryError as error:
        if error.problem in (QueryProblem.UNKNOWN_OPERATOR, QueryProblem.UNKNOWN_STATE):
            reader.locator.read_archive(name, text, 0, 0, -1)  # raises, if it is no series, and says which there are
        raise
    assert held.epoch is not None
    found = reader.locator.read_archive(name, text, from_ms, to_ms, held.epoch)
    size_ms = found["window_ms"]
    open_windows = {
        (entry["namespace"], entry["namespace"] + size_ms): entry["value"]
        for entry in (held.value or ())
        if entry["namespace"] < to_ms and entry["namespace"] + size_ms > from_ms
    }
    moment = AsOf(found["job_id"], held.epoch, found["time_ms"])
    rows = [ArchivedWindow(*row) for row in found["rows"]]
    return Series(name, key, held.epoch, joined(open_windows, rows, moment))


def time_ms(text: str, what: str) -> int:
    """Return the moment that `text` means: milliseconds since 1970, or ISO 8601 (UTC, if it names no zone)."""
    try:
        found = int(text)
    except ValueError:
        try:
            moment = datetime.datetime.fromisoformat(text)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=datetime.UTC)
            found = round(moment.timestamp() * 1000)
        except (ValueError, OverflowError):
            raise QueryError(
                QueryProblem.BAD_REQUEST,
                f"{what} is {text!r}; expected milliseconds since 1970, or a time such as 2026-01-31T12:00Z",
            ) from None
    return min(max(found, BEGINNING_MS), END_MS)
