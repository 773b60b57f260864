"""Snapshots: what was written is what is read; anything else is an error that names file and epoch."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.checkpoint.snapshot.file import SnapshotRef, read_header, read_sections, write_snapshot
from headwater.common.errors import CheckpointError, DamagedSnapshotError
from headwater.state.snapshot.section import Section


def keyed(key_group: int, payload: bytes = b"payload", name: str = "count") -> Section:
    return Section("op", "keyed", name, key_group, payload)


def write(path: Path, sections: list[Section], **header: Any) -> SnapshotRef:
    return write_snapshot(path, {"epoch": 7, "kind": "delta", "key_groups": range(0, 128), **header}, sections)


@given(
    st.lists(
        st.builds(
            Section,
            uid=st.text(max_size=5),
            kind=st.sampled_from(["keyed", "event_timers", "processing_timers", "operator"]),
            name=st.text(max_size=5),
            key_group=st.integers(-1, 127),
            payload=st.one_of(st.binary(max_size=50), st.integers(4000, 9000).map(lambda size: b"ab" * size)),
        ),
        max_size=20,
    )
)
def test_reads_back_what_was_written(tmp_path_factory: pytest.TempPathFactory, sections: list[Section]) -> None:
    path = tmp_path_factory.mktemp("snapshots") / "a.delta"
    assert list(read_sections(path, write(path, sections))) == sections


def test_a_partition_reads_only_its_key_groups_and_unkeyed_sections(tmp_path: Path) -> None:
    operator = Section("op", "operator", "offsets", -1, b"x")
    path = tmp_path / "a.full"
    ref = write(path, [keyed(group) for group in range(10)] + [operator])
    groups = [section.key_group for section in read_sections(path, ref, range(3, 6))]
    assert groups == [3, 4, 5, -1]
    assert [s.key_group for s in read_sections(path, ref, range(3, 6), include_unkeyed=False)] == [3, 4, 5]
    assert list(read_sections(path, ref, range(0), include_unkeyed=True)) == [operator]


def test_ref_says_what_a_manifest_needs(tmp_path: Path) -> None:
    path = tmp_path / "a.full"
    ref = write(path, [keyed(1)], kind="full", key_groups=(64, 128), operator_names={"op": "Count"})
    assert (ref.name, ref.epoch, ref.kind, ref.key_groups) == ("a.full", 7, "full", (64, 128))
    assert ref.length == path.stat().st_size
    assert read_header(path, ref)["operator_names"] == {"op": "Count"}
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(ref), type=SnapshotRef) == ref


def test_large_sections_are_compressed_and_incompressible_ones_are_not(tmp_path: Path) -> None:
    noise = os.urandom(10_000)
    ref = write(tmp_path / "noise", [keyed(0, noise)])
    assert 10_000 < ref.length < 10_200
    ref = write(tmp_path / "plain", [keyed(0, pickle.dumps([0] * 100_000))])
    assert ref.length < 10_000


def test_every_single_damaged_byte_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.delta"
    ref = write(path, [keyed(0, b"some bytes"), keyed(1, b"z" * 5000)])
    good = path.read_bytes()
    for position in range(len(good)):
        damaged = bytearray(good)
        damaged[position] ^= 0x20
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=r"a\.delta of epoch 7"):
            list(read_sections(path, ref))


@pytest.mark.parametrize("length", [0, 5, 40, -1])
def test_a_cut_file_is_found(tmp_path: Path, length: int) -> None:
    path = tmp_path / "a.delta"
    ref = write(path, [keyed(0)])
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(CheckpointError, match="bytes, its manifest says"):
        list(read_sections(path, ref))


def test_a_whole_file_of_another_attempt_is_found(tmp_path: Path) -> None:
    ours = write(tmp_path / "a.delta", [keyed(0, b"ours..")])
    write(tmp_path / "a.delta", [keyed(0, b"theirs")])
    with pytest.raises(CheckpointError, match="not the file that its manifest names"):
        list(read_sections(tmp_path / "a.delta", ours))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    ref = write(tmp_path / "a.delta", [])
    (tmp_path / "a.delta").unlink()
    with pytest.raises(CheckpointError, match=r"a\.delta of epoch 7 is missing"):
        list(read_sections(tmp_path / "a.delta", ref))


def written_with_version(directory: Path, version: int) -> tuple[Path, SnapshotRef]:
    path = directory / "a.delta"
    ref = write(path, [keyed(0)])
    content = bytearray(path.read_bytes())
    content[8] = version
    path.write_bytes(content)
    return path, ref


def test_a_newer_format_is_not_guessed_at(tmp_path: Path) -> None:
    path, ref = written_with_version(tmp_path, 99)
    with pytest.raises(CheckpointError, match="format version 99"):
        list(read_sections(path, ref))


def test_an_older_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path, ref = written_with_version(tmp_path, 1)
    with pytest.raises(CheckpointError) as raised:
        list(read_sections(path, ref))
    assert not isinstance(raised.value, DamagedSnapshotError), "no other file is looked for"
    text = str(raised.value)
    assert f"snapshot {path} of epoch 7 has format version 1" in text
    assert "reads version 2" in text and "Run the job with the headwater that wrote it, or start it without" in text
    with pytest.raises(CheckpointError, match="format version 1"):
        read_header(path, ref)


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    def sections() -> Any:
        yield keyed(0)
        raise RuntimeError("state went away")

    with pytest.raises(RuntimeError):
        write_snapshot(tmp_path / "a", {"epoch": 1, "kind": "full", "key_groups": range(1)}, sections())
    assert list(tmp_path.iterdir()) == []


def test_without_fsync_the_file_is_the_same(tmp_path: Path) -> None:
    header = {"epoch": 1, "kind": "full", "key_groups": range(1)}
    durable = write_snapshot(tmp_path / "a", header, [keyed(0)], durable=True)
    assert replace_name(write_snapshot(tmp_path / "b", header, [keyed(0)], durable=False), "a") == durable


def replace_name(ref: SnapshotRef, name: str) -> SnapshotRef:
    return msgspec.structs.replace(ref, name=name)


def test_sections_are_compared_whole() -> None:
    assert replace(keyed(0), payload=b"other") != keyed(0)
