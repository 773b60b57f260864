"""State several times the memory it is given. Each case is a process of its own, so that its memory can be told."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import ConfigurationError, LocalDiskError, StateError
from headwater.common.time import Time
from headwater.state.backends import make_keyed_backend
from headwater.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from headwater.state.rocksdb.backend import RocksDBKeyedStateBackend
from headwater.state.rocksdb.options import RocksDBOptions
from headwater.state.ttl.config import StateTtlConfig

GIVEN_MIB = 16
STATE_MIB = 100
ROOM_MIB = 32
"""For what the setting does not cover: the epoch under way, RocksDB's threads, what malloc keeps."""

PROGRAM = """
import os, sys
from pathlib import Path
import psutil
from headwater.state.backends import make_keyed_backend
from headwater.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from headwater.state.rocksdb.options import RocksDBOptions

kind, directory, given_mib, state_mib = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
backend = make_keyed_backend("rocksdb", "uid", 128, range(128), RocksDBOptions(given_mib << 20, directory))
process = psutil.Process()
before = peak = process.memory_info().rss
value, elements = backend.get_state(ValueStateDescriptor("value")), backend.get_state(ListStateDescriptor("list"))
entries = backend.get_state(MapStateDescriptor("map"))

def look():
    global peak
    peak = max(peak, process.memory_info().rss)

for mib in range(state_mib):
    backend.begin_epoch()
    for number in range(1024):
        backend.current_key = number if kind != "value" else (mib, number)
        data = os.urandom(1024)
        if kind == "value":
            value.update(data)
        elif kind == "list":
            elements.add(data)
        else:
            entries.put(mib, data)
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    look()
backend.begin_epoch()
for number in range(1024):
    backend.current_key = number if kind != "value" else (number % state_mib, number)
    if kind == "value":
        assert len(value.value()) == 1024
    elif kind == "list":
        assert len(elements.get()) == state_mib
    else:
        assert len(entries.get(number % state_mib)) == 1024
    look()
backend.rollback_epoch()
size = 0
for section in backend.full_sections():
    size += len(section.payload)
    look()
assert size >= state_mib << 20
backend.close()
print((peak - before) >> 20)
"""


TIMERS = 300_000
"""On the heap they take 83 MiB."""
NEAR_MIB = 10
"""For those that fire next."""
WITH_TIMERS = """
import random, sys
from itertools import islice
from pathlib import Path
import psutil
from headwater.state.backends import make_keyed_backend
from headwater.state.rocksdb.options import RocksDBOptions

directory, given_mib, number = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
backend = make_keyed_backend("rocksdb", "uid", 128, range(128), RocksDBOptions(given_mib << 20, directory))
process = psutil.Process()
before = peak = process.memory_info().rss
dice = random.Random(1)

def end():
    global peak
    backend.delta_sections()
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    peak = max(peak, process.memory_info().rss)

for start in range(0, number, 10_000):
    for key in range(start, start + 10_000):
        backend.event_timers.register(dice.randrange(10**9), key)
    end()
found = 0
for section in backend.full_sections():
    peak = max(peak, process.memory_info().rss)
backend.native_checkpoint(directory / "native")
fired = []
while due := [timestamp for timestamp, _, _ in islice(backend.event_timers.pop_due(10**9), 10_000)]:
    assert due == sorted(due) and (not fired or fired[-1] <= due[0])
    fired = due
    found += len(due)
    end()
assert found == number
backend.close()
print((peak - before) >> 20)
"""


@pytest.fixture
def fast_disk(tmp_path: Path) -> Iterator[Path]:
    """Files in memory, if there is such a place: they are not part of the process."""
    shared = Path("/dev/shm")
    if not shared.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=shared) as directory:
        yield Path(directory)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["value", "list", "map"])
def test_memory_stays_within_what_was_given(kind: str, fast_disk: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, kind, str(fast_disk), str(GIVEN_MIB), str(STATE_MIB)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < GIVEN_MIB + ROOM_MIB, f"grew by {done.stdout.strip()} MiB"


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_timers(fast_disk: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITH_TIMERS, str(fast_disk), str(GIVEN_MIB), str(TIMERS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < GIVEN_MIB + ROOM_MIB + NEAR_MIB, f"grew by {done.stdout.strip()} MiB"


def test_too_little_memory_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="given 1000 bytes of memory per slot; it needs"):
        RocksDBOptions(memory_bytes=1000)


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"no state backend 'disk'; use 'heap' .*'hashmap'.* or 'rocksdb'"):
        make_keyed_backend("disk", "uid", 16, range(16))
    assert type(make_keyed_backend("hashmap", "uid", 16, range(16))).__name__ == "HeapKeyedStateBackend"


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Any]:
    made = RocksDBKeyedStateBackend("uid", 16, range(16), RocksDBOptions(8 << 20, tmp_path))
    yield made
    made.close()


def test_working_files_go_with_the_backend(backend: Any, tmp_path: Path) -> None:
    assert len(list(tmp_path.iterdir())) == 1
    backend.close()
    backend.close()
    assert list(tmp_path.iterdir()) == []


def test_backends_with_the_same_options_share_the_memory(tmp_path: Path) -> None:
    options = RocksDBOptions(8 << 20, tmp_path)
    one, other = (RocksDBKeyedStateBackend(uid, 16, range(16), options) for uid in ("one", "other"))
    assert one.memory is other.memory
    one.get_state(ValueStateDescriptor("a"))
    alone = one.memory.object_bytes_per_store()
    other.get_state(ValueStateDescriptor("b"))
    assert one.memory.object_bytes_per_store() == alone // 2
    one.close()
    other.close()


def test_a_write_that_fails_in_the_middle_leaves_nothing_to_go_on_with(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = backend.get_state(ValueStateDescriptor("value"))
    backend.current_key = "k"
    backend.begin_epoch()
    state.update(1)

    def full(changes: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(backend.database, "write", full)
    with pytest.raises(LocalDiskError, match="no space"):
        backend.commit_epoch()
    backend.rollback_epoch()
    with pytest.raises(StateError, match="must be restored into a new backend"):
        backend.begin_epoch()


@pytest.mark.parametrize("descriptor", [ValueStateDescriptor("s"), ListStateDescriptor("s"), MapStateDescriptor("s")])
def test_what_has_expired_is_cleaned_up_though_nobody_asks_for_it(backend: Any, descriptor: Any) -> None:
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(10)).build())
    state = backend.get_state(descriptor)
    for key in range(100):
        backend.current_key = key
        state.put("a", 1) if hasattr(state, "put") else state.update([1])
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    backend.processing_time_ms = 10
    assert backend.number_of_entries() == 100
    assert list(backend.full_sections()) == []
    for _ in range(3):
        backend.delta_sections()
        backend.commit_epoch(cut=True)
        backend.checkpoint_completed()
    assert backend.number_of_entries() == 0
