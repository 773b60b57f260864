"""Copies completed checkpoints to savepoints, in the background and within a time limit."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.savepoint.savepoint import dispose_savepoint, write_savepoint
from headwater.checkpoint.savepoint.unfinished import note_unfinished
from headwater.checkpoint.store import ManifestStore
from headwater.common.config_options import CHECKPOINTING_TIMEOUT
from headwater.common.errors import CheckpointError, FencedError
from headwater.runtime.background import Background
from headwater.runtime.job.requests import SavepointRequest


@dataclass(frozen=True)
class _Copy:
    request: SavepointRequest
    checkpoint: str
    """Its name for people."""
    names: frozenset[str]
    started_ms: float
    done: Future[None]


class SavepointCopies:
    """Owned by the coordinator's thread. Each copy has a thread of its own: one that hangs keeps nobody waiting."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._copies: list[_Copy] = []

    def start(self, store: ManifestStore, manifest: Manifest, request: SavepointRequest, now_ms: float) -> None:
        """Begin to copy. `request` is told when the savepoint is there, or why not."""
        if request.path.done():
            return  # nobody waits for it any more
        checkpoint = f"{store.layout.root}@{manifest.epoch}"
        names = frozenset(manifest.snapshot_names() | manifest.split_segment_names())
        done = self._background.start("savepoint", lambda: _copy(store, manifest, request, checkpoint))
        self._copies.append(_Copy(request, checkpoint, names, now_ms, done))

    def names(self) -> set[str]:
        """Files that are being copied: they are not garbage, though newer checkpoints do not need them."""
        return {name for copy in self._copies if not copy.request.path.done() for name in copy.names}

    def give_up_late(self, is_late: Callable[[float], bool], limit_ms: float) -> None:
        """Tell those whose copy began too long ago."""
        for copy in self._copies:
            if is_late(copy.started_ms):
                self._give_up(copy, limit_ms)
        self._copies = [copy for copy in self._copies if not copy.request.path.done()]

    def wait(self, request: SavepointRequest, limit_ms: float) -> str:
        """Wait for the savepoint. Return its path, or raise why there will be none."""
        try:
            return request.path.result(limit_ms / 1000)
        except FutureTimeoutError:
            for copy in self._copies:
                if copy.request is request:
                    self._give_up(copy, limit_ms)
            return request.path.result(0)

    def close(self, limit_ms: float) -> None:
        """Let what is under way end, if it does in time."""
        for copy in self._copies:
            try:
                copy.done.result(limit_ms / 1000)
            except FutureTimeoutError:
                self._give_up(copy, limit_ms)
        self._copies = []

    @staticmethod
    def _give_up(copy: _Copy, limit_ms: float) -> None:
        text = f"{copy.request.where} was not written within {not_in_time(limit_ms)}"
        copy.request.fail(what_became(CheckpointError(text), copy.request, copy.checkpoint))


def not_in_time(limit_ms: float) -> str:
    """How long a savepoint may take, and what to do if that is not enough."""
    return (
        f"{limit_ms / 1000:g} s and is given up; see whether the store hangs. If it is only slow, raise "
        f"{CHECKPOINTING_TIMEOUT.key}"
    )


def what_became(error: Exception, request: SavepointRequest, checkpoint: str) -> Exception:
    """The error of a stop whose savepoint failed. It says whether the job has ended all the same."""
    if request.drain:
        return CheckpointError(
            f"{error}. The job was drained and has ended; its checkpoint {checkpoint} has the same state"
        )
    return CheckpointError(f"{error}. The job goes on")


def _copy(store: ManifestStore, manifest: Manifest, request: SavepointRequest, checkpoint: str) -> None:
    def check_wanted() -> None:
        if request.path.done():
            raise CheckpointError(f"savepoint {request.where} was given up")

    try:
        with note_unfinished(store.layout, request.target):
            path = write_savepoint(store.layout, manifest, request.target, check_wanted=check_wanted).path
        # Another driver may have taken over and removed the unfinished copy. After a stop it also resumes from this
        # checkpoint: a second job that starts from the copy would do the same work twice.
        store.check_claim()
    except FencedError as error:
        request.fail(error)
    except Exception as error:
        request.fail(what_became(error, request, checkpoint) if request.stop else error)
    else:
        if not request.succeed(path):  # given up in the last moment
            dispose_savepoint(request.target)
