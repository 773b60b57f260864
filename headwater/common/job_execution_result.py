"""The result of a finished job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.common.job_id import JobID


class JobExecutionResult:
    """Identity, run time and accumulators of a finished job."""

    def __init__(self, job_id: JobID, net_runtime_ms: int, accumulators: Mapping[str, Any] | None = None) -> None:
        self._job_id = job_id
        self._net_runtime_ms = net_runtime_ms
        self._accumulators = dict(accumulators or {})

    def get_job_id(self) -> JobID:
        return self._job_id

    def get_net_runtime(self) -> int:
        """Milliseconds from the start of the first epoch to the last commit; without start-up of Spark."""
        return self._net_runtime_ms

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The value of one accumulator, or None if the job had none of that name."""
        return self._accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        return dict(self._accumulators)

    def __str__(self) -> str:
        lines = [
            "Program execution finished",
            f"Job with JobID {self._job_id} has finished.",
            f"Job Runtime: {self._net_runtime_ms} ms",
        ]
        if self._accumulators:
            lines.append("Accumulator Results:")
            lines += [f"- {name}: {value}" for name, value in sorted(self._accumulators.items())]
        return "\n".join(lines) + "\n"
