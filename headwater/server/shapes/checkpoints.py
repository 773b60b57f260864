"""Flink's JSON of checkpoints. A checkpoint's id is its epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwater.common.config_options import (
    CHECKPOINT_RETENTION,
    CHECKPOINTING_INTERVAL,
    CHECKPOINTING_MIN_PAUSE,
    CHECKPOINTING_MODE,
    CHECKPOINTING_TIMEOUT,
    STATE_BACKEND,
    TOLERABLE_FAILED_CHECKPOINTS,
    ConfigOption,
)
from headwater.server.shapes.job import Description
from headwater.server.shapes.vertex import percentile

Stats = Mapping[str, Any]
"""One entry of a job's answer to `checkpoints`."""

_SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def statistics(
    history: Sequence[Stats], job: Description, counts: Mapping[str, float], progress: Mapping[str, Any]
) -> dict[str, Any]:
    """`/jobs/:jobid/checkpoints`. `counts` are the job's own; the summary is of the checkpoints that it remembers.

    `progress` tells of the last savepoint and the last restore.
    """
    completed = [each for each in history if each["status"] == "completed"]
    failed = [each for each in history if each["status"] != "completed"]
    return {
        "counts": {
            "restored": counts.get("numRewinds", 0),
            "total": counts.get("totalNumberOfCheckpoints", len(history)),
            "in_progress": counts.get("numberOfInProgressCheckpoints", 0),
            "completed": counts.get("numberOfCompletedCheckpoints", len(completed)),
            "failed": counts.get("numberOfFailedCheckpoints", len(failed)),
        },
        "summary": {
            "checkpointed_size": summary([each["delta_bytes"] for each in completed]),
            "state_size": summary([each["full_bytes"] for each in completed]),
            "end_to_end_duration": summary([each["duration_ms"] for each in completed]),
            **{
                name: summary([0] * len(completed))
                for name in ("alignment_buffered", "processed_data", "persisted_data")
            },
        },
        "latest": {
            "completed": _checkpoint(completed[-1], job) if completed else None,
            "savepoint": _savepoint(progress.get("last_savepoint"), job),
            "failed": _checkpoint(failed[-1], job) if failed else None,
            "restored": _restored(progress.get("last_restore")),
        },
        "history": [_checkpoint(each, job) for each in reversed(history)],
    }


def _savepoint(made: Stats | None, job: Description) -> dict[str, Any] | None:
    if made is None:
        return None
    kind = {"is_savepoint": True, "checkpoint_type": "SAVEPOINT", "savepointFormat": "CANONICAL"}
    return _checkpoint(made, job) | kind | {"external_path": made["path"]}


def _restored(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "id": found["epoch"],
        "restore_timestamp": found["restored_ms"],
        "is_savepoint": found["is_savepoint"],
        "external_path": found["path"],
    }


def summary(values: Sequence[float]) -> dict[str, Any]:
    """Flink's statistics; without values its percentiles are "NaN"."""
    ordered = sorted(values)
    if not ordered:
        return {"min": 0, "max": 0, "avg": 0, **dict.fromkeys(_SHARES, "NaN")}
    return {
        "min": int(ordered[0]),
        "max": int(ordered[-1]),
        "avg": int(sum(ordered) / len(ordered)),
        **{name: float(percentile(ordered, share)) for name, share in _SHARES.items()},
    }


def details(stats: Stats, job: Description) -> dict[str, Any]:
    """`/jobs/:jobid/checkpoints/details/:checkpointid`, of a job's answer to `checkpoint`."""
    return _checkpoint(stats, job) | {
        "tasks": {vertex["id"]: _task(stats, vertex["subtasks"]) for vertex in stats["vertices"]}
    }


def subtask_details(stats: Stats, vertex: Mapping[str, Any]) -> dict[str, Any]:
    """`/jobs/:jobid/checkpoints/details/:checkpointid/subtasks/:vertexid`."""
    parts = vertex["subtasks"]
    nothing = summary([0] * len(parts))
    return {
        **_task(stats, parts),
        "summary": {
            "checkpointed_size": summary([part["delta_bytes"] for part in parts]),
            "state_size": summary([part["full_bytes"] for part in parts]),
            "end_to_end_duration": summary([_part_ms(part) for part in parts]),
            "checkpoint_duration": {
                "sync": summary([part["sync_ms"] for part in parts]),
                "async": summary([part["async_ms"] for part in parts]),
            },
            "alignment": dict.fromkeys(("buffered", "processed", "persisted", "duration"), nothing),
            "start_delay": nothing,
        },
        "subtasks": [
            {
                "className": stats["status"],
                "index": part["index"],
                "ack_timestamp": stats["triggered_ms"] + _part_ms(part),
                "end_to_end_duration": _part_ms(part),
                "checkpointed_size": part["delta_bytes"],
                "state_size": part["full_bytes"],
                "checkpoint": {"sync": int(part["sync_ms"]), "async": int(part["async_ms"])},
                "alignment": dict.fromkeys(("buffered", "processed", "persisted", "duration"), 0),
                "start_delay": 0,
                "unaligned_checkpoint": False,
                "aborted": stats["status"] != "completed",
                "status": stats["status"],
            }
            for part in parts
        ],
    }


def _part_ms(part: Mapping[str, Any]) -> int:
    return int(part["sync_ms"] + part["async_ms"])


def _checkpoint(stats: Stats, job: Description) -> dict[str, Any]:
    done = stats["status"] == "completed"
    ended = int(stats["triggered_ms"] + stats["duration_ms"])
    found = {
        "className": "completed" if done else "failed",
        "id": stats["epoch"],
        "status": "COMPLETED" if done else "FAILED",
        "is_savepoint": False,
        "savepointFormat": None,
        "trigger_timestamp": stats["triggered_ms"],
        "latest_ack_timestamp": ended,
        "checkpointed_size": stats["delta_bytes"],
        "state_size": stats["full_bytes"],
        "end_to_end_duration": int(stats["duration_ms"]),
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": len(stats["parts"]),
        "num_acknowledged_subtasks": len(stats["parts"]) if done else 0,
        "checkpoint_type": "CHECKPOINT",
        "tasks": {},
    }
    if done:
        return found | {"external_path": f"{job.get('checkpoint_dir', '')}@{stats['epoch']}", "discarded": False}
    return found | {"failure_timestamp": ended, "failure_message": stats["reason"] or ""}


def _task(stats: Stats, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    done = stats["status"] == "completed"
    slowest = max((_part_ms(part) for part in parts), default=0)
    return {
        "id": stats["epoch"],
        "status": "COMPLETED" if done else "FAILED",
        "latest_ack_timestamp": stats["triggered_ms"] + slowest,
        "checkpointed_size": sum(part["delta_bytes"] for part in parts),
        "state_size": sum(part["full_bytes"] for part in parts),
        "end_to_end_duration": slowest,
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": len(parts),
        "num_acknowledged_subtasks": len(parts) if done else 0,
    }


def config(job: Description) -> dict[str, Any]:
    """`/jobs/:jobid/checkpoints/config`. An interval of 0: a checkpoint at every epoch."""
    settings = job["config"]

    def value(option: ConfigOption[Any]) -> Any:
        return option.parse(settings[option.key]) if option.key in settings else option.default

    retention = value(CHECKPOINT_RETENTION)
    rocksdb = value(STATE_BACKEND) == "rocksdb"
    return {
        "mode": value(CHECKPOINTING_MODE).lower(),
        "interval": value(CHECKPOINTING_INTERVAL) or 0,
        "timeout": value(CHECKPOINTING_TIMEOUT),
        "min_pause": value(CHECKPOINTING_MIN_PAUSE),
        "max_concurrent": 1,
        "externalization": {
            "enabled": retention != "NO_EXTERNALIZED_CHECKPOINTS",
            "delete_on_cancellation": retention != "RETAIN_ON_CANCELLATION",
        },
        "state_backend": "EmbeddedRocksDBStateBackend" if rocksdb else "HashMapStateBackend",
        "checkpoint_storage": "FileSystemCheckpointStorage",
        "unaligned_checkpoints": False,
        "tolerable_failed_checkpoints": value(TOLERABLE_FAILED_CHECKPOINTS),
        "aligned_checkpoint_timeout": 0,
        "checkpoints_after_tasks_finish": True,
        "state_changelog_enabled": False,
        "changelog_periodic_materialization_interval": 0,
        "changelog_storage": "memory",
    }
