"""A file of a checkpoint directory that is missing is damage: the rest tells what it was, or the start stops.

tests/chaos/test_damaged_directories.py does it to all files of whole jobs.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headwater.checkpoint.paths import COMMITTED, NEWEST, CheckpointLayout
from headwater.checkpoint.savepoint.savepoint import open_savepoint
from headwater.checkpoint.start.job_identity import job_id_of
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError
from tests.unit.checkpoint.test_store import manifest

OLD = Path(__file__).parent / "claims_1"
"""Written when claims had format 1, COMMITTED and JOB no checksum, and there was no NEWEST."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two starts of a job: the first wrote checkpoints 0 to 2, the second 3 and 4."""
    layout = CheckpointLayout(tmp_path / "job")
    for epochs in (range(3), range(3, 5)):
        store = ManifestStore(layout)
        store.take_over("job")
        for epoch in epochs:
            store.write(manifest(epoch))
            store.note_committed(epoch)
    return tmp_path / "job"


def taken_over(root: Path) -> ManifestStore:
    store = ManifestStore(CheckpointLayout(root))
    latest = store.take_over("job")
    assert latest is not None and latest.epoch == 4
    assert store.epochs() == [0, 1, 2, 3, 4]
    store.write(manifest(5))
    return store


@pytest.mark.parametrize("gone", ["1.claim", "2.claim", "1.base", "2.base"])
def test_a_claim_or_a_base(root: Path, gone: str) -> None:
    number, _, kind = gone.partition(".")
    (root / "claims" / f"{int(number):012d}.{kind}").unlink()
    taken_over(root)
    assert [int(path.stem) for path in sorted(root.glob("claims/*.claim"))] == [1, 2, 3]


def test_all_claims(root: Path) -> None:
    shutil.rmtree(root / "claims")
    taken_over(root)
    shutil.rmtree(root / "claims")
    latest = ManifestStore(CheckpointLayout(root)).take_over("job")
    assert latest is not None and latest.epoch == 5, "and the next start"


def test_the_newest_manifest(root: Path) -> None:
    (root / "manifests" / "epoch-000000000004.manifest").unlink()
    taken_over(root)


def test_the_newest_manifest_and_its_other_name(root: Path) -> None:
    newest = root / "manifests" / "epoch-000000000004.manifest"
    assert newest.samefile(root / NEWEST), "it costs no second write"
    newest.unlink()
    (root / NEWEST).unlink()
    for read in (ManifestStore(CheckpointLayout(root)).latest, lambda: open_savepoint(str(root))):
        with pytest.raises(CheckpointError, match=r"NEWEST is missing.*epoch-0{11}3.* copy that file to NEWEST"):
            read()
    before = sorted(root.rglob("*"))
    with pytest.raises(CheckpointError, match="is missing"):
        ManifestStore(CheckpointLayout(root)).latest()
    assert sorted(root.rglob("*")) == before
    shutil.copyfile(root / "manifests" / "epoch-000000000003.manifest", root / NEWEST)  # as the error says, in error
    with pytest.raises(CheckpointError, match=r"epoch-000000000004\.manifest of epoch 4 is missing, but .*COMMITTED"):
        ManifestStore(CheckpointLayout(root)).take_over("job")


def test_the_cure_that_the_error_names(root: Path) -> None:
    (root / NEWEST).unlink()
    with pytest.raises(CheckpointError, match="is missing"):
        ManifestStore(CheckpointLayout(root)).latest()
    shutil.copyfile(root / "manifests" / "epoch-000000000004.manifest", root / NEWEST)
    taken_over(root)


def test_no_bit_of_the_note_can_be_another_one(root: Path) -> None:
    good = (root / COMMITTED).read_bytes()
    for bit in range(8 * len(good)):
        content = bytearray(good)
        content[bit // 8] ^= 1 << bit % 8
        (root / COMMITTED).write_bytes(content)
        assert not ManifestStore(CheckpointLayout(root)).is_committed(0), "whether it is visible is not known"


def test_a_manifest_that_nobody_saw_is_none(root: Path) -> None:
    """A driver died between a manifest and its other name: its output is not visible, so losing it is no harm."""
    store = ManifestStore(CheckpointLayout(root))
    store.take_over("job")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_make_newest", lambda claim, name, content: None)
        store.write(manifest(5))
    latest = ManifestStore(CheckpointLayout(root)).latest()
    assert latest is not None and latest.epoch == 5
    (root / "manifests" / "epoch-000000000005.manifest").unlink()
    taken_over(root)


def test_a_directory_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    shutil.copytree(OLD, tmp_path / "job")
    store = ManifestStore(CheckpointLayout(tmp_path / "job"))
    assert not store.is_committed(0), "a note without a checksum says nothing"
    assert job_id_of(store.layout, "x" * 32) == "0123456789abcdef" * 2
    taken_over(tmp_path / "job")
    again = ManifestStore(CheckpointLayout(tmp_path / "job"))
    latest = again.take_over("job")
    assert latest is not None and latest.epoch == 5 and (tmp_path / "job" / NEWEST).exists()


def test_what_an_earlier_version_did_not_write_twice_is_told_to_be_missing(tmp_path: Path) -> None:
    shutil.copytree(OLD, tmp_path / "job")
    (tmp_path / "job" / "claims" / "000000000002.base").unlink()
    with pytest.raises(CheckpointError, match=r"000000000002\.base is missing.* Restore the file"):
        ManifestStore(CheckpointLayout(tmp_path / "job")).latest()
