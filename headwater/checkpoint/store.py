"""Manifests in a checkpoint storage: each is written once and read strictly; files that none needs are deleted.

This is the edge: it does I/O and no thinking. What to do with what it reads is decided in start/decision.py; who may
write, and whose manifests count, in start/claims.py.

`NEWEST` is the newest manifest once more, on a local disk as a second name of the same file. It is made after the
manifest and before any of its output is visible. So a newer manifest than all in `manifests` is lost, and is found in
NEWEST; and a directory without NEWEST may have lost both (docs/decisions/0015-missing-files.md).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterable

import msgspec

from headwater.checkpoint.manifest import Manifest, decode_manifest, encode_manifest
from headwater.checkpoint.paths import (
    CLAIMS,
    COMMITTED,
    MANIFESTS,
    NEWEST,
    OUTPUT,
    SNAPSHOTS,
    SPLITS,
    TEMPORARY_SUFFIX,
    CheckpointLayout,
    epoch_of_file_name,
    epoch_of_manifest_name,
    manifest_name,
)
from headwater.checkpoint.start.claims import DriverClaim, Lineage, demand_newest, read_lineage
from headwater.checkpoint.storage.base import Location
from headwater.checkpoint.storage.sealed import BrokenSealError, seal, unseal
from headwater.common.errors import CheckpointError, FencedError, StorageError

log = logging.getLogger(__name__)

_NO_MANIFEST = seal(b"HWNONE\0\0", 1, b"")
"""What NEWEST is before the first manifest."""

_COMMITTED_MAGIC = b"HWCOMMI\0"
_COMMITTED_VERSION = 1

_VOID_MANIFESTS = 3
"""How often one write replaces a fenced driver's manifest before it gives up."""

SWEEP_SECONDS = 10.0
"""How often a driver lists its directory to find files that no manifest ever named. The others it knows by heart."""


class ManifestStore:
    """The manifests of one checkpoint directory.

    A driver calls `take_over` before its first write. Tools only read and do not call it. Not thread-safe, but one
    thread may hand the store to another.
    """

    def __init__(self, layout: CheckpointLayout, *, durable: bool = True) -> None:
        self.layout = layout
        self._storage = layout.storage
        self._durable = durable
        self._needed: dict[int, frozenset[str]] = {}  # {epoch: names of files its manifest needs, with their directory}
        self._damaged: set[int] = set()
        """Epochs whose manifest is damaged, and was reported in the log."""
        self._last_sweep: float | None = None
        """When this driver last listed its directory for garbage. None: it must do so the next time."""
        self._claim: DriverClaim | None = None
        self._lineage: Lineage | None = None
        """Set together with the claim. None: read it each time, because another driver may use the directory."""
        self._last: Manifest | None = None
        self._in_doubt = False
        """The last write raised, and nobody knows what it left."""
        self._orphans: list[str] = []
        """What earlier drivers left, as it was when this one took over."""

    def take_over(self, job_name: str) -> Manifest | None:
        """Become the only driver of the directory. Return the manifest to resume from, or None if there is none.

        Fences every driver before: none of them can complete a checkpoint any more. Call it when the job is sure to run
        here, and decide with what it returns: a driver that was still running may have written one more manifest since
        anybody looked. Raises FencedError if another driver did the same at the same moment. Deletes nothing: see
        `remove_orphans`.
        """
        self.layout.create()
        known = max((manifest.claim for manifest in self._readable()), default=0)
        claim = DriverClaim.take(self._storage, job_name, above=known)
        self._needed.clear()
        latest = self.latest()
        self._restore_newest(claim, latest)
        self._go_on_from(claim, latest)
        self._orphans = self._find_orphans()
        return self._last

    def _restore_newest(self, claim: DriverClaim, latest: Manifest | None) -> None:
        """See that `latest`, from which this driver goes on, is there under both of its names."""
        name, content = NEWEST, _NO_MANIFEST
        if latest is not None:
            name, content = manifest_name(latest.epoch), encode_manifest(latest)
            if self._storage.size(name) is None:
                log.warning("%s/%s was missing, and is made again of %s", self._storage.url, name, NEWEST)
        try:
            with contextlib.suppress(FileExistsError):
                self._storage.write_once(name, content, durable=self._durable)
        except OSError as error:
            raise _not_writable(f"{self._storage.url}/{name}", error) from error
        if latest is not None:
            self._make_newest(claim, name, content)

    def _make_newest(self, claim: DriverClaim, name: str, content: bytes) -> None:
        """The manifest `name` is durable: if no other driver has the job by now, it is the newest one."""
        claim.check()
        try:
            self._storage.copy(name, NEWEST, content)
        except OSError as error:
            claim.check()  # it may be another driver that has deleted it
            raise _not_writable(f"{self._storage.url}/{NEWEST}", error) from error

    def _go_on_from(self, claim: DriverClaim, manifest: Manifest | None) -> None:
        claim.set_base(manifest)
        self._claim, self._last, self._in_doubt = claim, manifest, False
        self._lineage = read_lineage(self._storage)

    def check_claim(self) -> None:
        """Raise FencedError if another driver has taken over."""
        if self._claim is not None:
            self._claim.check()

    def write(self, manifest: Manifest) -> Location:
        """Write `manifest` durably: its epoch is then complete.

        Raises FencedError if another driver has taken over, or the epoch already has a manifest: this driver's output
        of the epoch must not become visible. After any other CheckpointError the manifest does not count, and never
        will while this driver goes on: the next checkpoint must contain its changes and its output.
        """
        location = self.layout.manifest(manifest.epoch)
        if self._claim is not None:
            if self._in_doubt:
                # The failed write may have left its manifest. It must not count: this driver has gone on without it.
                self._go_on_from(self._claim.renew(), self._last)
            else:
                self._claim.check()
            manifest = msgspec.structs.replace(manifest, writer=self._claim.writer)
        self._in_doubt = True
        try:
            content = self._create(manifest, location)
        except OSError as error:
            raise _not_writable(f"manifest {location} of epoch {manifest.epoch}", error) from error
        if self._claim is not None:
            # This looks for another driver. Not before may anything become visible. Deleting the manifest would be
            # wrong: if the other driver read it, it goes on from it.
            self._make_newest(self._claim, manifest_name(manifest.epoch), content)
        self._in_doubt = False
        self._last = manifest
        self._needed[manifest.epoch] = _files_of(manifest)
        return location

    def _create(self, manifest: Manifest, location: Location) -> bytes:
        content = encode_manifest(manifest)
        for _ in range(_VOID_MANIFESTS):
            try:
                self._storage.write_once(manifest_name(manifest.epoch), content, durable=self._durable)
                return content
            except FileExistsError:
                other = self.load(manifest.epoch)
                if self._lineage is None or self._lineage.counts(other) or other.claim >= manifest.claim:
                    break
                log.warning("manifest %s was written by a driver that had been fenced: it is replaced", location)
                self._storage.delete(manifest_name(manifest.epoch))
        raise FencedError(
            f"fenced: epoch {manifest.epoch} already has the manifest {location}, written by {_who(other)}; this "
            "attempt stops, and commits nothing"
        )

    def note_committed(self, epoch: int) -> None:
        """Note that the output of `epoch` is visible, so that a resumed job does not commit it again.

        The note need not be durable: if it is lost, the epoch is committed twice, which committers allow. It keeps
        sinks that cannot recognise a repetition (print, collect) from repeating output after an orderly stop.
        """
        if self._claim is not None and (self._last is None or epoch > self._last.epoch):
            return  # of a savepoint: the next start may be from another, and give its number to another epoch
        content = seal(_COMMITTED_MAGIC, _COMMITTED_VERSION, msgspec.msgpack.encode(epoch))
        try:
            with self._storage.write(COMMITTED, durable=False) as file:
                file.write(content)
        except (OSError, StorageError) as error:
            log.warning("the note that epoch %d is committed cannot be written: %s", epoch, error)

    def is_committed(self, epoch: int) -> bool:
        """Whether the output of `epoch` is known to be visible."""
        return self._committed() >= epoch

    def _committed(self) -> int:
        """Up to which epoch the output is known to be visible; -1 if that is not known."""
        try:
            content = self._storage.read(COMMITTED)
        except FileNotFoundError:
            return -1
        except OSError as error:
            raise CheckpointError(
                f"{self.layout.committed} cannot be read: {error.strerror or error}; make the file readable"
            ) from error
        try:
            return msgspec.msgpack.decode(unseal(_COMMITTED_MAGIC, (_COMMITTED_VERSION,), content, "note"), type=int)
        except (BrokenSealError, msgspec.MsgspecError) as error:
            if not content.isdigit():  # an earlier version wrote it so
                log.warning("%s is damaged: %s. Output is committed once more", self.layout.committed, error)
            return -1

    def epochs(self) -> list[int]:
        """Epochs that have a manifest, oldest first. Manifests of fenced drivers do not count."""
        listed = self._listed()
        lineage = self._history()
        return [epoch for epoch in listed if epoch in self._needed or self._counts(epoch, lineage)]

    def _history(self) -> Lineage:
        return self._lineage or read_lineage(self._storage, self._readable())

    def _readable(self) -> list[Manifest]:
        """All manifests that can be read, whether they count or not."""
        found: list[Manifest] = []
        for epoch in self._listed():
            try:
                found.append(self._read(epoch))
            except StorageError:
                raise
            except (FileNotFoundError, CheckpointError):
                continue  # deleted since it was listed, or damaged: whoever loads it will see
        with contextlib.suppress(CheckpointError):
            newest = self._read_newest()
            if newest is not None:
                found.append(newest)
        return found

    def _listed(self) -> list[int]:
        found = (epoch_of_manifest_name(name) for name in self._storage.list(MANIFESTS))
        return sorted(epoch for epoch in found if epoch is not None)

    def _counts(self, epoch: int, lineage: Lineage) -> bool:
        try:
            manifest = self._read(epoch)
        except FileNotFoundError:
            return False  # deleted since it was listed
        except StorageError:
            raise
        except CheckpointError:
            return True  # damaged: `load` will raise
        if not lineage.counts(manifest):
            return False
        self._needed[epoch] = _files_of(manifest)
        return True

    def latest(self) -> Manifest | None:
        """Return the manifest of the highest epoch that counts; None in a fresh directory.

        If that one is damaged this raises: older ones are never tried, because the output of the newest epoch may be
        visible already. The error names the one that a person may choose to start from. The same if it is missing, and
        NEWEST does not have it.
        """
        committed = self._committed()  # before the rest: a running job goes on meanwhile
        lineage = self._history()
        listed = self._newest_listed(lineage)
        newest = self._read_newest()
        if newest is not None and lineage.counts(newest) and (listed is None or newest.epoch > listed.epoch):
            listed = newest
        if committed > (-1 if listed is None else listed.epoch):
            missing = self.layout.manifest(committed)
            raise CheckpointError(
                f"manifest {missing} of epoch {committed} is missing, but {self.layout.committed} says that its output "
                f"is visible. Restore the file from a copy. {self._what_is_whole(committed)}"
            )
        return listed

    def _read_newest(self) -> Manifest | None:
        """What NEWEST holds; None: no manifest, or the directory is from before there was this file."""
        location = self._storage.locate(NEWEST)
        content = self._content_of_newest()
        if content is None and self._must_have_newest():
            content = self._content_of_newest()  # another driver may have made it, and gone on, meanwhile
            if content is None:
                raise CheckpointError(f"{location} is missing. {self._how_to_make_newest()}")
        if content is None or content == _NO_MANIFEST:
            return None
        try:
            return decode_manifest(content, str(location))
        except CheckpointError as error:
            raise CheckpointError(f"{error}. {self._how_to_make_newest()}") from error

    def _content_of_newest(self) -> bytes | None:
        try:
            return self._storage.read(NEWEST)
        except FileNotFoundError:
            return None
        except OSError as error:
            location = self._storage.locate(NEWEST)
            raise CheckpointError(f"{location} cannot be read: {error.strerror}; make it readable") from error

    def _must_have_newest(self) -> bool:
        if demand_newest(self._storage):
            return True
        for epoch in self._listed():
            with contextlib.suppress(FileNotFoundError, CheckpointError):
                writer = self._read(epoch).writer
                if writer is not None and writer.base is not None:
                    return True
        return False

    def _how_to_make_newest(self) -> str:
        said = (
            "It is the newest manifest once more, so nobody knows whether that is missing, too. Restore the file from "
            "a copy. "
        )
        listed = self._listed()
        if not listed:
            return said + "If there was no checkpoint yet, give the job a fresh directory"
        newest = self.layout.manifest(listed[-1])
        return said + f"If you know that {newest} is the last checkpoint of the job, copy that file to {NEWEST}"

    def _newest_listed(self, lineage: Lineage) -> Manifest | None:
        for epoch in reversed(self._listed()):
            try:
                manifest = self._read(epoch)
            except FileNotFoundError:
                return self._newest_listed(lineage)  # a running job has newer ones by now, and deleted this one
            except StorageError:
                raise
            except CheckpointError as error:
                raise CheckpointError(
                    f"{error}; headwater does not go back to an older epoch by itself, because output of this one may "
                    f"already be visible. {self._what_is_whole(epoch)}"
                ) from error
            if lineage.counts(manifest):
                self._needed[epoch] = _files_of(manifest)
                return manifest
            log.warning("manifest of epoch %d was written by a driver that had been fenced: it does not count", epoch)
        return None

    def _what_is_whole(self, before_epoch: int) -> str:
        whole = [epoch for epoch in self.epochs() if epoch < before_epoch and epoch in self._needed]
        if not whole:
            return "No manifest in the directory is whole"
        return (
            f"The newest manifest that is whole is that of epoch {whole[-1]}: a new job, with a directory of its own, "
            f"can start from {self.layout.root}@{whole[-1]} (headwater run -s), and gives the output since then again"
        )

    def load(self, epoch: int) -> Manifest:
        """Return the manifest of `epoch`. Raises CheckpointError if it is missing or damaged."""
        try:
            return self._read(epoch)
        except FileNotFoundError:
            kept = self._listed()
            there = f"epochs {kept[0]} to {kept[-1]} are kept" if kept else "there is none at all"
            raise CheckpointError(f"epoch {epoch} has no manifest at {self.layout.manifest(epoch)}; {there}") from None

    def _read(self, epoch: int) -> Manifest:
        location = self.layout.manifest(epoch)
        try:
            content = self._storage.read(manifest_name(epoch))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise CheckpointError(f"manifest {location} of epoch {epoch} cannot be read: {error.strerror}") from error
        return decode_manifest(content, str(location), epoch)

    def collect_garbage(self, keep: int, protected: Iterable[str] = ()) -> int:
        """Delete all but the newest `keep` manifests and the files that these need. Return how many files went.

        Manifests are deleted first: after a crash in between, the next driver finds the files that no manifest names.
        A file goes only if its epoch is before the oldest kept one: current attempts and full snapshots in progress
        write files of later epochs. Files named in `protected` stay. If the storage refuses a deletion, that is logged
        and the next call tries again. A damaged manifest keeps all files that it may need, and is deleted when its
        turn comes (docs/decisions/0009-damaged-manifests.md).

        Made for a call per checkpoint: a driver knows the files of its manifests. Only its first call, and one every
        `SWEEP_SECONDS`, lists the directory, for what was protected before and what attempts left that failed.
        """
        if keep < 1:
            raise CheckpointError(f"execution.checkpointing.num-retained is {keep}; expected at least 1")
        if self._claim is None or self._last_sweep is None or time.monotonic() - self._last_sweep >= SWEEP_SECONDS:
            return self._sweep(keep, _with_directories(protected))
        epochs = sorted(self._needed)
        old, kept = epochs[:-keep], epochs[-keep:]
        gone = frozenset().union(*(self._needed[epoch] for epoch in old))
        unneeded = gone.difference(_with_directories(protected), *(self._needed[epoch] for epoch in kept))
        return self._delete_old(old, sorted(unneeded))

    def _sweep(self, keep: int, protected: set[str]) -> int:
        """Collect garbage by what is in the directory."""
        epochs = self.epochs()
        if not epochs:
            return 0
        kept = epochs[-keep:]
        unneeded = self._unneeded(kept, protected, before_epoch=kept[0])
        # Nobody knows which files a damaged manifest needs.
        self._last_sweep = time.monotonic() if all(epoch in self._needed for epoch in kept) else None
        return self._delete_old(epochs[:-keep], unneeded)

    def _delete_old(self, epochs: list[int], files: list[str]) -> int:
        deleted = self._delete([manifest_name(epoch) for epoch in epochs] + files)
        for epoch in epochs:
            self._needed.pop(epoch, None)
        return deleted

    def remove_orphans(self) -> int:
        """Delete every file that no manifest needed when this driver took over: left by attempts that died.

        To be called when all partitions have loaded their state: before that, nobody knows whether a file is missing
        for which these may be of use. Returns how many files were deleted.
        """
        orphans, self._orphans = self._orphans, []
        own = {manifest_name(epoch) for epoch in self._needed}  # it may have taken the place of a void one
        return self._delete([name for name in orphans if name not in own])

    def _find_orphans(self) -> list[str]:
        epochs = self.epochs()
        names = self._unneeded(epochs, set(), before_epoch=None)
        if not epochs:  # a job that starts from a savepoint has copied them, and no manifest names them yet
            names = [name for name in names if not name.startswith(f"{SPLITS}/")]
        names += [manifest_name(epoch) for epoch in self._listed() if epoch not in epochs]
        return names + self._temporary_files()

    def _temporary_files(self) -> list[str]:
        """Files that dead drivers did not finish. (Snapshots and splits are recognised by their names.)"""
        names = [f"{MANIFESTS}/{name}" for name in self._storage.list(MANIFESTS)]
        if self.layout.is_local and self._claim is not None:
            names += [name for name in self._storage.list("") if not name.startswith(".")]
            names += [f"{OUTPUT}/{name}" for name in self._storage.list(OUTPUT)]
            # A driver that starts at this moment writes a higher claim.
            higher = f"{self._claim.record.number + 1:012d}"
            names += [f"{CLAIMS}/{name}" for name in self._storage.list(CLAIMS) if name < higher]
        return [name for name in names if name.endswith(TEMPORARY_SUFFIX)]

    def delete_checkpoints(self) -> None:
        """Delete all checkpoints of a job that no longer wants them. Raises FencedError if another driver took over.

        First what is known to be visible: the next run counts its epochs from the beginning. Then manifests, without
        which nothing counts, the newest one last: whoever starts in between goes on from that.
        """
        manifests = sorted(f"{MANIFESTS}/{name}" for name in self._storage.list(MANIFESTS))
        files = [f"{folder}/{name}" for folder in (SNAPSHOTS, SPLITS, OUTPUT) for name in self._storage.list(folder)]
        self._needed.clear()
        self._delete([COMMITTED, *manifests])
        with self._storage.write(NEWEST, durable=self._durable) as file:
            file.write(_NO_MANIFEST)
        self._delete(files)

    def _unneeded(self, kept: list[int], protected: set[str], before_epoch: int | None) -> list[str]:
        """Return the files of epochs before `before_epoch` (None: of all epochs) that no manifest in `kept` needs."""
        needed, spared = protected, -1
        for epoch in kept:
            files = self._files_needed_by(epoch)
            if files is None:
                spared = max(spared, epoch)
            else:
                needed = needed | files
        unneeded: list[str] = []
        for directory in (SNAPSHOTS, SPLITS):
            for name in self._storage.list(directory):
                path, epoch_of_file = f"{directory}/{name}", epoch_of_file_name(name)
                if path in needed or epoch_of_file is None:  # never delete a foreign file
                    continue
                if epoch_of_file > spared and (before_epoch is None or epoch_of_file < before_epoch):
                    unneeded.append(path)
        return unneeded

    def _files_needed_by(self, epoch: int) -> frozenset[str] | None:
        """Return the files that the manifest of `epoch` needs.

        None: the manifest is damaged. It may need any file of its own or an earlier epoch, but of no later one.
        """
        if epoch not in self._needed:
            try:
                self._needed[epoch] = _files_of(self.load(epoch))
            except StorageError:
                raise
            except CheckpointError as error:
                if epoch not in self._damaged:
                    self._damaged.add(epoch)
                    log.warning(
                        "%s. Newer checkpoints are whole, so the job goes on. As long as this one is retained, no file "
                        "of epoch %d or before is deleted", error, epoch,
                    )  # fmt: skip
                return None
        return self._needed[epoch]

    def _delete(self, names: list[str]) -> int:
        # `names` was listed before this check, so it contains no file of a driver that takes over after the check.
        if self._claim is not None and names:
            self._claim.check()
        deleted = 0
        for name in names:
            try:
                deleted += self._storage.delete(name)
            except (OSError, StorageError) as error:
                log.warning("%s/%s is no longer needed but cannot be deleted: %s", self._storage.url, name, error)
                self._last_sweep = None
        return deleted


def _files_of(manifest: Manifest) -> frozenset[str]:
    snapshots = [f"{SNAPSHOTS}/{name}" for name in manifest.snapshot_names()]
    return frozenset(snapshots + [f"{SPLITS}/{name}" for name in manifest.split_segment_names()])


def _with_directories(names: Iterable[str]) -> set[str]:
    """Where a file with one of `names` may be."""
    return {f"{directory}/{name}" for name in names for directory in (SNAPSHOTS, SPLITS)}


def _not_writable(what: str, error: OSError) -> CheckpointError:
    return CheckpointError(
        f"{what} cannot be written: {error.strerror or error}; make room, or make the directory writable, and start "
        "the job again"
    )


def _who(manifest: Manifest) -> str:
    writer = manifest.writer
    if writer is None:
        return "another attempt of the job"
    return f"pid {writer.pid} on host {writer.host} (claim {writer.claim}, run {writer.run})"
