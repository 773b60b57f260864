"""Savepoints: a self-contained copy of one completed checkpoint. It can be moved, and outlives its job.

A savepoint is a directory laid out like a checkpoint directory (paths.py). It has one manifest, every file that the
manifest names, Spark's offsets of its epoch, and `SAVEPOINT`, which tells people and tools what it is. Names in it are
relative, so the directory may be copied and moved. Files are copied, never linked, and the copies are checked.

`SAVEPOINT` is written last, and a local directory gets its name when all its files are durable: a visible savepoint is
whole. `SAVEPOINT` is deleted last and the manifest first: a half-deleted savepoint cannot be opened, but its deletion
can be finished.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dataclasses import replace as dataclass_replace
from pathlib import Path
from typing import Final

import msgspec

from headwater.checkpoint.finished_splits import FinishedSplits, FinishedSplitsRecord, SplitSegmentRef
from headwater.checkpoint.manifest import Manifest, encode_manifest
from headwater.checkpoint.paths import (
    MANIFESTS,
    OUTPUT,
    SNAPSHOTS,
    SPLITS,
    CheckpointLayout,
    epoch_of_manifest_name,
    manifest_name,
)
from headwater.checkpoint.snapshot.file import NativeFile, SnapshotRef, read_sections
from headwater.checkpoint.snapshot.native_reader import check_native_file
from headwater.checkpoint.spark_offsets import check_spark_file, spark_files
from headwater.checkpoint.storage.base import Location, StorageSpec, is_remote, local_path, stored
from headwater.checkpoint.storage.durable_file import TEMPORARY_SUFFIX, sync_directory
from headwater.checkpoint.store import ManifestStore
from headwater.common.errors import CheckpointError, HeadwaterError
from headwater.common.machine.directories import remove_directory
from headwater.common.trusted_directories import make_directory

MARKER: Final = "SAVEPOINT"
FORMAT_VERSION: Final = 2
"""Goes up with the format of the snapshots in it, so that an old savepoint is refused before a job starts."""
_PROBE: Final = "PROBE"
_CHUNK: Final = 1 << 20
_AT_EPOCH = re.compile(r"(.+)@(\d+)", re.DOTALL)

Where = str | Path | StorageSpec
"""A path, a URL, or a URL with options to open it."""


class SavepointInfo(msgspec.Struct, frozen=True):
    """Content of the file `SAVEPOINT`, which is JSON."""

    format_version: int
    job_name: str
    job_id: str
    epoch: int
    created_ms: int
    """When the copied checkpoint was completed."""
    files: int
    bytes: int
    path: str = ""
    """Where the savepoint is. Empty in the file, because a savepoint may be moved."""


@dataclass(frozen=True)
class Savepoint:
    """A completed checkpoint to start from: a savepoint, or a checkpoint that a job retains."""

    path: str
    """For people: the savepoint's directory, or the manifest file of a retained checkpoint."""
    directory: str | StorageSpec
    """Opens the same layout in another process. `plan_restore` takes it."""
    layout: CheckpointLayout
    manifest: Manifest
    is_savepoint: bool
    output_committed: bool
    """The output of its epoch is certainly visible."""

    def snapshot_path(self, ref: SnapshotRef) -> Location:
        return self.layout.snapshot(ref.name)

    def copy_source_files(self, target: CheckpointLayout, *, durable: bool = True) -> None:
        """Copy the files of the sources (finished splits, Spark's offsets) to `target`, a new job's directory.

        So are files of output that is not certainly visible: the new job commits it.

        The manifests of the new job go on naming these files, so they must be in its directory. Idempotent. What an
        earlier start copied is copied again: no manifest of the job says what it must be.
        """
        target.create()
        output = () if self.output_committed and not self.manifest.held else _output_files(self.layout, self.manifest)
        for each in (*_source_files(self.layout, self.manifest), *output):
            if each.check is not None:
                each.check(self.layout)  # before it takes the place of an earlier copy
            _copy(each, target, durable=durable)


def write_savepoint(
    layout: CheckpointLayout,
    manifest: Manifest,
    target: Where,
    *,
    output_committed: bool = True,
    durable: bool = True,
    check_wanted: Callable[[], None] = lambda: None,
) -> SavepointInfo:
    """Copy the completed checkpoint `manifest` of the job in `layout` to `target`, which must not exist.

    With `output_committed` the savepoint has no output to commit: a job that starts from it need not have the sinks.
    Raises CheckpointError and leaves nothing at `target` if a file is missing or damaged, or cannot be written.
    The files must not be deleted meanwhile: call it before the checkpoint can be subsumed. `check_wanted` is called
    now and then, at last before the savepoint can be seen, and raises if nobody wants it any more.
    """
    if output_committed:
        manifest = msgspec.structs.replace(manifest, committables={})
    with new_savepoint(target, durable=durable) as draft:
        for each in _all_files(layout, manifest):
            check_wanted()
            _copy(each, draft.layout, durable=durable)
        draft.manifest = manifest
        check_wanted()
    return draft.info


class SavepointDraft:
    """A savepoint in progress. The caller writes files to `layout`, and sets `manifest` before the block ends."""

    def __init__(self, layout: CheckpointLayout, path: str) -> None:
        self.layout = layout
        self.path = path
        self.manifest: Manifest | None = None
        self.info: SavepointInfo
        """Set when the block has ended."""


@contextlib.contextmanager
def new_savepoint(target: Where, *, durable: bool = True) -> Iterator[SavepointDraft]:
    """Make a savepoint. It appears at `target`, whole, when the block ends without an error; otherwise not at all."""
    url = target.url if isinstance(target, StorageSpec) else str(target)
    local = None if is_remote(url) else local_path(url)
    refuse_existing(target)
    # An object store cannot rename a directory: there the marker, written last, makes the savepoint visible.
    hidden = None if local is None else local.with_name(f".{local.name}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")
    layout = CheckpointLayout(target if hidden is None else hidden)
    draft = SavepointDraft(layout, url if local is None else str(local))
    try:
        layout.storage.create((MANIFESTS, SNAPSHOTS, SPLITS))
        yield draft
        draft.info = _finish(draft, durable=durable)
        if hidden is not None and local is not None:
            _publish(hidden, local, durable=durable)
    except OSError as error:
        _give_up(layout)
        raise CheckpointError(
            f"savepoint {draft.path} cannot be written: {error.strerror or error}; make room, or choose another place"
        ) from error
    except BaseException:
        _give_up(layout)
        raise


def refuse_existing(target: Where) -> None:
    """Raise CheckpointError if there is anything at `target` that a savepoint would replace."""
    url = target.url if isinstance(target, StorageSpec) else str(target)
    if is_remote(url):
        layout = CheckpointLayout(target)
        taken = layout.storage.size(MARKER) is not None or bool(ManifestStore(layout).epochs())
    else:
        path = local_path(url)
        taken = path.is_symlink() or (any(path.iterdir()) if path.is_dir() else path.exists())
    if taken:
        raise CheckpointError(f"{url} exists; a savepoint is never written over something: choose another name")


def check_target(target: Where) -> None:
    """Raise CheckpointError if a savepoint cannot be written to `target`. Checks what can be checked beforehand."""
    refuse_existing(target)
    url = target.url if isinstance(target, StorageSpec) else str(target)
    try:
        if is_remote(url):
            storage = CheckpointLayout(target).storage
            with storage.write(_PROBE) as file:
                file.write(b"")
            storage.delete(_PROBE)
        else:
            path = local_path(url)
            if path.parent.exists() and not path.parent.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, f"{path.parent} is not a directory")
            make_directory(path.parent)
            os.rmdir(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise CheckpointError(
            f"savepoint {url} cannot be written: {error.strerror or error}; make room, or choose another place"
        ) from error


def open_savepoint(where: Where) -> Savepoint:
    """Return the savepoint or retained checkpoint at `where`.

    `where` is a savepoint's directory; or a job's checkpoint directory, which means its newest checkpoint, or with
    `@EPOCH` an older one; or a manifest file. Raises CheckpointError that says what was found instead.
    """
    directory, epoch = _directory_and_epoch(where)
    layout = CheckpointLayout(directory)
    root = layout.root
    if isinstance(root, Path) and not root.is_dir():
        found = "is a file, but no manifest" if root.exists() else "does not exist"
        raise CheckpointError(f"{root} {found}; expected {_EXPECTED}")
    info = _read_info(layout)
    if info is not None:
        _refuse_half_deleted(layout, info)
        return _opened(directory, layout, info.epoch if epoch is None else epoch, info.path, is_savepoint=True)
    if epoch is None:
        latest = ManifestStore(layout).latest()
        if latest is None:
            raise CheckpointError(f"{root} has neither {MARKER} nor a manifest; expected {_EXPECTED}")
        epoch = latest.epoch
    return _opened(directory, layout, epoch, str(layout.manifest(epoch)), is_savepoint=False)


def is_savepoint(where: Where) -> bool:
    """Return True if the directory `where` is a savepoint, whole or half deleted."""
    return CheckpointLayout(where).storage.size(MARKER) is not None


def savepoint_info(where: Where) -> SavepointInfo:
    """Return the content of the directory's `SAVEPOINT` file. Raises CheckpointError if it is not a savepoint."""
    layout = CheckpointLayout(where)
    info = _read_info(layout)
    if info is None:
        raise CheckpointError(f"{layout.root} is not a savepoint: it has no {MARKER}; expected {_EXPECTED}")
    _refuse_half_deleted(layout, info)
    return info


def left_of_deletion(where: Where) -> str | StorageSpec | None:
    """Return the savepoint's directory if its deletion was interrupted, for `dispose_savepoint`; otherwise None."""
    directory, _ = _directory_and_epoch(where)
    layout = CheckpointLayout(directory)
    info = _read_info(layout)
    return directory if info is not None and _lacks_manifest(layout, info) else None


def dispose_savepoint(where: Where) -> None:
    """Delete the savepoint. Refuses everything else, above all a job's checkpoint directory.

    Works on damaged savepoints too, as long as the file `SAVEPOINT` exists. If this raises, or the process dies in the
    middle, call it again.
    """
    layout = CheckpointLayout(where)
    try:
        _refuse_to_dispose(layout)
        _delete_all(layout)
    except OSError as error:
        raise CheckpointError(
            f"savepoint {layout.root} cannot be deleted: {error.strerror or error}; make the directory writable, and "
            "dispose of it again"
        ) from error


def discard_unfinished(target: Where) -> bool:
    """Delete what a process that was killed left of a savepoint it was writing to `target`. One that is whole stays.

    False: the place is not there, so nothing is known. No living process may be writing there.
    """
    url = target.url if isinstance(target, StorageSpec) else str(target)
    if is_remote(url):
        layout = CheckpointLayout(target)
        if layout.storage.size(MARKER) is None and not layout.storage.list("claims"):
            _delete_all(layout)
        return True
    path = local_path(url)
    if not path.parent.is_dir():
        return False
    draft = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}{re.escape(TEMPORARY_SUFFIX)}")
    for found in path.parent.iterdir():
        if draft.fullmatch(found.name) and not found.is_symlink():
            shutil.rmtree(found)
    return True


def _refuse_to_dispose(layout: CheckpointLayout) -> None:
    root, storage = layout.root, layout.storage
    if storage.size(MARKER) is None:
        found = "a checkpoint directory" if ManifestStore(layout).epochs() else "no savepoint"
        if isinstance(root, Path) and not root.exists():
            found = "not there"
        raise CheckpointError(
            f"{root} is {found}; only a savepoint can be disposed of, which is a directory with the file {MARKER}"
        )
    if storage.size("LOCK") is not None or storage.list("claims"):
        raise CheckpointError(f"{root} is in use as a job's checkpoint directory; it is not deleted")


_EXPECTED = (
    "a savepoint's directory, a job's checkpoint directory (with @EPOCH for one that is not the newest), or a manifest"
)


def _directory_and_epoch(where: Where) -> tuple[str | StorageSpec, int | None]:
    """Split a manifest's name, or @EPOCH, off the end of `where`. The epoch is None if there is neither."""
    url = where.url if isinstance(where, StorageSpec) else str(where)
    if not is_remote(url):
        url = str(local_path(url))
    epoch: int | None = None
    folder, _, name = url.rpartition("/")
    if folder.endswith(f"/{MANIFESTS}") and (epoch := epoch_of_manifest_name(name)) is not None:
        url = folder.removesuffix(f"/{MANIFESTS}")
    elif (match := _AT_EPOCH.fullmatch(url)) and (is_remote(url) or not Path(url).exists()):
        url, epoch = match[1], int(match[2])
    return (dataclass_replace(where, url=url) if isinstance(where, StorageSpec) else url), epoch


def _read_info(layout: CheckpointLayout) -> SavepointInfo | None:
    try:
        content = layout.storage.read(MARKER)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(f"{layout.root}/{MARKER} cannot be read: {error.strerror or error}") from error
    try:
        info = msgspec.json.decode(content, type=SavepointInfo)
    except msgspec.MsgspecError as error:
        raise CheckpointError(
            f"{layout.root}/{MARKER} cannot be read: {error}. Restore the savepoint from a copy"
        ) from error
    if info.format_version != FORMAT_VERSION:
        raise CheckpointError(
            f"savepoint {layout.root} has format version {info.format_version}; this headwater reads version "
            f"{FORMAT_VERSION} and cannot convert it. Start the job from it with the headwater that wrote it, or start "
            "without this state"
        )
    return msgspec.structs.replace(info, path=str(layout.root))


def _opened(
    directory: str | StorageSpec, layout: CheckpointLayout, epoch: int, path: str, *, is_savepoint: bool
) -> Savepoint:
    store = ManifestStore(layout)
    manifest = store.load(epoch)
    committed = not any(manifest.committables.values()) or store.is_committed(epoch)
    return Savepoint(path, directory, layout, manifest, is_savepoint, committed)


def _finish(draft: SavepointDraft, *, durable: bool) -> SavepointInfo:
    """Write manifest and marker beside the files."""
    assert draft.manifest is not None
    manifest = msgspec.structs.replace(draft.manifest, writer=None)  # there are no claims in a savepoint
    storage = draft.layout.storage
    names = [f"{SNAPSHOTS}/{name}" for name in manifest.snapshot_names()]
    names += [f"{SPLITS}/{name}" for name in manifest.split_segment_names()]
    sizes = [storage.size(name) for name in names]
    missing = [name for name, size in zip(names, sizes, strict=True) if size is None]
    if missing:
        raise CheckpointError(
            f"savepoint {draft.path} lacks {missing[0]}, which its manifest names; nothing is written"
        )
    info = SavepointInfo(
        format_version=FORMAT_VERSION,
        job_name=manifest.job_name,
        job_id=manifest.job_id,
        epoch=manifest.epoch,
        created_ms=manifest.created_ms,
        files=len(names),
        bytes=sum(size or 0 for size in sizes),
    )
    with storage.write(manifest_name(manifest.epoch), durable=durable) as file:
        file.write(encode_manifest(manifest))
    with storage.write(MARKER, durable=durable) as file:
        file.write(msgspec.json.format(msgspec.json.encode(info), indent=2) + b"\n")
    return msgspec.structs.replace(info, path=draft.path)


def _publish(hidden: Path, path: Path, *, durable: bool) -> None:
    """Rename a finished directory to its final name, which makes the savepoint visible in one step."""
    if durable:
        for folder, _, _ in os.walk(hidden):
            sync_directory(folder)
    try:
        os.rename(hidden, path)  # replaces an empty directory, and nothing else
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            refuse_existing(path)
        raise
    if durable:
        sync_directory(path.parent)


def _lacks_manifest(layout: CheckpointLayout, info: SavepointInfo) -> bool:
    try:
        return layout.storage.size(manifest_name(info.epoch)) is None
    except OSError as error:
        raise CheckpointError(f"savepoint {layout.root} cannot be read: {error.strerror or error}") from error


def _refuse_half_deleted(layout: CheckpointLayout, info: SavepointInfo) -> None:
    if _lacks_manifest(layout, info):
        raise CheckpointError(
            f"savepoint {layout.root} has no manifest any more: {layout.manifest(info.epoch)} is missing, so it was "
            "deleted in part; dispose of it again, or restore it from a copy"
        )


def _give_up(layout: CheckpointLayout) -> None:
    """Delete the files of a savepoint that cannot be finished."""
    with contextlib.suppress(OSError, HeadwaterError):  # the caller raises the error that matters
        _delete_all(layout)


def _delete_all(layout: CheckpointLayout) -> None:
    """Delete every file of a savepoint, the manifest first and the marker last.

    So the rest is recognisable at any moment, both as a savepoint and as half deleted.
    """
    _delete_files(layout, MANIFESTS)
    if isinstance(layout.root, Path):
        remove_directory(layout.root.resolve(), last=MARKER)
        return
    _delete_files(layout, SNAPSHOTS)
    _delete_files(layout, SPLITS)
    layout.storage.delete(MARKER)


def _delete_files(layout: CheckpointLayout, folder: str) -> None:
    for name in layout.storage.list(folder):
        layout.storage.delete(f"{folder}/{name}")


@dataclass(frozen=True)
class _ToCopy:
    """One file of a checkpoint."""

    source: Location
    name: str
    """Relative to the checkpoint directory."""
    check: Callable[[CheckpointLayout], None] | None = None
    """Raises CheckpointError if the copy in a layout is not what the manifest says."""


def _all_files(layout: CheckpointLayout, manifest: Manifest) -> Iterator[_ToCopy]:
    refs = {ref.name: ref for record in manifest.partitions for ref in record.snapshots}
    for name, ref in sorted(refs.items()):

        def check(copy: CheckpointLayout, ref: SnapshotRef = ref) -> None:
            for _ in read_sections(copy.snapshot(ref.name), ref):
                pass

        yield _ToCopy(layout.snapshot(name), f"{SNAPSHOTS}/{name}", check)
    files = {file.name: (file, ref) for ref in refs.values() for file in ref.files}
    for name, (file, ref) in sorted(files.items()):

        def check_file(copy: CheckpointLayout, file: NativeFile = file, ref: SnapshotRef = ref) -> None:
            check_native_file(copy, file, ref)

        yield _ToCopy(layout.snapshot(name), f"{SNAPSHOTS}/{name}", check_file)
    yield from _source_files(layout, manifest)
    yield from _output_files(layout, manifest)


def _output_files(layout: CheckpointLayout, manifest: Manifest) -> Iterator[_ToCopy]:
    """Yield the files in which sinks keep output for its commit: all there are, because only sinks know their names.

    Sinks check what they read from them.
    """
    if manifest.committables or manifest.held:
        for name in sorted(layout.storage.list(OUTPUT)):
            if not name.endswith(TEMPORARY_SUFFIX):
                yield _ToCopy(layout.storage.locate(f"{OUTPUT}/{name}"), f"{OUTPUT}/{name}")


def _source_files(layout: CheckpointLayout, manifest: Manifest) -> Iterator[_ToCopy]:
    records = (source.finished_splits for source in manifest.sources.values())
    segments = {segment.name: segment for record in records for segment in record.segments}
    for name, segment in sorted(segments.items()):

        def check(copy: CheckpointLayout, segment: SplitSegmentRef = segment) -> None:
            FinishedSplits.restore(copy, "", FinishedSplitsRecord((segment,)))

        yield _ToCopy(layout.split_segment(name), f"{SPLITS}/{name}", check)
    batch_id = manifest.spark.get("batch_id")
    if batch_id is not None:
        for path in spark_files(layout.spark, int(batch_id)):
            name = path.relative_to(layout.spark).as_posix()

            def check_spark(copy: CheckpointLayout, name: str = name) -> None:
                check_spark_file(copy.spark, name, manifest.spark)

            yield _ToCopy(path, f"spark/{name}", check_spark)


def _copy(each: _ToCopy, target: CheckpointLayout, *, durable: bool) -> None:
    """Copy one file, and check the copy against the manifest."""
    source = stored(each.source)
    target.storage.create((each.name.rpartition("/")[0],))
    try:
        reader = source.storage.open(source.path)
    except FileNotFoundError:
        raise CheckpointError(
            f"{each.source} is missing, but the checkpoint names it; use another checkpoint, or restore the file from "
            "a copy"
        ) from None
    with reader, target.storage.write(each.name, durable=durable) as file:
        shutil.copyfileobj(reader, file, _CHUNK)
    if each.check is None:
        return
    try:
        each.check(target)
    except CheckpointError as error:
        target.storage.delete(each.name)
        # The original was damaged already: name it in the error.
        raise CheckpointError(str(error).replace(str(target.storage.locate(each.name)), str(each.source))) from None
