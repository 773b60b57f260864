"""The local files of RocksDB state: whoever is killed leaves them behind, and the next one removes them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.state.backends import make_keyed_backend
from headwater.state.rocksdb.home import home_in, remove_abandoned
from headwater.state.rocksdb.options import RocksDBOptions

PROCESS = """
import sys, time
from pathlib import Path
from headwater.state.backends import make_keyed_backend
from headwater.state.rocksdb.options import RocksDBOptions

backend = make_keyed_backend("rocksdb", "uid", 16, range(16), RocksDBOptions(8 << 20, Path(sys.argv[1])))
copy = backend.new_native_checkpoint()
print(backend.local_directory, flush=True)
sys.stdin.read()
"""

Started = tuple[subprocess.Popen[str], Path]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], Started]]:
    """Starts a process with RocksDB state in tmp_path, which ends when its input does."""
    processes: list[subprocess.Popen[str]] = []

    def started() -> Started:
        process = subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    yield started
    for process in processes:
        process.kill()
        process.communicate()


def new_backend(directory: Path) -> Any:
    return make_keyed_backend("rocksdb", "uid", 16, range(16), RocksDBOptions(8 << 20, directory))


def test_what_a_killed_process_left_is_removed_by_the_next_one(start: Callable[[], Started], tmp_path: Path) -> None:
    process, home = start()
    assert home.parent == tmp_path and len(list(home.iterdir())) == 3  # the database, its copy, and OWNER
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert home.is_dir()
    backend = new_backend(tmp_path)
    assert list(tmp_path.iterdir()) == [backend.local_directory]
    backend.close()
    assert not list(tmp_path.iterdir())


def test_what_is_in_use_stays_even_if_its_process_does_not_run(start: Callable[[], Started], tmp_path: Path) -> None:
    process, home = start()
    process.send_signal(signal.SIGSTOP)
    files = sorted(home.rglob("*"))
    backend = new_backend(tmp_path)
    assert remove_abandoned(tmp_path) == []
    assert sorted(home.rglob("*")) == files
    backend.close()
    assert list(tmp_path.iterdir()) == [home]


def test_a_process_that_ends_leaves_nothing(start: Callable[[], Started], tmp_path: Path) -> None:
    process, _ = start()
    process.communicate("")
    assert process.returncode == 0
    assert not list(tmp_path.iterdir())


def test_what_was_removed_in_part_is_removed(start: Callable[[], Started], tmp_path: Path) -> None:
    process, home = start()
    process.send_signal(signal.SIGKILL)
    process.wait()
    for path in home.rglob("*.sst"):
        path.unlink()
    assert remove_abandoned(tmp_path) == [home]
    assert not list(tmp_path.iterdir())


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "OWNER").write_text("")
    (tmp_path / "headwater-rocksdb-1-just-being-made").mkdir()
    (tmp_path / "headwater-rocksdb-2-link").symlink_to(tmp_path / "elsewhere")
    before = sorted(tmp_path.rglob("*"))
    assert remove_abandoned(tmp_path) == []
    assert sorted(tmp_path.rglob("*")) == before


def test_what_belongs_to_another_user_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "headwater-rocksdb-1-a"
    home.mkdir()
    (home / "OWNER").write_text("")
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    assert remove_abandoned(tmp_path) == [] and home.is_dir()
    monkeypatch.undo()
    assert remove_abandoned(tmp_path) == [home]


def test_the_home_goes_with_the_last_database_and_is_made_again(tmp_path: Path) -> None:
    one, other = new_backend(tmp_path), new_backend(tmp_path)
    assert one.local_directory == other.local_directory == home_in(tmp_path).path
    one.close()
    assert len(list(tmp_path.iterdir())) == 1
    other.close()
    assert not list(tmp_path.iterdir())
    again = new_backend(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    again.close()


def test_a_child_leaves_the_home_alone(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    directory = home.new_directory()  # without a database: a process with one must not fork
    child = os.fork()
    if child == 0:
        os._exit(0 if home_in(tmp_path) is not home and remove_abandoned(tmp_path) == [] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert directory.is_dir()
    home.remove(directory)
    assert not list(tmp_path.iterdir())
