"""What every checkpoint storage must do: a local directory, S3 (a server on this machine), and fsspec's memory."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.finished_splits import FinishedSplits
from headwater.checkpoint.manifest import Manifest, PartitionRecord, SourceRecord
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.snapshot.file import read_header, read_sections, write_snapshot
from headwater.checkpoint.storage.base import CheckpointStorage, StorageSpec, open_storage
from headwater.checkpoint.storage.fsspec import READ_AHEAD_BYTES, FsspecStorage
from headwater.checkpoint.storage.retries import RetryPolicy
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError, FencedError, StorageError
from headwater.state.snapshot.section import Section
from tests.contract.s3_server import S3Server, s3_server


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(params=["local", "s3", "memory"])
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> StorageSpec:
    if request.param == "local":
        return StorageSpec(f"file://{tmp_path}/job")
    if request.param == "memory":
        return StorageSpec(f"memory://{uuid.uuid4().hex}/job")
    server: S3Server = request.getfixturevalue("s3")
    return server.spec()


@pytest.fixture
def storage(spec: StorageSpec) -> CheckpointStorage:
    storage = open_storage(spec)
    storage.create(["a", "b"])
    return storage


def put(storage: CheckpointStorage, name: str, content: bytes) -> None:
    with storage.write(name) as file:
        file.write(content)


class TestFiles:
    def test_what_was_written_is_read(self, storage: CheckpointStorage) -> None:
        for content in (b"", b"x", os.urandom(100_000)):
            put(storage, "a/file", content)
            assert storage.read("a/file") == content
            assert storage.size("a/file") == len(content)

    def test_what_is_not_there_is_not_there(self, storage: CheckpointStorage) -> None:
        assert storage.size("a/nothing") is None
        assert storage.list("nowhere") == []
        with pytest.raises(FileNotFoundError):
            storage.read("a/nothing")
        with pytest.raises(FileNotFoundError):
            storage.open("a/nothing").read(1)
        storage.delete("a/nothing")

    def test_a_list_has_the_files_of_one_directory_as_they_are_now(self, storage: CheckpointStorage) -> None:
        put(storage, "a/one", b"1")
        put(storage, "a/two", b"2")
        put(storage, "b/other", b"3")
        assert sorted(storage.list("a")) == ["one", "two"]
        open_storage_again(storage).write_once("a/three", b"3")
        assert storage.delete("a/one")
        assert sorted(storage.list("a")) == ["three", "two"]
        assert storage.size("a/one") is None

    def test_a_write_that_fails_leaves_what_was_there(self, storage: CheckpointStorage) -> None:
        put(storage, "a/file", b"before")
        with pytest.raises(RuntimeError), storage.write("a/file") as file:
            file.write(b"half of")
            raise RuntimeError("the state went away")
        assert storage.read("a/file") == b"before"
        assert storage.list("a") == ["file"]

    def test_one_of_many_writers_wins(self, storage: CheckpointStorage) -> None:
        storage.write_once("a/once", b"first")
        with pytest.raises(FileExistsError):
            storage.write_once("a/once", b"second")
        assert storage.read("a/once") == b"first"
        assert storage.list("a") == ["once"]

    def test_ranges_of_a_large_file(self, storage: CheckpointStorage) -> None:
        content = os.urandom(READ_AHEAD_BYTES * 2 + 12_345)
        put(storage, "a/large", content)
        with storage.open("a/large") as file:
            assert file.seek(0, os.SEEK_END) == len(content)
            for start, length in ((0, 10), (READ_AHEAD_BYTES - 5, 10), (len(content) - 7, 100), (3, 2)):
                file.seek(start)
                assert file.read(length) == content[start : start + length]
                assert file.tell() == min(start + length, len(content))
            file.seek(17)
            assert file.read() == content[17:]
            assert file.read(1) == b""

    def test_whole_files_go_up_and_down(self, storage: CheckpointStorage, tmp_path: Path) -> None:
        source, target = tmp_path / "source", tmp_path / "target"
        source.write_bytes(os.urandom(1000))
        storage.upload("a/sst", source)
        storage.download("a/sst", target)
        assert target.read_bytes() == source.read_bytes()

    def test_another_process_opens_it_from_a_pickle(self, storage: CheckpointStorage) -> None:
        put(storage, "a/file", b"content")
        copy = pickle.loads(pickle.dumps(CheckpointLayout(storage)))
        assert copy.storage.url == storage.url
        assert copy.storage.read("a/file") == b"content"

    def test_threads_may_share_it(self, storage: CheckpointStorage) -> None:
        def work(number: int) -> bytes:
            put(storage, f"a/{number}", str(number).encode())
            return storage.read(f"a/{number}")

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(40))) == [str(number).encode() for number in range(40)]


def open_storage_again(storage: CheckpointStorage) -> CheckpointStorage:
    copy: CheckpointStorage = pickle.loads(pickle.dumps(storage))
    return copy


HEADER = {"epoch": 1, "kind": "delta", "key_groups": (0, 128)}


def sections(size: int = 10) -> list[Section]:
    return [Section("op", "keyed", "s", group, os.urandom(size)) for group in range(20)]


def manifest(epoch: int, **more: Any) -> Manifest:
    return Manifest("j", "job", epoch, 1, 0, 0, "f", 128, **more)


class TestCheckpoints:
    def test_a_job_s_files_live_in_it(self, spec: StorageSpec) -> None:
        layout = CheckpointLayout(spec)
        store = ManifestStore(layout)
        assert store.take_over("job") is None
        written = {}
        for epoch in range(5):
            content = sections()
            path = layout.new_snapshot(1, 0, epoch, "a", "delta")
            ref = write_snapshot(path, {**HEADER, "epoch": epoch}, content)
            written[epoch] = (ref, content)
            finished = FinishedSplits(layout, "files").add(map(str, range(300)), epoch, "a")
            sources = {"files": SourceRecord(finished_splits=finished)}
            store.write(manifest(epoch, partitions=[PartitionRecord(1, 0, [ref])], sources=sources))
            store.note_committed(epoch)
            store.collect_garbage(keep=2)
        reader = ManifestStore(CheckpointLayout(spec))
        assert reader.epochs() == [3, 4]
        assert reader.is_committed(4) and not reader.is_committed(5)
        latest = reader.latest()
        assert latest is not None
        ref, content = written[4]
        assert latest.partitions[0].snapshots == [ref]
        assert list(read_sections(layout.snapshot(ref.name), ref)) == content
        assert [s.key_group for s in read_sections(layout.snapshot(ref.name), ref, range(3, 5))] == [3, 4]
        assert read_header(layout.snapshot(ref.name), ref)["epoch"] == 4
        assert len(FinishedSplits.restore(layout, "files", latest.sources["files"].finished_splits)) == 300
        assert sorted(layout.storage.list("snapshots")) == sorted(written[e][0].name for e in (3, 4))
        old = written[0][0]
        with pytest.raises(CheckpointError, match=r"\.delta of epoch 0 is missing"):
            list(read_sections(layout.snapshot(old.name), old))

    def test_the_driver_that_was_started_first_is_fenced(self, spec: StorageSpec) -> None:
        first, second = (ManifestStore(CheckpointLayout(spec)) for _ in range(2))
        first.take_over("job")
        first.write(manifest(0))
        latest = second.take_over("job")
        assert latest is not None and latest.epoch == 0
        with pytest.raises(FencedError, match=r"by pid \d+ on host .* \(claim 2"):
            first.write(manifest(1))
        second.write(manifest(1))
        assert ManifestStore(CheckpointLayout(spec)).epochs() == [0, 1]

    def test_a_forked_child_writes_too(self, spec: StorageSpec) -> None:
        if spec.url.startswith("memory"):
            pytest.skip("the memory of a child is its own")
        command = [sys.executable, "-m", "tests.contract.forked_writer", spec.url, json.dumps(dict(spec.options))]
        subprocess.run(command, check=True, timeout=100, cwd=Path(__file__).resolve().parents[2])


class TestS3:
    def test_a_file_in_several_parts_is_there_at_its_end_only(
        self, s3: S3Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("s3fs.core.calculate_chunksize", lambda size, chunksize=None: 5 << 20)
        storage = open_storage(s3.spec())
        content = os.urandom(16 << 20)
        with storage.write("a/large") as file:
            file.write(content)
            file.flush()
            assert storage.size("a/large") is None
        assert storage.size("a/large") == len(content)
        with storage.open("a/large") as reader:
            reader.seek(10 << 20)
            assert reader.read(1000) == content[10 << 20 : (10 << 20) + 1000]

    def test_an_answer_that_was_lost_is_not_taken_for_another_driver(
        self, s3: S3Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        storage = FsspecStorage(s3.spec(), RetryPolicy(sleep=lambda seconds: None))
        fs, _ = storage._file_system()
        real = fs.pipe_file
        calls = []

        def lose_the_first_answer(*arguments: Any, **more: Any) -> None:
            calls.append(arguments)
            real(*arguments, **more)
            if len(calls) == 1:
                raise ConnectionResetError("after it was done")

        monkeypatch.setattr(fs, "pipe_file", lose_the_first_answer)
        storage.write_once("a/once", b"mine")
        assert len(calls) == 2
        with pytest.raises(FileExistsError):
            storage.write_once("a/once", b"theirs")

    def test_a_store_that_is_away_for_a_while_is_waited_for(self, s3: S3Server) -> None:
        pauses = []

        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                s3.start_again()

        spec = s3.spec()
        storage = FsspecStorage(spec, RetryPolicy(sleep=sleep))
        put(storage, "a/before", b"1")
        s3.stop()
        put(storage, "a/after", b"2")
        assert len(pauses) == 3
        assert (storage.read("a/before"), storage.read("a/after")) == (b"1", b"2")

    def test_a_store_that_stays_away_is_named(self, s3: S3Server) -> None:
        pauses: list[float] = []
        spec = s3.spec()
        storage = FsspecStorage(spec, RetryPolicy(attempts=4, sleep=pauses.append))
        storage.size("a/x")
        s3.stop()
        try:
            with pytest.raises(StorageError, match=rf"write of {spec.url}/a/x failed 4 times: EndpointConnectionError"):
                put(storage, "a/x", b"1")
        finally:
            s3.start_again()
        assert len(pauses) == 3

    def test_a_bucket_that_is_not_there_is_named_at_once(self, s3: S3Server) -> None:
        storage = open_storage(StorageSpec("s3://nowhere/job", s3.options))
        with pytest.raises(StorageError, match=r"s3://nowhere/job/a/x cannot be written: .*bucket"):
            put(storage, "a/x", b"1")

    def test_drivers_that_start_together_have_one_winner(self, s3: S3Server) -> None:
        spec = s3.spec()
        outcomes: list[str] = []
        barrier = threading.Barrier(4)

        def start() -> None:
            store = ManifestStore(CheckpointLayout(spec))
            barrier.wait()
            try:
                store.take_over("job")
                store.write(manifest(0))
                outcomes.append("wrote")
            except FencedError:
                outcomes.append("fenced")

        threads = [threading.Thread(target=start) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["fenced", "fenced", "fenced", "wrote"]


def test_an_unknown_scheme_says_what_can_be_used() -> None:
    with pytest.raises(CheckpointError, match=r"nothing://x/job cannot be used: .*Expected a path, or a URL"):
        open_storage("nothing://x/job").read("a")
