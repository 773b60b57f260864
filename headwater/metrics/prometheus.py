"""Prometheus' text format, with the names and labels of Flink's reporter. Pure: a job's figures in, text out.

All metrics are gauges, as Flink's are: a job that goes back to its last checkpoint takes back what it had counted since
then, and a Prometheus counter that falls would look like a restart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[str, dict[str, str], float]
"""(metric, labels, value)"""

_JOB = "flink_jobmanager_job_"
_TASK = "flink_taskmanager_job_task_"
_OPERATOR = "flink_taskmanager_job_task_operator_"


def exposition(jobs: Iterable[tuple[str, str, Mapping[str, Any]]]) -> str:
    """Return the figures of jobs, each (job id, job name, answer to the control verb `metrics`), as one page."""
    families: dict[str, list[tuple[dict[str, str], float]]] = {}
    for job_id, name, figures in jobs:
        for metric, labels, value in samples(job_id, name, figures):
            families.setdefault(metric, []).append((labels, value))
    lines = []
    for metric in sorted(families):
        lines.append(f"# TYPE {metric} gauge")
        lines += [f"{metric}{_labels(labels)} {_number(value)}" for labels, value in families[metric]]
    return "".join(f"{line}\n" for line in lines)


def samples(job_id: str, job_name: str, figures: Mapping[str, Any]) -> Iterator[Sample]:
    """Yield the samples of one job: of the job itself, of subtasks, of operators in them."""
    job = {"job_id": job_id, "job_name": job_name}
    for name, value in figures.get("job", {}).items():
        yield _JOB + metric_name(name), job, value
    for vertex_id, vertex in figures.get("vertices", {}).items():
        for index, subtask in enumerate(vertex["subtasks"]):
            labels = job | {"task_id": vertex_id, "task_name": vertex["name"], "subtask_index": str(index)}
            for name, value in subtask.items():
                operator, dot, metric = name.partition(".")
                if dot:
                    yield _OPERATOR + metric_name(metric), labels | {"operator_name": operator}, value
                else:
                    yield _TASK + metric_name(name), labels, value
        yield from _split_samples(job | {"task_id": vertex_id, "task_name": vertex["name"]}, vertex)


def _split_samples(labels: Mapping[str, str], vertex: Mapping[str, Any]) -> Iterator[Sample]:
    """Yield the gauges of a source's splits. Their names are not the subtasks', so that sums count nothing twice."""
    for split in vertex.get("splits", ()):
        where = {**labels, "subtask_index": str(split["subtask"]), "split": split["split"]}
        for name, value in split.items():
            if name not in ("split", "subtask"):
                yield f"{_TASK}split_{metric_name(name)}", where, value


def metric_name(name: str) -> str:
    """Return `name` with an underscore in place of each character that Prometheus does not allow, as Flink does."""
    return re.sub(r"[^a-zA-Z0-9:_]", "_", name)


def _labels(labels: Mapping[str, str]) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{inside}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    return repr(value)
