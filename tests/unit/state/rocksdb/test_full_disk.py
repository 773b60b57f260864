"""The local disk takes nothing more: one error says so, and what was committed before can be restored."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import cloudpickle
import pytest

from headwater.checkpoint.snapshot.native_reader import stored_databases
from headwater.common.errors import CheckpointError, LocalDiskError
from headwater.state.descriptors import ValueStateDescriptor
from headwater.state.rocksdb.backend import RocksDBKeyedStateBackend
from headwater.state.rocksdb.options import RocksDBOptions
from tests.unit.checkpoint.native_job import NativeJob
from tests.unit.checkpoint.test_disk_full import disk_full_after

ROOT = Path(__file__).resolve().parents[3]


def in_a_new_process(work: Callable[[], None]) -> None:
    """Not in a forked one: it would have RocksDB's locks of this process, but not the threads that release them."""
    program = "import cloudpickle, sys; cloudpickle.load(sys.stdin.buffer)()"
    ended = subprocess.run(
        [sys.executable, "-c", program], input=cloudpickle.dumps(work), cwd=ROOT, capture_output=True, check=False
    )
    assert ended.returncode == 0, ended.stderr.decode()


def new_backend(directory: Path) -> RocksDBKeyedStateBackend:
    return RocksDBKeyedStateBackend("op", 4, range(4), RocksDBOptions(8 << 20, directory))


def put(backend: RocksDBKeyedStateBackend, keys: range) -> None:
    state = backend.get_state(ValueStateDescriptor("v"))
    backend.begin_epoch()
    for key in keys:
        backend.current_key = key
        state.update([Random(key).randbytes(1_000)])  # a list: plain values are written later
    backend.commit_epoch(cut=True)


def test_an_epoch_that_cannot_be_written(tmp_path: Path) -> None:
    def work() -> None:
        backend = new_backend(tmp_path / "local")
        put(backend, range(10))
        backend.native_checkpoint(tmp_path / "checkpoint")
        put(backend, range(10, 1_000))
        with disk_full_after(50_000):
            with pytest.raises(Exception, match="File too large"):
                backend.native_checkpoint(tmp_path / "another")
            with pytest.raises(LocalDiskError) as caught:
                put(backend, range(1_000, 1_010))
        text = str(caught.value)
        assert text.startswith(f"operator 'op': RocksDB's working files cannot be written to {tmp_path / 'local'}/")
        assert "File too large); make room there, or let state.backend.rocksdb.localdir be" in text
        backend.close()
        assert not list((tmp_path / "local").iterdir()), "what could not be written to is still there"
        restored = new_backend(tmp_path / "local")
        assert restored.load_native(tmp_path / "checkpoint")
        assert restored.number_of_entries() == 10

    in_a_new_process(work)


def test_a_database_that_cannot_be_made(tmp_path: Path) -> None:
    def work() -> None:
        with (
            disk_full_after(10),
            pytest.raises(LocalDiskError, match=r"operator 'op': RocksDB's working files cannot be .*make room there"),
        ):
            new_backend(tmp_path)
        new_backend(tmp_path).close()

    in_a_new_process(work)


def test_a_snapshot_that_cannot_be_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = NativeJob(tmp_path, ["op"], 1)
    try:
        job.epoch = 0
        job.snapshot_natively()
        (database,) = stored_databases(job.layout, job.chains[0][0])
    finally:
        job.close()
    target = tmp_path / "restore"
    target.mkdir()

    def no_links(*_: Any) -> None:
        raise OSError(errno.EXDEV, "another disk")

    def full_disk(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("headwater.checkpoint.snapshot.native_reader.os.link", no_links)
    monkeypatch.setattr(shutil, "copyfile", full_disk)
    with pytest.raises(LocalDiskError) as caught:
        database.fetch(target)
    text = str(caught.value)
    assert f"cannot be written to {target}: No space left on device; make room there" in text
    assert not isinstance(caught.value, CheckpointError), "the snapshot is not what is wrong"
