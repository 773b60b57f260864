"""Nexmark's queries with MATCH_RECOGNIZE give what a plain loop over each bidder's bids finds."""

from __future__ import annotations

import contextlib
import datetime
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from benchmarks.nexmark.__main__ import write
from benchmarks.nexmark.generator import Nexmark
from tests.unit.table.stream.oracle import normal
from tests.unit.table.stream.test_nexmark import result

Bid = tuple[datetime.datetime, int]
"""(time, price)"""
Found = tuple[list[Any], int] | None
"""(the measures, where to go on) of the match that begins at a place; None if there is none."""


class StillOpen(Exception):
    """The input ends within the match. Matches that begin later wait for it, as in Flink."""


def falling_and_rising(bids: list[Bid], start: int) -> Found:
    prices = [price for _, price in bids]
    end = start + 1
    while end < len(bids) and prices[end] < prices[end - 1]:
        end += 1
    # The bid that rises is compared with the one before the lowest: there must be two that fall.
    if end - start < 3 or end == len(bids) or prices[end] <= prices[end - 2]:
        return None
    return [bids[start][0], bids[end - 1][0], bids[end][0]], end


def low(bids: list[Bid], start: int) -> tuple[list[Any], int] | None:
    end, total = start, 0
    while end < len(bids) and (total + bids[end][1]) // (end - start + 1) < 100_000:
        total += bids[end][1]
        end += 1
    if end == start:
        return None
    if end == len(bids):
        raise StillOpen
    return [bids[start][0], bids[end - 1][0], total // (end - start)], end + 1


def low_from_everywhere(bids: list[Bid], start: int) -> Found:
    found = low(bids, start)
    return None if found is None else (found[0], start + 1)


def dropping(bids: list[Bid], start: int) -> Found:
    (began, high), end = bids[start], start + 1
    while end < len(bids) and bids[end][1] > high - 50:
        end += 1
    if end == len(bids) or bids[end][1] == high - 50 or bids[end][0] - began >= datetime.timedelta(seconds=5):
        return None
    return [bids[end][0], high - bids[end][1]], end + 1


QUERIES: dict[str, Callable[[list[Bid], int], Found]] = {
    "cep0": falling_and_rising,
    "cep1": low,
    "cep2": low_from_everywhere,
    "cep3": dropping,
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nexmark")
    write(folder, 2_000, 2, "parquet", Nexmark(events_per_second=100))
    return folder


@pytest.mark.parametrize("name", QUERIES)
def test_query(name: str, files: Path) -> None:
    bids: dict[int, list[Bid]] = {}
    for row in pyarrow.parquet.read_table(files / "bid").sort_by("dateTime").to_pylist():
        bids.setdefault(row["bidder"], []).append((row["dateTime"], row["price"]))
    expected: Counter[tuple[Any, ...]] = Counter()
    for bidder, its in bids.items():
        start = 0
        with contextlib.suppress(StillOpen):
            while start < len(its):
                found = QUERIES[name](its, start)
                if found is not None:
                    expected[tuple(normal(value) for value in (bidder, *found[0]))] += 1
                start = start + 1 if found is None else found[1]
    assert result(name, files) == expected and expected
