"""The feed of the latency jobs: each line once, however often a reader is opened; and readers that wake at once."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from benchmarks.latency.feed import POSITION, FeedServer
from benchmarks.latency.feed_source import FeedReader, FeedSource
from benchmarks.latency.schedule import Schedule, number_of

SOON_S = 10.0


def serve(schedule: Schedule, *, hold: bool = False) -> int:
    server = FeedServer(schedule, hold=hold)
    threading.Thread(target=server.serve, daemon=True).start()
    return server.port


@pytest.fixture
def wake() -> Iterator[tuple[int, int]]:
    """A pipe: (its end to wait at, its end to write to)."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def read_to_end(reader: FeedReader, wake: int) -> list[int]:
    numbers: list[int] = []
    while (lines := reader.read_batch(7)) is not None:
        numbers += map(number_of, lines)
        if not lines:
            assert reader.wait_readable(time.monotonic() + SOON_S, wake)
    return numbers


def test_a_reader_that_stays_open_gets_every_line_once(wake: tuple[int, int]) -> None:
    reader = FeedReader(serve(Schedule(2000, 0.0, 0.2)), 0)
    assert read_to_end(reader, wake[0]) == list(range(400))
    assert reader.position() == 400
    reader.close()


def test_opened_again_at_its_position_it_loses_nothing_and_repeats_nothing() -> None:
    """As an engine does that opens readers for each epoch: what a reader has received and not given comes again."""
    source = FeedSource(serve(Schedule(2000, 0.0, 0.2)))
    (split,) = source.discover_splits(2, frozenset())
    numbers: list[int] = []
    position = None
    ended = False
    while not ended:
        reader = source.open_reader(split, position)
        lines = reader.read_batch(13)
        ended = lines is None
        numbers += map(number_of, lines or [])
        position = reader.position()
        reader.close()
    assert numbers == list(range(400))
    assert source.discover_splits(2, frozenset({split.split_id})) == []


def test_lines_that_are_due_can_be_read_as_soon_as_a_reader_is_open() -> None:
    """Without waiting: an engine that polls would come back only after its pause."""
    port = serve(Schedule(1000, 0.0, 60.0))
    FeedReader(port, 0).close()
    time.sleep(0.05)
    reader = FeedReader(port, 10)
    lines = reader.read_batch(1000)
    assert lines is not None
    assert [number_of(line) for line in lines[:3]] == [10, 11, 12]
    assert len(lines) >= 40
    reader.close()


def test_a_silent_feed_is_waited_for_until_the_deadline_or_a_wake(wake: tuple[int, int]) -> None:
    port = serve(Schedule(1000, 0.0, 0.001), hold=True)
    reader = FeedReader(port, 1)
    assert reader.read_batch(10) == []
    started = time.monotonic()
    assert not reader.wait_readable(started + 0.05, wake[0])
    assert time.monotonic() - started >= 0.05
    os.write(wake[1], b".")
    assert not reader.wait_readable(time.monotonic() + 1000, wake[0])
    reader.close()


def test_half_a_line_is_kept_until_its_rest_comes() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    opened: list[FeedReader] = []
    opening = threading.Thread(target=lambda: opened.append(FeedReader(server.getsockname()[1], 5)))
    opening.start()
    feed, _ = server.accept()
    assert POSITION.unpack(feed.recv(POSITION.size)) == (5,)
    feed.sendall(POSITION.pack(3) + b"5 0")
    opening.join()
    (reader,) = opened
    assert reader.read_batch(10) == []
    assert reader.position() == 5
    feed.sendall(b".1\n6 0.2\n7")
    assert read_soon(reader) == ["5 0.1", "6 0.2"]
    assert reader.position() == 7
    feed.close()
    server.close()
    reader.close()


def read_soon(reader: FeedReader) -> list[str]:
    """All lines until there are two."""
    lines: list[str] = []
    deadline = time.monotonic() + SOON_S
    while len(lines) < 2 and time.monotonic() < deadline:
        lines += reader.read_batch(10) or []
    return lines
