"""Part files: what they are called, how they grow over several checkpoints, and when they become visible.

Writers write **pieces**, hidden files of one epoch. At each checkpoint `roll` decides, from facts alone, what becomes
of them: a piece that is large enough becomes visible by itself; the others of a bucket become one **growing part**,
which stays hidden, and is named in manifests, until the rolling policy says that it is complete.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from headwater.common.connector import CheckpointMoment, Selection
from headwater.common.errors import ConfigurationError
from headwater.common.time import DurationLike, to_millis

__all__ = ["DefaultRollingPolicy", "OnCheckpointRollingPolicy", "OutputFileConfig", "RollingPolicy"]

_DEFAULT_INTERVAL_MS: Final = 60 * 1000

_SMALL_SHARE: Final = 8
"""A piece of this share of the largest size is not small."""

MAX_PIECES: Final = 64
"""Where files cannot grow, this many pieces of a part become one, so that manifests stay small."""


class RollingPolicy:
    """When a part file is complete, and the next one begins."""

    part_size: int | None = None
    """Bytes after which a file takes no more; None: there is no limit."""
    across_checkpoints: bool = False
    """True if a file may take the output of several checkpoints. It is hidden as long as it does."""

    def complete_at_ms(self, part: GrowingPart) -> int:
        """When a part is complete, whatever its size, in processing time. Only if it goes across checkpoints."""
        raise NotImplementedError

    @staticmethod
    def default_rolling_policy(
        part_size: int = 1024 * 1024 * 128,
        rollover_interval: DurationLike = _DEFAULT_INTERVAL_MS,
        inactivity_interval: DurationLike = _DEFAULT_INTERVAL_MS,
    ) -> DefaultRollingPolicy:
        """A file is complete when it has `part_size` bytes, was begun `rollover_interval` ms ago, or has got nothing
        for `inactivity_interval` ms. The policy is asked at each checkpoint, in processing time."""
        if part_size <= 0:
            raise ConfigurationError(f"rolling policy: part_size is {part_size}; expected more than 0 bytes")
        return DefaultRollingPolicy(
            part_size,
            to_millis(rollover_interval, "rollover_interval", minimum=1),
            to_millis(inactivity_interval, "inactivity_interval", minimum=1),
        )

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """A file is complete with each checkpoint. What formats with an end, such as Parquet, need."""
        return OnCheckpointRollingPolicy()


class DefaultRollingPolicy(RollingPolicy):
    """By size and time."""

    across_checkpoints = True

    def __init__(
        self,
        part_size: int,
        rollover_interval_ms: int = _DEFAULT_INTERVAL_MS,
        inactivity_interval_ms: int = _DEFAULT_INTERVAL_MS,
    ) -> None:
        self.part_size = part_size
        self.rollover_interval_ms = rollover_interval_ms
        self.inactivity_interval_ms = inactivity_interval_ms

    def complete_at_ms(self, part: GrowingPart) -> int:
        return min(part.begun_ms + self.rollover_interval_ms, part.changed_ms + self.inactivity_interval_ms)


class OnCheckpointRollingPolicy(RollingPolicy):
    """With each checkpoint."""


# --- what manifests name


@dataclass(frozen=True)
class FileCommittable:
    """A complete file under its pending name."""

    directory: str
    pending_name: str
    final_name: str
    length: int
    epoch: int = 0
    partition: int = 0
    written_ms: int = 0
    """The epoch's processing time."""
    job_id: str = ""

    @property
    def pending_path(self) -> str:
        return f"{self.directory}/{self.pending_name}"

    @property
    def final_path(self) -> str:
        return f"{self.directory}/{self.final_name}"

    @property
    def identity(self) -> str:
        """Tells two commits apart."""
        return self.final_name


@dataclass(frozen=True)
class GrownPart:
    """Pieces to add to a hidden file, from its byte `at` on."""

    target: FileCommittable
    """With the length that it then has."""
    at: int
    pieces: tuple[FileCommittable, ...]
    last: bool = False
    """The same commit makes the file visible."""

    @property
    def directory(self) -> str:
        return self.target.directory

    @property
    def pending_name(self) -> str:
        return self.target.pending_name

    @property
    def identity(self) -> str:
        return f"{self.target.final_name}:{self.target.length}"


@dataclass(frozen=True)
class GrowingPart:
    """A hidden file that takes the output of further checkpoints, with the pieces that wait to be added to it."""

    base: FileCommittable
    begun_ms: int
    changed_ms: int
    pieces: tuple[FileCommittable, ...] = field(default=())

    @property
    def length(self) -> int:
        return self.base.length + sum(piece.length for piece in self.pieces)

    def files(self) -> list[FileCommittable]:
        return [self.base, *self.pieces]

    def added(self, piece: FileCommittable) -> GrowingPart:
        changed_ms = max(self.changed_ms, piece.written_ms)
        return replace(self, changed_ms=changed_ms, pieces=(*self.pieces, piece))

    def grown(self, *, appends: bool, last: bool = False) -> tuple[GrowingPart, list[Any]]:
        """Return it without pieces, and the step that adds them."""
        if not self.pieces:
            return self, []
        if appends:
            target = replace(self.base, length=self.length)
            step = GrownPart(target, self.base.length, self.pieces, last)
        else:
            name = hashlib.sha256("/".join(file.pending_name for file in self.files()).encode()).hexdigest()[:16]
            job_end = ".".join(self.base.pending_name.rsplit(".", 2)[1:])
            target = replace(self.base, length=self.length, pending_name=f".joined-{name}.{job_end}")
            step = GrownPart(target, 0, tuple(self.files()), last)
        return replace(self, base=target, pieces=()), [step]

    def whole(self, *, appends: bool = True) -> list[Any]:
        """The steps that make it visible."""
        grown, steps = self.grown(appends=appends, last=True)
        return [*steps, grown.base]


@dataclass(frozen=True)
class HeldFile:
    """A complete file that waits to be joined with others."""

    file: FileCommittable
    checkpoints: int
    """Number of checkpoints for which it has waited."""

    def files(self) -> list[FileCommittable]:
        return [self.file]

    def whole(self) -> list[Any]:
        return [self.file]


# --- the decision


def roll(
    prepared: Sequence[FileCommittable],
    held: Sequence[Any],
    moment: CheckpointMoment,
    policy: RollingPolicy,
    *,
    appends: bool,
    job_id: str | None,
) -> Selection:
    """Decide which files a checkpoint makes visible, and which go on."""
    due: list[Any] = []
    growing: dict[str, GrowingPart] = {}  # {directory: its part}
    for each in held:
        if isinstance(each, GrowingPart) and policy.across_checkpoints and each.base.job_id in ("", job_id):
            growing[each.base.directory] = each
        else:  # another job's, or the policy was changed
            due += each.whole(appends=appends) if isinstance(each, GrowingPart) else each.whole()
    if not policy.across_checkpoints:
        return Selection([*due, *prepared])
    limit = policy.part_size
    # At the end nothing will come that could join a piece: only small ones are worth a copy. BATCH has no other moment.
    alone = limit if limit is None or not moment.final else max(1, limit // _SMALL_SHARE)
    for piece in sorted(prepared, key=lambda piece: (piece.epoch, piece.partition)):
        if alone is not None and piece.length >= alone:
            due.append(piece)
            continue
        part = growing.pop(piece.directory, None)
        part = GrowingPart(piece, piece.written_ms, piece.written_ms) if part is None else part.added(piece)
        if limit is not None and part.length >= limit:
            due += part.whole(appends=appends)
        else:
            growing[piece.directory] = part
    still: list[GrowingPart] = []
    for part in growing.values():
        if moment.final or policy.complete_at_ms(part) <= moment.now_ms:
            due += part.whole(appends=appends)
            continue
        if appends or len(part.pieces) >= MAX_PIECES:
            part, steps = part.grown(appends=appends)
            due += steps
        still.append(part)
    return Selection(due, list(still), min(map(policy.complete_at_ms, still), default=None))


@dataclass(frozen=True)
class OutputFileConfig:
    """What part files are called: `<prefix>-<partition>-<epoch>-<unique>-<n><suffix>`, by their first piece."""

    part_prefix: str = "part"
    part_suffix: str = ""

    def __post_init__(self) -> None:
        for what, text, pattern in (
            ("part prefix", self.part_prefix, r"[A-Za-z0-9][\w.=\-]*"),
            ("part suffix", self.part_suffix, r"[\w.=\-]*"),
        ):
            if not isinstance(text, str) or not re.fullmatch(pattern, text):
                raise ConfigurationError(
                    f"{what} {text!r} cannot be part of a file name; use letters, digits, '-', '.'"
                )

    def get_part_prefix(self) -> str:
        return self.part_prefix

    def get_part_suffix(self) -> str:
        return self.part_suffix

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        return OutputFileConfig.OutputFileConfigBuilder()

    class OutputFileConfigBuilder:
        """Builds an `OutputFileConfig`."""

        def __init__(self) -> None:
            self.part_prefix = "part"
            self.part_suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            self.part_prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            self.part_suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            return OutputFileConfig(self.part_prefix, self.part_suffix)
