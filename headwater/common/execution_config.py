"""pyflink.common.ExecutionConfig: a view of a Configuration. Settings of a JVM are in `jvm_settings`."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.common.config import job_options as options
from headwater.common.config.jvm_settings import JvmSettings
from headwater.common.config.resolution import JOB_PARAMETER_PREFIX
from headwater.common.configuration import Configuration
from headwater.common.time import DurationLike, to_millis


class ExecutionConfig(JvmSettings):
    """Reads and writes the job's configuration; holds nothing itself."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def get_parallelism(self) -> int:
        return self._configuration.get(options.PARALLELISM)

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        self._configuration.set(options.PARALLELISM, parallelism)
        return self

    def get_max_parallelism(self) -> int:
        return self._configuration.get(options.MAX_PARALLELISM)

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        self._configuration.set(options.MAX_PARALLELISM, max_parallelism)
        return self

    def get_auto_watermark_interval(self) -> int:
        """Milliseconds; Flink's default where none is set."""
        interval: int | None = self._configuration.get(options.AUTO_WATERMARK_INTERVAL)
        return 200 if interval is None else interval

    def set_auto_watermark_interval(self, interval: DurationLike) -> ExecutionConfig:
        self._configuration.set(options.AUTO_WATERMARK_INTERVAL, to_millis(interval, "interval"))
        return self

    def get_global_job_parameters(self) -> dict[str, str]:
        """The job parameters, without their prefix."""
        parameters: dict[str, str] | None = self._configuration.get(options.GLOBAL_JOB_PARAMETERS)
        return (parameters or {}) | {
            key.removeprefix(JOB_PARAMETER_PREFIX): text
            for key, text in self._configuration.to_dict().items()
            if key.startswith(JOB_PARAMETER_PREFIX)
        }

    def set_global_job_parameters(self, global_job_parameters_dict: Mapping[str, str]) -> ExecutionConfig:
        """Replace all job parameters."""
        for key in list(self.get_global_job_parameters()):
            self._configuration.remove_config(JOB_PARAMETER_PREFIX + key)
        self._configuration.remove_config(options.GLOBAL_JOB_PARAMETERS.key)
        for key, value in global_job_parameters_dict.items():
            self._configuration.set_string(JOB_PARAMETER_PREFIX + key, str(value))
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecutionConfig) and self._configuration == other._configuration

    def __hash__(self) -> int:
        return hash(self._configuration)
