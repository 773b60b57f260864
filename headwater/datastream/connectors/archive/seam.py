"""Joins what an archive says about a key with what the job's state says: no gap and no overlap between the two.

Facts in, a decision out. The caller reads the state first, as of a checkpoint, and the archive second, when the output
of that checkpoint is in it (docs/decisions/0023-the-seam-of-a-series.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from headwater.datastream.connectors.archive.store import ArchivedWindow

Bounds = tuple[int, int]
"""(start, end) of a window, in ms"""


class SeriesWindow(NamedTuple):
    """One window of a series. An open one may still change; a closed one has fired: only late records can change it."""

    start_ms: int
    end_ms: int
    value: Any
    closed: bool

    def to_json(self) -> dict[str, Any]:
        status = "closed" if self.closed else "open"
        return {"start": self.start_ms, "end": self.end_ms, "value": self.value, "status": status}


class AsOf(NamedTuple):
    """The moment that is asked for: a checkpoint of a job."""

    job_id: str
    epoch: int
    time_ms: int
    """Where the windows' clock stood then, or a little later: event time, or processing time."""


def joined(held: Mapping[Bounds, Any], archived: Iterable[ArchivedWindow], moment: AsOf) -> list[SeriesWindow]:
    """Return the series of a key at `moment`, in order. `held` are the windows of the key in the state at `moment`.

    - What the state holds, the state tells. A window that it holds is open, or its allowed lateness is not over.
    - A row of this job counts if its epoch is not after the moment. Later rows are not part of it: then the state holds
      the window, or it did not exist yet.
    - A row of a job before this one counts if its window is over by this job's clock. If it is not, this job was
      started from a savepoint made before the window closed, and computes it anew.
    """
    closed: dict[Bounds, Any] = {}
    for row in archived:
        mine = row.job_id == moment.job_id
        if row.epoch <= moment.epoch if mine else row.end_ms - 1 <= moment.time_ms:
            closed[row.start_ms, row.end_ms] = json.loads(row.value)
    held_rows = [SeriesWindow(*bounds, value, bounds in closed) for bounds, value in held.items()]
    other_rows = [SeriesWindow(*bounds, value, True) for bounds, value in closed.items() if bounds not in held]
    return sorted([*held_rows, *other_rows], key=lambda window: (window.start_ms, window.end_ms))
