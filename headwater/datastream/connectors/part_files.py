"""How a file sink names its part files and when it begins a new one."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Final

from headwater.common.errors import ConfigurationError

__all__ = ["DefaultRollingPolicy", "OnCheckpointRollingPolicy", "OutputFileConfig", "RollingPolicy"]

_DEFAULT_INTERVAL_MS: Final = 60 * 1000


class RollingPolicy:
    """When a part file is closed and the next one begun. The end of an epoch always closes it: only whole files can
    become visible."""

    part_size: int | None = None
    """Bytes after which a new file is begun within an epoch; None: never."""

    @staticmethod
    def default_rolling_policy(
        part_size: int = 1024 * 1024 * 128,
        rollover_interval: int = _DEFAULT_INTERVAL_MS,
        inactivity_interval: int = _DEFAULT_INTERVAL_MS,
    ) -> DefaultRollingPolicy:
        """A new file when the current one has `part_size` bytes, and at the end of each epoch.

        The intervals have no effect: they could only keep a file open longer than an epoch.
        """
        if part_size <= 0:
            raise ConfigurationError(f"rolling policy: part_size is {part_size}; expected more than 0 bytes")
        if (rollover_interval, inactivity_interval) != (_DEFAULT_INTERVAL_MS, _DEFAULT_INTERVAL_MS):
            warnings.warn(
                "rollover_interval and inactivity_interval have no effect: part files end with their epoch; for larger "
                "files set headwater.epoch.duration",
                stacklevel=2,
            )
        return DefaultRollingPolicy(part_size)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """A new file with each epoch only."""
        return OnCheckpointRollingPolicy()


class DefaultRollingPolicy(RollingPolicy):
    """By size, and with each epoch."""

    def __init__(self, part_size: int) -> None:
        self.part_size = part_size


class OnCheckpointRollingPolicy(RollingPolicy):
    """With each epoch."""


@dataclass(frozen=True)
class OutputFileConfig:
    """What part files are called: `<prefix>-<partition>-<epoch>-<unique>-<n><suffix>`."""

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
