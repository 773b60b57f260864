"""Native snapshots as others see them: other shapes, other backends, savepoints, tools, remote storages."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.restore.rescale import plan_restore
from headwater.checkpoint.savepoint.catalogue import catalogue
from headwater.checkpoint.savepoint.history import retained_checkpoints
from headwater.checkpoint.savepoint.savepoint import open_savepoint, write_savepoint
from headwater.checkpoint.snapshot.native_reader import snapshot_sections, stored_databases
from headwater.checkpoint.storage.base import StorageSpec
from headwater.checkpoint.storage.fsspec import FsspecStorage
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError
from headwater.state_processor import SavepointReader
from tests.unit.checkpoint.native_job import NativeJob
from tests.unit.checkpoint.old_job import LIST, OFFSETS, RULES, VALUE, OldJob, restored

UIDS = ["count", "sum"]
_IN_MEMORY = Path("/dev/shm")


def fill(job: OldJob) -> None:
    """Two operators with keyed state in the same partitions, and state without keys beside it."""
    for uid in UIDS:
        for key in range(40):
            backend = job.of_key(uid, key)
            backend.get_state(VALUE).update((uid, key, job.epoch))
            backend.get_state(LIST).add(job.epoch)
            backend.event_timers.register(key, key)
        for index, state in enumerate(job.states[uid]):
            state.unkeyed.get_list_state(OFFSETS).add((index, job.epoch))
            state.unkeyed.get_broadcast_state(RULES).put("limit", job.epoch)


def everything(manifest_of: OldJob, parallelism: int, directory: str | None = None) -> dict[str, Any]:
    """All state, as a job on the heap with that parallelism restores it."""
    job = manifest_of
    restores = plan_restore(job.manifest, job.shape(parallelism), directory or str(job.layout.root))
    found: dict[str, Any] = {}
    for uid in job.uids:
        parts = [restored(restores[1, index], uid, job.max_parallelism, parallelism) for index in range(parallelism)]
        found[f"{uid} values"] = {key: value for part in parts for key, value in part.values().items()}
        found[f"{uid} lists"] = {key: value for part in parts for key, value in part.lists().items()}
        found[f"{uid} timers"] = sorted(timer for part in parts for timer in part.keyed.event_timers.timers())
        found[f"{uid} offsets"] = sorted(
            offset for part in parts for offset in part.unkeyed.get_list_state(OFFSETS).get()
        )
        found[f"{uid} rules"] = [dict(part.unkeyed.get_broadcast_state(RULES).items()) for part in parts]
    return found


class Jobs:
    """The same job on the heap and on RocksDB."""

    def __init__(self, directory: Path) -> None:
        self.heap = OldJob(directory / "heap", UIDS, 2)
        self.native = NativeJob(directory / "native", UIDS, 2)

    def run(self, change: Callable[[OldJob], None] = fill) -> None:
        for job in (self.heap, self.native):
            job.run_epoch(change)


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    """A native snapshot, and a delta on it."""
    made = Jobs(tmp_path)
    made.run()
    made.native.snapshot_natively()
    made.run()
    yield made
    made.native.close()


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_the_heap_restores_it_at_any_parallelism(jobs: Jobs, parallelism: int) -> None:
    assert [[ref.kind for ref in chain] for chain in jobs.native.chains] == [["native", "delta"]] * 2
    assert everything(jobs.native, parallelism) == everything(jobs.heap, parallelism)


_change = st.tuples(st.sampled_from(UIDS), st.integers(0, 12), st.sampled_from(["set", "add", "clear"]))


@settings(max_examples=15, deadline=None)
@given(epochs=st.lists(st.tuples(st.lists(_change, max_size=8), st.booleans()), min_size=1, max_size=6))
def test_whatever_happened_both_backends_restore_the_same(epochs: list[Any]) -> None:
    directory = Path(tempfile.mkdtemp(dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None))
    jobs = Jobs(directory)
    for changes, natively in epochs:

        def apply(job: OldJob, changes: list[Any] = changes) -> None:
            for uid, key, what in changes:
                backend = job.of_key(uid, key)
                if what == "set":
                    backend.get_state(VALUE).update(job.epoch)
                elif what == "add":
                    backend.get_state(LIST).add(job.epoch)
                else:
                    backend.clear_current_key()

        jobs.run(apply)
        if natively:
            jobs.native.snapshot_natively()
    jobs.run(lambda job: None)
    for parallelism in (1, 2, 5):
        assert everything(jobs.native, parallelism) == everything(jobs.heap, parallelism)
    jobs.native.close()
    shutil.rmtree(directory)


def test_a_savepoint_has_all_files_and_can_be_moved(jobs: Jobs, tmp_path: Path) -> None:
    expected = everything(jobs.heap, 3)
    info = write_savepoint(jobs.native.layout, jobs.native.manifest, tmp_path / "savepoint", durable=False)
    assert info.files == len(jobs.native.manifest.snapshot_names()) > 4
    shutil.rmtree(str(jobs.native.layout.root))
    (tmp_path / "savepoint").rename(tmp_path / "moved")
    assert everything(jobs.native, 3, str(tmp_path / "moved")) == expected


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_a_savepoint_of_a_damaged_file_is_refused(jobs: Jobs, tmp_path: Path, damage: str) -> None:
    file = Path(str(jobs.native.layout.snapshot(jobs.native.chains[0][0].files[0].name)))
    content = bytearray(file.read_bytes())
    file.unlink()
    if damage == "changed":
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    with pytest.raises(CheckpointError, match=f"{file}.* is (damaged|missing)"):
        write_savepoint(jobs.native.layout, jobs.native.manifest, tmp_path / "savepoint", durable=False)
    assert not (tmp_path / "savepoint").exists()


def test_tools_see_what_is_in_it(jobs: Jobs) -> None:
    found = [catalogue(open_savepoint(str(job.layout.root))).states for job in (jobs.heap, jobs.native)]
    assert [[(state.uid, state.name, state.kind, state.entries) for state in states] for states in found][1] == [
        (state.uid, state.name, state.kind, state.entries) for state in found[0]
    ]
    heap, native = (SavepointReader(str(job.layout.root)) for job in (jobs.heap, jobs.native))
    for name in ("value", "list"):
        assert sorted(native.keyed_state("sum", name)) == sorted(heap.keyed_state("sum", name))
    assert sorted(native.timers("sum")) == sorted(heap.timers("sum"))


def test_only_the_files_that_are_needed_are_fetched(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    (chain, _) = jobs.native.chains
    database = stored_databases(jobs.native.layout, chain[0])[0]
    monkeypatch.setattr(type(database), "fetch", lambda *_: pytest.fail("nothing of this database was wanted"))
    of_the_other = range(database.key_groups.stop, 16)
    assert list(snapshot_sections(jobs.native.layout, chain[0], of_the_other, include_unkeyed=False)) == []
    unkeyed = list(snapshot_sections(jobs.native.layout, chain[0], range(0)))
    assert {section.name for section in unkeyed} == {"offsets", "rules"}


def test_shared_files_stay_as_long_as_a_manifest_names_them(jobs: Jobs) -> None:
    native = jobs.native
    first = {name for chain in native.chains for name in (chain[0].name, *(file.name for file in chain[0].files))}
    native.snapshot_natively()
    assert len(native.sent) == 2 * 3, "two partitions: an index, and one new file of each of two databases"
    native.run_epoch(fill)
    store = ManifestStore(native.layout, durable=False)
    sizes = [checkpoint.full_bytes for checkpoint in retained_checkpoints(str(native.layout.root))]
    store.collect_garbage(1)
    left = {path.name for path in Path(str(native.layout.snapshots)).iterdir()}
    assert left == native.manifest.snapshot_names()
    assert first & left and first - left, "some files are shared, the rest is gone"
    on_disk = [path.stat().st_size for path in Path(str(native.layout.snapshots)).iterdir()]
    assert sizes[-1] == sum(on_disk)


class Remote:
    """A job on RocksDB in a remote storage, with copies on this machine."""

    def __init__(self, directory: Path, name: str) -> None:
        spec = StorageSpec(f"memory://native-{name}", copies_directory=str(directory / "copies"))
        self.layout = CheckpointLayout(spec)
        self.job = NativeJob(directory, ["count"], 1, layout=self.layout)
        self.job.run_epoch(lambda job: job.of_key("count", 1).get_state(VALUE).update("remote"))
        self.job.snapshot_natively()
        self.ref = self.job.chains[0][0]

    def read(self) -> list[Any]:
        return list(snapshot_sections(self.layout, self.ref))


@pytest.fixture
def remote(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Remote]:
    made = Remote(tmp_path, request.node.name)
    yield made
    made.job.close()


def test_copies_of_this_machine_are_used(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FsspecStorage, "download", lambda *_: pytest.fail("there was a copy"))
    assert [section.name for section in remote.read()] == ["value"]


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_a_copy_that_is_not_right_is_not_used(remote: Remote, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    storage = remote.layout.storage
    assert isinstance(storage, FsspecStorage) and storage.copies is not None
    copy = storage.copies.find(remote.ref.files[0].name)
    assert copy is not None
    content = bytearray(copy.read_bytes())
    copy.unlink()
    if damage == "changed":
        content[-1] ^= 1
        copy.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert [section.name for section in remote.read()] == ["value"]
    assert ("it is a local copy" in caplog.text) == (damage == "changed")


def test_a_file_that_is_missing_is_named(remote: Remote) -> None:
    name = remote.ref.files[0].name
    remote.layout.storage.delete(f"snapshots/{name}")
    with pytest.raises(CheckpointError, match=f"{name} of epoch 0 is missing"):
        remote.read()
