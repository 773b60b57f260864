"""The scripted source: a crash test reads like data."""

from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path
from typing import Any

import pytest

from headwater.common.connector import drain
from headwater.common.errors import ConfigurationError, SerializationError
from headwater.testing import CRASH, EOF, PAUSE, Crash, OneInputOperatorHarness, ScriptedCrash, ScriptSource, Watermark
from headwater.testing.recorded_output import EmittedWatermark, Record


def reader_of(source: ScriptSource, position: Any = None) -> Any:
    (split,) = source.discover_splits(2, frozenset())
    return source.open_reader(split, position)


def test_records_are_read_in_batches_up_to_the_end() -> None:
    reader = reader_of(ScriptSource([1, 2, 3]))
    assert [reader.read_batch(2), reader.read_batch(2), reader.read_batch(2)] == [[1, 2], [3], None]


def test_its_one_split_is_offered_once() -> None:
    source = ScriptSource([1])
    (split,) = source.discover_splits(4, frozenset())
    assert source.discover_splits(4, frozenset([split.split_id])) == []


@pytest.mark.parametrize("read", range(6))
def test_a_reader_opened_at_a_position_gives_exactly_the_rest(read: int) -> None:
    items = [1, 2, PAUSE, 3, Watermark(5), 4, 5]
    first = reader_of(ScriptSource(items))
    seen: list[int] = []
    while len(seen) < read and (batch := first.read_batch(1)):
        seen += batch
    rest: list[int] = []
    reader = reader_of(ScriptSource(items), first.position())
    while (batch := reader.read_batch(10)) is not None:
        rest += batch
        reader = reader_of(ScriptSource(items), reader.position())
    assert seen + rest == [1, 2, 3, 4, 5]


def test_eof_ends_the_split_even_of_an_unbounded_source() -> None:
    source = ScriptSource([1, EOF, 2], bounded=False)
    assert source.bounded
    reader = reader_of(source)
    assert [reader.read_batch(10), reader.read_batch(10)] == [[1], None]
    assert reader_of(source, reader.position()).read_batch(10) is None


def test_an_unbounded_source_stays_open() -> None:
    source = ScriptSource([1], bounded=False)
    assert not source.bounded
    reader = reader_of(source)
    assert [reader.read_batch(10), reader.read_batch(10), reader.read_batch(10)] == [[1], [], []]


def test_a_pause_ends_the_epoch_and_the_next_one_goes_on_behind_it() -> None:
    source = ScriptSource([1, PAUSE, PAUSE, 2])
    epochs, position = [], None
    for _ in range(3):
        reader = reader_of(source, position)
        epochs.append(list(drain(reader, 10)))
        position = reader.position()
    assert epochs == [[[1]], [], [[2]]]


def test_a_crash_happens_once_after_the_records_before_it_were_read(tmp_path: Path) -> None:
    source = ScriptSource([1, Crash(kill=False), 2], crash_directory=str(tmp_path / "crashes"))
    reader = reader_of(source)
    assert reader.read_batch(10) == [1]
    with pytest.raises(ScriptedCrash):
        reader.read_batch(10)
    assert source.crash_count() == 1
    shipped = pickle.loads(pickle.dumps(source))  # another process
    assert list(drain(reader_of(shipped), 10)) == [[1], [2]]
    assert source.crash_count() == 1


def test_crash_kills_the_process_that_reads(tmp_path: Path) -> None:
    source = ScriptSource([CRASH, 1], crash_directory=str(tmp_path))
    child = os.fork()
    if child == 0:
        reader_of(source).read_batch(1)
        os._exit(0)  # not reached
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert reader_of(source).read_batch(1) == [1]


def test_scripted_watermarks_follow_their_record_also_after_a_restore() -> None:
    source = ScriptSource([1, 2, Watermark(20), 3, PAUSE, 4, Watermark(40)])
    strategy = source.watermarks(lambda value, _: value * 10)
    reader = reader_of(source)
    harness = OneInputOperatorHarness(strategy)
    harness.process_elements(reader.read_batch(10))
    assert harness.get_steps() == [Record(1, 10), Record(2, 20), EmittedWatermark(20), Record(3, 30)]
    restored = OneInputOperatorHarness(strategy).restore(harness.snapshot())
    restored.process_elements(reader_of(source, reader.position()).read_batch(10))
    assert restored.get_steps() == [Record(4, 40), EmittedWatermark(40)]


def test_a_script_cannot_begin_with_a_watermark() -> None:
    with pytest.raises(ConfigurationError, match="must follow a record"):
        ScriptSource([Watermark(1), 1]).watermarks()


def test_an_item_that_cannot_be_pickled_is_named() -> None:
    with pytest.raises(SerializationError, match=r"item 1 of the script, .* a generator cannot be pickled"):
        ScriptSource([1, (n for n in "a"), EOF])
