"""Manifests: written once, read strictly; garbage goes and nothing else does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from headwater.checkpoint.finished_splits import FinishedSplits, FinishedSplitsRecord, SplitSegmentRef
from headwater.checkpoint.manifest import Manifest, PartitionRecord, SourceRecord, SplitRecord
from headwater.checkpoint.paths import CheckpointLayout, epoch_of_file_name
from headwater.checkpoint.savepoint.savepoint import open_savepoint
from headwater.checkpoint.snapshot.file import SnapshotRef, write_snapshot
from headwater.checkpoint.storage.local import LocalStorage
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError, FencedError


@pytest.fixture
def layout(tmp_path: Path) -> CheckpointLayout:
    layout = CheckpointLayout(tmp_path / "job")
    layout.create()
    return layout


@pytest.fixture
def store(layout: CheckpointLayout) -> ManifestStore:
    return ManifestStore(layout, durable=False)


def manifest(epoch: int, snapshots: list[SnapshotRef] | None = None, **more: Any) -> Manifest:
    return Manifest(
        job_id="j1",
        job_name="job",
        epoch=epoch,
        incarnation=1,
        created_ms=1,
        now_ms=2,
        plan_fingerprint="f",
        max_parallelism=128,
        partitions=[PartitionRecord(1, 0, snapshots or [])],
        **more,
    )


def snapshot(layout: CheckpointLayout, epoch: int, attempt: str = "a") -> SnapshotRef:
    path = layout.new_snapshot(1, 0, epoch, attempt, "delta")
    return write_snapshot(path, {"epoch": epoch, "kind": "delta", "key_groups": (0, 128)}, [], durable=False)


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


def test_a_fresh_directory_has_no_manifest(tmp_path: Path, store: ManifestStore) -> None:
    assert store.latest() is None
    assert ManifestStore(CheckpointLayout(tmp_path / "nowhere")).latest() is None


def test_latest_is_the_highest_epoch_with_everything_in_it(layout: CheckpointLayout, store: ManifestStore) -> None:
    split = SplitRecord(b"payload", b"position", b"generator", False, {"lines": 4})
    full = manifest(
        10,
        [snapshot(layout, 10)],
        sources={"src": SourceRecord({"a.txt": split})},
        committables={"sink": [b"x", b"y"]},
        counters={"records_in": 5},
        spark={"batch_id": 10},
        operators={"count": "Count"},
        finished=True,
    )
    for written in (manifest(9), full, manifest(2)):
        store.write(written)
    assert store.epochs() == [2, 9, 10]
    assert ManifestStore(layout).latest() == full
    assert full.partition(1, 0) is full.partitions[0]
    assert full.partition(1, 1) is None


def test_an_epoch_has_one_manifest_for_ever(layout: CheckpointLayout, store: ManifestStore) -> None:
    store.write(manifest(1))
    with pytest.raises(CheckpointError, match=r"fenced: epoch 1 .*epoch-000000000001\.manifest"):
        ManifestStore(layout).write(manifest(1, finished=True))
    latest = store.latest()
    assert latest is not None and not latest.finished
    assert names(layout.manifests) == ["epoch-000000000001.manifest"]


def test_the_loser_is_fenced_without_hard_links_too(store: ManifestStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    store.write(manifest(1))
    with pytest.raises(CheckpointError, match="fenced"):
        store.write(manifest(1))
    assert store.epochs() == [1]


def damage(layout: CheckpointLayout, epoch: int) -> None:
    path = layout.manifest(epoch)
    assert isinstance(path, Path)
    path.write_bytes(path.read_bytes()[:-1])


class TestDamagedManifest:
    """Of one that is not the newest nobody knows which files it needs."""

    @pytest.fixture
    def retained(self, layout: CheckpointLayout) -> CheckpointLayout:
        """Checkpoints 1, 2 and 3. Files 1 and 2 are for 1 and 2 only, file 3 for all that follow."""
        store = ManifestStore(layout, durable=False)
        store.take_over("job")
        first, second, third = (snapshot(layout, epoch) for epoch in (1, 2, 3))
        store.write(manifest(1, [first]))
        store.write(manifest(2, [first, second]))
        store.write(manifest(3, [third]))
        snapshot(layout, 1, "orphan")
        snapshot(layout, 2, "orphan")
        snapshot(layout, 4, "orphan")
        return layout

    def test_a_job_starts_beside_it_and_keeps_what_it_may_need(
        self, retained: CheckpointLayout, caplog: pytest.LogCaptureFixture
    ) -> None:
        damage(retained, 2)
        store = ManifestStore(retained)
        latest = store.take_over("job")
        assert len(names(retained.snapshots)) == 6, "nothing is deleted before all is known to be there"
        store.remove_orphans()
        assert latest is not None and latest.epoch == 3
        assert f"manifest {retained.manifest(2)} of epoch 2 is damaged" in caplog.text
        assert "no file of epoch 2 or before is deleted" in caplog.text
        assert "may already be visible" not in caplog.text, "that is said of the newest only"
        assert [epoch_of_file_name(name) for name in names(retained.snapshots)] == [1, 1, 2, 2, 3]
        assert len(names(retained.manifests)) == 3, "it is left for a person to look at"

    def test_it_goes_when_a_whole_one_would(self, retained: CheckpointLayout) -> None:
        damage(retained, 2)
        store = ManifestStore(retained)
        store.take_over("job")
        store.remove_orphans()
        store.write(manifest(4, [snapshot(retained, 4)]))
        store.collect_garbage(keep=3)
        assert [epoch_of_file_name(name) for name in names(retained.snapshots)] == [1, 1, 2, 2, 3, 4]
        store.write(manifest(5, [snapshot(retained, 5)]))
        store.collect_garbage(keep=3)
        assert store.epochs() == [3, 4, 5]
        assert [epoch_of_file_name(name) for name in names(retained.snapshots)] == [3, 4, 5]

    def test_the_newest_stops_everything_and_tells_the_way_out(self, retained: CheckpointLayout) -> None:
        damage(retained, 3)
        damage(retained, 2)
        expected = (
            rf"manifest {retained.manifest(3)} of epoch 3 is damaged.* may already be visible\. The newest manifest "
            rf"that is whole is that of epoch 1: .*can start from {retained.root}@1 \(headwater run -s\), and gives "
            "the output since then again"
        )
        for read in (ManifestStore(retained).latest, lambda: open_savepoint(retained.root)):
            with pytest.raises(CheckpointError, match=expected):
                read()
        damage(retained, 1)
        with pytest.raises(CheckpointError, match=r"epoch 3 is damaged.* No manifest in the directory is whole"):
            ManifestStore(retained).take_over("job")


def test_every_single_damaged_byte_is_found_and_older_epochs_are_not_used(
    layout: CheckpointLayout, store: ManifestStore
) -> None:
    store.write(manifest(1))
    path = store.write(manifest(2))
    good = path.read_bytes()
    for position in range(len(good)):
        path.write_bytes(good[:position] + bytes([good[position] ^ 1]) + good[position + 1 :])
        with pytest.raises(CheckpointError, match=r"epoch-000000000002\.manifest of epoch 2"):
            store.latest()
    for content in (b"", good[:-1], good + b"x"):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="is damaged"):
            store.latest()


def test_a_manifest_under_the_name_of_another_epoch_is_found(layout: CheckpointLayout, store: ManifestStore) -> None:
    store.write(manifest(1)).rename(layout.manifest(5))
    with pytest.raises(CheckpointError, match="it is the manifest of epoch 1"):
        store.latest()


def test_loading_what_is_not_there_says_what_is(store: ManifestStore) -> None:
    with pytest.raises(CheckpointError, match="there is none at all"):
        store.load(3)
    store.write(manifest(4))
    with pytest.raises(CheckpointError, match="epochs 4 to 4 are kept"):
        store.load(3)


def test_a_job_that_begins_again_where_all_was_deleted_commits_its_own_output(layout: CheckpointLayout) -> None:
    """Epochs begin at 0 again: what an earlier run showed of them says nothing."""
    store = ManifestStore(layout)
    store.take_over("job")
    for epoch in range(3):
        store.write(manifest(epoch))
        store.note_committed(epoch)
    store.delete_checkpoints()
    assert not [name for directory in ("manifests", "snapshots", "splits") for name in layout.storage.list(directory)]
    again = ManifestStore(layout)
    assert again.take_over("job") is None
    again.write(manifest(0))
    assert not again.is_committed(0)


@pytest.mark.parametrize(("newest", "noted", "left"), [(None, 43, False), (2, 43, False), (2, 2, True), (2, 1, True)])
def test_what_is_visible_of_an_epoch_without_a_manifest_is_forgotten(
    layout: CheckpointLayout, newest: int | None, noted: int, left: bool
) -> None:
    """A start from a savepoint of epoch 43 notes that its output is visible; the next start may be from another one."""
    store = ManifestStore(layout)
    store.take_over("job")
    for epoch in range(0 if newest is None else newest + 1):
        store.write(manifest(epoch))
    store.note_committed(noted)
    again = ManifestStore(layout)
    again.take_over("job")
    assert again.is_committed(noted) is left
    assert again.is_committed(0) is left


def test_checkpoints_that_another_driver_goes_on_from_are_not_deleted(layout: CheckpointLayout) -> None:
    store = ManifestStore(layout)
    store.take_over("job")
    store.write(manifest(0))
    ManifestStore(layout).take_over("job")
    with pytest.raises(FencedError):
        store.delete_checkpoints()
    assert ManifestStore(layout).latest() is not None


def test_a_draft_of_a_writer_that_died_is_not_a_manifest(layout: CheckpointLayout, store: ManifestStore) -> None:
    store.write(manifest(1))
    (layout.manifests / "epoch-000000000002.manifest.abc.tmp").write_bytes(b"half")
    latest = store.latest()
    assert latest is not None and latest.epoch == 1
    store.take_over("job")
    assert store.remove_orphans() == 1
    assert names(layout.manifests) == ["epoch-000000000001.manifest"]


class TestGarbage:
    def test_chains_of_kept_manifests_stay_and_the_rest_goes(
        self, layout: CheckpointLayout, store: ManifestStore
    ) -> None:
        refs = {epoch: snapshot(layout, epoch) for epoch in range(1, 7)}
        for epoch in range(1, 7):
            # Epoch 4 wrote a full snapshot: from there on 1 to 3 are not needed.
            chain = [refs[e] for e in range(4 if epoch >= 4 else 1, epoch + 1)]
            store.write(manifest(epoch, chain))
        store.collect_garbage(keep=2)
        assert store.epochs() == [5, 6]
        assert names(layout.snapshots) == sorted(refs[e].name for e in (4, 5, 6))

    def test_a_new_store_finds_the_same_garbage(self, layout: CheckpointLayout, store: ManifestStore) -> None:
        for epoch in range(3):
            store.write(manifest(epoch, [snapshot(layout, epoch)]))
        fresh = ManifestStore(layout)
        assert fresh.collect_garbage(keep=1) == 4
        assert len(names(layout.snapshots)) == 1

    def test_attempts_under_way_and_protected_files_stay(self, layout: CheckpointLayout, store: ManifestStore) -> None:
        dead = snapshot(layout, 1, "dead")
        child = snapshot(layout, 1, "child-still-writes-its-manifest-later")
        for epoch in (1, 2, 3):
            store.write(manifest(epoch))
        under_way = snapshot(layout, 4)
        (layout.snapshots / "README").write_text("not ours")
        store.collect_garbage(keep=1, protected=[child.name])
        assert names(layout.snapshots) == sorted([child.name, under_way.name, "README"])
        assert dead.name not in names(layout.snapshots)

    def test_a_crash_between_manifests_and_files_is_made_good(
        self, layout: CheckpointLayout, store: ManifestStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for epoch in range(4):
            store.write(manifest(epoch, [snapshot(layout, epoch)]))
        real_unlink = os.unlink
        left = 3  # the three manifests, and then the process dies

        def dying_unlink(path: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            real_unlink(path)

        monkeypatch.setattr(os, "unlink", dying_unlink)
        with pytest.raises(KeyboardInterrupt):
            store.collect_garbage(keep=1)
        monkeypatch.setattr(os, "unlink", real_unlink)
        assert len(names(layout.snapshots)) == 4
        survivor = ManifestStore(layout)
        latest = survivor.latest()
        assert latest is not None and latest.epoch == 3
        survivor.collect_garbage(keep=1)
        assert names(layout.snapshots) == [next(iter(latest.snapshot_names()))]

    def test_orphans_go_at_the_start_whatever_their_epoch(self, layout: CheckpointLayout, store: ManifestStore) -> None:
        kept = snapshot(layout, 1)
        store.write(manifest(1, [kept]))
        snapshot(layout, 2, "attempt-that-died")
        (layout.snapshots / "s1-p0-e000000000002-b.delta.tmp").write_bytes(b"half")
        store.take_over("job")
        assert store.remove_orphans() == 2
        assert names(layout.snapshots) == [kept.name]

    def test_a_driver_knows_its_garbage_without_looking(
        self, layout: CheckpointLayout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = ManifestStore(layout, durable=False)
        store.take_over("job")
        refs = {epoch: snapshot(layout, epoch) for epoch in range(1, 30)}
        segment = SplitSegmentRef("src0-e000000000001-a.ids", 1, 1, 1, 1)
        (layout.splits / segment.name).write_bytes(b"x")
        listed: list[str] = []
        real = LocalStorage.list
        monkeypatch.setattr(LocalStorage, "list", lambda self, name: listed.append(name) or real(self, name))
        for epoch in range(1, 30):
            splits = FinishedSplitsRecord((segment,)) if epoch < 10 else FinishedSplitsRecord()
            chain = [refs[e] for e in range(max(1, epoch - 4), epoch + 1)]
            store.write(manifest(epoch, chain, sources={"files": SourceRecord(finished_splits=splits)}))
            store.collect_garbage(keep=2)
            if epoch == 1:
                assert sorted(set(listed)) == ["manifests", "snapshots", "splits"], "the first time it looks"
                listed.clear()
            assert (layout.splits / segment.name).exists() is (epoch < 11)
        assert listed == []
        assert names(layout.manifests) == [f"epoch-{epoch:012d}.manifest" for epoch in (28, 29)]
        written_since = [refs[e].name for e in range(24, 30)]
        assert names(layout.snapshots) == sorted(written_since)

    def test_what_no_manifest_named_is_found_when_a_driver_looks_again(
        self, layout: CheckpointLayout, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = ManifestStore(layout, durable=False)
        store.take_over("job")
        store.write(manifest(1))
        store.collect_garbage(keep=1)
        stray, copied = snapshot(layout, 1, "failed"), snapshot(layout, 2)
        store.write(manifest(2, [copied]))
        store.collect_garbage(keep=1)
        store.write(manifest(3))
        store.collect_garbage(keep=1, protected=[copied.name])
        assert names(layout.snapshots) == sorted([stray.name, copied.name])
        monkeypatch.setattr("headwater.checkpoint.store.SWEEP_SECONDS", 0.0)
        store.collect_garbage(keep=1, protected=[copied.name])
        assert names(layout.snapshots) == [copied.name], "a savepoint may still be copying it"
        store.collect_garbage(keep=1)
        assert names(layout.snapshots) == []

    def test_a_refused_deletion_is_tried_again(self, layout: CheckpointLayout, monkeypatch: pytest.MonkeyPatch) -> None:
        store = ManifestStore(layout, durable=False)
        store.take_over("job")
        for epoch in (1, 2):
            store.write(manifest(epoch, [snapshot(layout, epoch)]))
            store.collect_garbage(keep=2)

        def refuse(*_: Any) -> bool:
            raise PermissionError(1, "Operation not permitted")

        with monkeypatch.context() as patch:
            patch.setattr(LocalStorage, "delete", refuse)
            store.write(manifest(3, [snapshot(layout, 3)]))
            assert store.collect_garbage(keep=2) == 0
        assert store.collect_garbage(keep=2) == 2
        assert [epoch_of_file_name(name) for name in names(layout.snapshots)] == [2, 3]
        assert store.epochs() == [2, 3]

    def test_at_least_one_is_kept(self, store: ManifestStore) -> None:
        with pytest.raises(CheckpointError, match="num-retained is 0"):
            store.collect_garbage(keep=0)


class TestFinishedSplits:
    def test_manifests_stay_small_however_many_splits_are_done(
        self, layout: CheckpointLayout, store: ManifestStore
    ) -> None:
        splits = FinishedSplits(layout, "files", durable=False)
        largest, most_segments = 0, 0
        for epoch in range(200):
            ids = [f"/data/file-{epoch}-{i}.json" for i in range(100)]
            record = splits.add(ids, epoch, "a")
            path = store.write(manifest(epoch, sources={"files": SourceRecord(finished_splits=record)}))
            largest = max(largest, path.stat().st_size)
            most_segments = max(most_segments, len(record.segments))
            store.collect_garbage(keep=3)
        assert len(splits) == 20_000
        assert largest < 20_000
        assert most_segments <= 10
        assert len(names(layout.splits)) <= most_segments + 5

        latest = store.latest()
        assert latest is not None
        restored = FinishedSplits.restore(layout, "files", latest.sources["files"].finished_splits)
        assert restored.ids() == splits.ids()
        assert "/data/file-7-7.json" in restored and "/data/other" not in restored

    def test_every_kept_manifest_can_be_restored(self, layout: CheckpointLayout, store: ManifestStore) -> None:
        splits = FinishedSplits(layout, "files", durable=False)
        sizes: dict[int, int] = {}
        for epoch in range(30):
            record = splits.add([f"{epoch}-{i}" for i in range(150)], epoch, "a")
            store.write(manifest(epoch, sources={"files": SourceRecord(finished_splits=record)}))
            sizes[epoch] = len(splits)
            store.collect_garbage(keep=4)
        for epoch in store.epochs():
            record = store.load(epoch).sources["files"].finished_splits
            assert len(FinishedSplits.restore(layout, "files", record)) == sizes[epoch]

    def test_adding_twice_counts_once(self, layout: CheckpointLayout) -> None:
        splits = FinishedSplits(layout, "files")
        splits.add(["a", "b", "a"], 1, "x")
        assert splits.add(["b"], 2, "x").recent == ("a", "b")

    def test_a_damaged_segment_is_named(self, layout: CheckpointLayout) -> None:
        splits = FinishedSplits(layout, "files", durable=False)
        record = splits.add(map(str, range(1000)), 3, "a")
        path = layout.split_segment(record.segments[0].name)
        good = path.read_bytes()
        for content in (good[:-1], good[:30] + b"\0" + good[31:], b""):
            path.write_bytes(content)
            with pytest.raises(CheckpointError, match=r"\.ids of epoch 3"):
                FinishedSplits.restore(layout, "files", record)
        path.unlink()
        with pytest.raises(CheckpointError, match="No such file"):
            FinishedSplits.restore(layout, "files", record)
