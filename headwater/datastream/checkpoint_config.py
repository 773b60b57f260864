"""Settings of checkpoints. There is less to choose than in Flink: they are exactly once, at the end of an epoch."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from headwater.common import config_options as options
from headwater.common.configuration import Configuration
from headwater.common.errors import ConfigurationError, TypeMismatchError, short_repr
from headwater.common.time import Duration, DurationLike, to_millis
from headwater.datastream.checkpointing_mode import CheckpointingMode
from headwater.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from headwater.datastream.no_effect import warn_no_effect

T = TypeVar("T")

_MAX_INT = 2**31 - 1


class CheckpointConfig:
    """A view of the environment's configuration: what is set here is set there, and vice versa.

    Setters without effect here remember the value, and warn once.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._without_effect: dict[str, Any] = {}

    def is_checkpointing_enabled(self) -> bool:
        return self._configuration.get(options.CHECKPOINTING_ENABLED)

    def get_checkpointing_mode(self) -> CheckpointingMode:
        return CheckpointingMode[self._configuration.get(options.CHECKPOINTING_MODE)]

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Checkpoints are EXACTLY_ONCE, whichever mode is set."""
        if not isinstance(checkpointing_mode, CheckpointingMode):
            raise TypeMismatchError(
                f"set_checkpointing_mode() expects a CheckpointingMode, found {short_repr(checkpointing_mode)}"
            )
        if checkpointing_mode is CheckpointingMode.AT_LEAST_ONCE:
            warn_no_effect("CheckpointingMode.AT_LEAST_ONCE", "checkpoints are exactly once, which costs no more here")
        self._configuration.set(options.CHECKPOINTING_MODE, checkpointing_mode.name)
        return self

    def get_checkpoint_interval(self) -> int:
        """Return the interval in milliseconds; the epoch duration if none is set."""
        return self._configuration.get(options.CHECKPOINTING_INTERVAL, self._configuration.get(options.EPOCH_DURATION))

    def set_checkpoint_interval(self, checkpoint_interval: DurationLike) -> CheckpointConfig:
        """Time from one checkpoint to the next (milliseconds, or a duration); without, every epoch ends with one.

        A checkpoint is cut at the end of an epoch; an interval shorter than `headwater.epoch.duration` shortens the
        epochs. Transactional sinks show their output at checkpoints.
        """
        interval_ms = to_millis(checkpoint_interval, "checkpoint interval", minimum=1)
        self._configuration.set(options.CHECKPOINTING_INTERVAL, interval_ms)
        return self

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        return ExternalizedCheckpointRetention[self._configuration.get(options.CHECKPOINT_RETENTION)]

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Set what happens to the checkpoint when the job is cancelled. By default it is kept."""
        if not isinstance(retention_mode, ExternalizedCheckpointRetention):
            raise TypeMismatchError(
                f"set_externalized_checkpoint_retention() expects an ExternalizedCheckpointRetention, "
                f"found {short_repr(retention_mode)}"
            )
        self._configuration.set(options.CHECKPOINT_RETENTION, retention_mode.name)
        return self

    def is_externalized_checkpoints_enabled(self) -> bool:
        return self.get_externalized_checkpoint_retention() is not (
            ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        )

    def get_checkpoint_timeout(self) -> int:
        return self._configuration.get(options.CHECKPOINTING_TIMEOUT)

    def set_checkpoint_timeout(self, checkpoint_timeout: DurationLike) -> CheckpointConfig:
        """A checkpoint that is not complete after this time (milliseconds, or a duration) has failed."""
        timeout_ms = to_millis(checkpoint_timeout, "checkpoint timeout", minimum=10)
        self._configuration.set(options.CHECKPOINTING_TIMEOUT, timeout_ms)
        return self

    def get_min_pause_between_checkpoints(self) -> int:
        return self._configuration.get(options.CHECKPOINTING_MIN_PAUSE)

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: DurationLike) -> CheckpointConfig:
        """Least time between the end of one checkpoint and the beginning of the next."""
        pause_ms = to_millis(min_pause_between_checkpoints, "pause between checkpoints", minimum=0)
        self._configuration.set(options.CHECKPOINTING_MIN_PAUSE, pause_ms)
        return self

    def get_tolerable_checkpoint_failure_number(self) -> int:
        return self._configuration.get(options.TOLERABLE_FAILED_CHECKPOINTS)

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> CheckpointConfig:
        """Let this many checkpoints in a row fail. The next one that succeeds contains what they would have."""
        if not isinstance(tolerable_checkpoint_failure_number, int) or tolerable_checkpoint_failure_number < 0:
            raise ConfigurationError(
                f"set_tolerable_checkpoint_failure_number() expects a number from 0, "
                f"found {short_repr(tolerable_checkpoint_failure_number)}"
            )
        self._configuration.set(options.TOLERABLE_FAILED_CHECKPOINTS, tolerable_checkpoint_failure_number)
        return self

    def is_fail_on_checkpointing_errors(self) -> bool:
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        return self.set_tolerable_checkpoint_failure_number(0 if fail_on_checkpointing_errors else _MAX_INT)

    # --- without effect -----------------------------------------------------------------------------------------

    def get_max_concurrent_checkpoints(self) -> int:
        return self._remembered("max_concurrent_checkpoints", 1)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        reason = "one epoch, and one checkpoint, follows the other"
        return self._remember("max_concurrent_checkpoints", max_concurrent_checkpoints, reason, harmless=1)

    def is_unaligned_checkpoints_enabled(self) -> bool:
        return self._remembered("unaligned_checkpoints", False)

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        reason = "no record is in flight at the end of an epoch, so there is nothing to overtake"
        return self._remember("unaligned_checkpoints", enabled, reason, harmless=False)

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        return self.enable_unaligned_checkpoints(False)

    def is_force_unaligned_checkpoints(self) -> bool:
        return self._remembered("force_unaligned_checkpoints", False)

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        reason = "no record is in flight at the end of an epoch, so there is nothing to overtake"
        return self._remember("force_unaligned_checkpoints", force_unaligned_checkpoints, reason, harmless=False)

    def get_aligned_checkpoint_timeout(self) -> Duration:
        return self._remembered("aligned_checkpoint_timeout", Duration.of_millis(0))

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        reason = "no barrier travels between records: all partitions end an epoch together"
        return self._remember("aligned_checkpoint_timeout", alignment_timeout, reason)

    def get_alignment_timeout(self) -> Duration:
        return self.get_aligned_checkpoint_timeout()

    def set_alignment_timeout(self, alignment_timeout: Duration) -> CheckpointConfig:
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def _remembered(self, name: str, default: T) -> T:
        return cast(T, self._without_effect.get(name, default))

    def _remember(self, name: str, value: Any, reason: str, harmless: Any = None) -> CheckpointConfig:
        """Keep `value` for the getter. Warn that it has no effect, unless it is what holds anyway."""
        self._without_effect[name] = value
        if value != harmless:
            warn_no_effect(name, reason)
        return self
