"""The seam between archive and state: every window of a key once, whatever the archive has seen since."""

from __future__ import annotations

import random
from typing import Any

import pytest

from headwater.datastream.connectors.archive.seam import AsOf, SeriesWindow, joined
from headwater.datastream.connectors.archive.store import ArchivedWindow


def row(start: int, value: Any, epoch: int, job: str = "now") -> ArchivedWindow:
    return ArchivedWindow(start, start + 10, str(value), job, epoch)


def closed(start: int, value: Any) -> SeriesWindow:
    return SeriesWindow(start, start + 10, value, True)


def opened(start: int, value: Any) -> SeriesWindow:
    return SeriesWindow(start, start + 10, value, False)


NOW = AsOf("now", epoch=5, time_ms=24)


def test_closed_windows_come_from_the_archive_and_open_ones_from_the_state() -> None:
    assert joined({(20, 30): 7}, [row(10, 2, 4), row(0, 1, 3)], NOW) == [closed(0, 1), closed(10, 2), opened(20, 7)]


def test_a_window_that_closes_with_the_next_checkpoint_is_still_open_at_this_one() -> None:
    """The archive is ahead: the manifest is durable and the sink has committed, but the slot was not told yet."""
    assert joined({(10, 20): 6, (20, 30): 7}, [row(0, 1, 3), row(10, 9, 6)], NOW) == [
        closed(0, 1), opened(10, 6), opened(20, 7),
    ]  # fmt: skip


def test_a_window_that_opened_and_closed_since_then_is_not_part_of_it() -> None:
    assert joined({}, [row(0, 1, 3), row(10, 9, 6)], NOW) == [closed(0, 1)]


def test_a_window_in_its_allowed_lateness_is_shown_once_and_is_closed() -> None:
    assert joined({(10, 20): 2}, [row(10, 2, 5)], NOW) == [closed(10, 2)]


def test_a_late_record_of_the_next_checkpoint_is_not_shown_yet() -> None:
    """Its upsert has replaced the row of this checkpoint. The state still has that value."""
    assert joined({(10, 20): 2}, [row(10, 3, 6)], NOW) == [opened(10, 2)]


def test_rows_of_a_job_before_this_one_count_whatever_their_epochs() -> None:
    assert joined({(20, 30): 7}, [row(0, 1, 300, "before"), row(10, 2, 4)], NOW) == [
        closed(0, 1), closed(10, 2), opened(20, 7),
    ]  # fmt: skip


def test_what_a_job_before_this_one_closed_is_open_again_after_a_restart_from_an_older_savepoint() -> None:
    archived = [row(10, 2, 300, "before"), row(20, 3, 310, "before"), row(30, 4, 320, "before")]
    assert joined({(20, 30): 1}, archived, NOW) == [closed(10, 2), opened(20, 1)]


@pytest.mark.parametrize("seed", range(200))
def test_against_a_history(seed: int) -> None:
    """A key's windows are computed epoch by epoch; the archive may be any number of epochs ahead of the state."""
    random_ = random.Random(seed)
    size, lateness = 10, random_.choice([0, 10])
    state: dict[tuple[int, int], int] = {}
    archive: dict[tuple[int, int], ArchivedWindow] = {}
    totals: dict[tuple[int, int], int] = {}
    moments: list[tuple[AsOf, dict[tuple[int, int], int], dict[tuple[int, int], int]]] = []
    clock = 0
    for epoch in range(12):
        for _ in range(random_.randrange(4)):
            start = random_.randrange(max(0, clock - 15), clock + 10) // size * size
            if start + size + lateness <= clock:
                continue  # too late
            totals[start, start + size] = state[start, start + size] = totals.get((start, start + size), 0) + 1
            if start + size <= clock:
                archive[start, start + size] = row(start, totals[start, start + size], epoch)
        before, clock = clock, clock + random_.randrange(15)
        for start, end in list(state):
            if before < end <= clock:
                archive[start, end] = row(start, state[start, end], epoch)
            if end + lateness <= clock:
                del state[start, end]
        moments.append((AsOf("now", epoch, clock), dict(state), dict(totals)))
        for moment, held, expected in moments[-3:]:
            found = joined(held, sorted(archive.values()), moment)
            assert [(window.start_ms, window.end_ms) for window in found] == sorted(expected)
            assert {(window.start_ms, window.end_ms): window.value for window in found} == expected
            assert all(not window.closed for window in found if window.end_ms > moment.time_ms)
