"""The settings that headwater knows. Flink's keys where Flink has the setting; `headwater.` for our own.

`docs/configuration.md` is made from this list, so the descriptions are for users.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from headwater.common.config.option import ConfigOption
from headwater.common.config.values import (
    choice_reader,
    read_boolean,
    read_duration_ms,
    read_float,
    read_integer,
    read_list,
    read_map,
    read_master,
    read_memory_bytes,
    read_text,
)


def _cores(_: Mapping[str, str]) -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _state_directory(environ: Mapping[str, str]) -> str:
    base = environ.get("XDG_STATE_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".local/state")
    return os.path.join(base, "headwater")


def _text(key: str, default: str | None, description: str, **more: Any) -> ConfigOption[str]:
    return ConfigOption(key, read_text, default, description, "text", **more)


def _integer(key: str, default: int | None, description: str, **more: Any) -> ConfigOption[int]:
    return ConfigOption(key, read_integer, default, description, "integer", **more)


def _number(key: str, default: float, description: str, **more: Any) -> ConfigOption[float]:
    return ConfigOption(key, read_float, default, description, "number", **more)


def _boolean(key: str, default: bool, description: str, **more: Any) -> ConfigOption[bool]:
    return ConfigOption(key, read_boolean, default, description, "boolean", **more)


def _duration(key: str, default_ms: int | None, description: str, **more: Any) -> ConfigOption[int]:
    """Values are milliseconds."""
    return ConfigOption(key, read_duration_ms, default_ms, description, "duration", **more)


def _choice(key: str, default: str, description: str, *choices: str, **more: Any) -> ConfigOption[str]:
    reader = choice_reader(*choices, synonyms=more.pop("synonyms", None))
    return ConfigOption(key, reader, default, description, " | ".join(choices), **more)


PARALLELISM = _integer(
    "parallelism.default",
    None,
    "Partitions of every operator that does not set its own.",
    minimum=1,
    maximum=32_768,
    default_from=_cores,
    default_text="number of cores",
)
MAX_PARALLELISM = _integer(
    "pipeline.max-parallelism",
    128,
    "Number of key groups: the most partitions that keyed state can ever be spread over. Fixed by the first "
    "checkpoint.",
    minimum=1,
    maximum=32_768,
)
PIPELINE_NAME = _text("pipeline.name", None, "Name of the job, unless execute() gives one.")
RUNTIME_MODE = _choice(
    "execution.runtime-mode",
    "STREAMING",
    "STREAMING, BATCH (bounded sources only; results once, at the end; no snapshots) or AUTOMATIC (BATCH if all "
    "sources are bounded).",
    "STREAMING",
    "BATCH",
    "AUTOMATIC",
)
OPERATOR_CHAINING = _boolean(
    "pipeline.operator-chaining.enabled",
    True,
    "Whether operators that need no shuffle between them run in one stage. Without, each step is a shuffle.",
    former_keys=("pipeline.operator-chaining",),
)
GLOBAL_JOB_PARAMETERS = ConfigOption(
    "pipeline.global-job-parameters",
    read_map,
    None,
    "Parameters that functions read from their RuntimeContext: key:value pairs separated by commas. One of them can "
    "also be set as pipeline.global-job-parameters.KEY.",
    "map",
)
AUTO_WATERMARK_INTERVAL = _duration(
    "pipeline.auto-watermark-interval",
    None,
    "Time between two epochs whose periodic watermarks go out; in the epochs between them event time stands still. "
    "With 0 it stands still until the input ends, save for watermarks that a generator emits for single records.",
    default_text="in every epoch, after every batch of records",
)

CHECKPOINTING_ENABLED = _boolean(
    "headwater.checkpointing.enabled",
    True,
    "Whether epochs end with a checkpoint. Without, a job that dies starts from the beginning.",
)
CHECKPOINT_DIRECTORY = _text(
    "execution.checkpointing.dir",
    None,
    "Where checkpoints go. It belongs to one job: started again on it, the job resumes.",
    default_text="a directory for this run under headwater.state.dir, removed when the job has finished",
    former_keys=("state.checkpoints.dir",),
)
CHECKPOINTING_INTERVAL = _duration(
    "execution.checkpointing.interval",
    None,
    "Time between two checkpoints. Output is visible, and a restart begins, at a checkpoint. One that is shorter than "
    "headwater.epoch.duration shortens the epochs.",
    default_text="every epoch",
)
CHECKPOINTING_MIN_PAUSE = _duration(
    "execution.checkpointing.min-pause",
    0,
    "Least time between the end of one checkpoint and the beginning of the next.",
)
CHECKPOINTING_TIMEOUT = _duration(
    "execution.checkpointing.timeout", 600_000, "A checkpoint that takes longer than this has failed."
)
TOLERABLE_FAILED_CHECKPOINTS = _integer(
    "execution.checkpointing.tolerable-failed-checkpoints",
    0,
    "How many checkpoints in a row may fail and only be logged. The next one that succeeds contains what they would "
    "have; one failure more counts as a failure of the job, with restart-strategy.type.",
    minimum=0,
)
CHECKPOINTING_MODE = _choice(
    "execution.checkpointing.mode",
    "EXACTLY_ONCE",
    "The guarantee asked for. AT_LEAST_ONCE is accepted and gets EXACTLY_ONCE, which costs no more here.",
    "EXACTLY_ONCE",
    "AT_LEAST_ONCE",
)
CHECKPOINTS_RETAINED = _integer(
    "execution.checkpointing.num-retained",
    3,
    "How many checkpoints are kept; older ones are deleted.",
    minimum=1,
    former_keys=("state.checkpoints.num-retained",),
)
CHECKPOINT_RETENTION = _choice(
    "execution.checkpointing.externalized-checkpoint-retention",
    "RETAIN_ON_CANCELLATION",
    "What happens to the checkpoints of a job that was cancelled.",
    "RETAIN_ON_CANCELLATION",
    "DELETE_ON_CANCELLATION",
    "NO_EXTERNALIZED_CHECKPOINTS",
)

SAVEPOINT_DIRECTORY = _text(
    "execution.checkpointing.savepoint-dir",
    None,
    "Where savepoints go when they are asked for without a directory.",
    former_keys=("state.savepoints.dir",),
)
RECOVERY_PATH = _text(
    "execution.state-recovery.path",
    None,
    "What to start from: a savepoint, or a job's checkpoint directory (its newest checkpoint; with @EPOCH an older one "
    "that it retains). Ignored once the job has a checkpoint of its own.",
    former_keys=("execution.savepoint.path",),
)
RECOVERY_CLAIM_MODE = _choice(
    "execution.state-recovery.claim-mode",
    "NO_CLAIM",
    "Whose the savepoint is after the start: NO_CLAIM leaves it alone, CLAIM deletes it after the job's first own "
    "checkpoint.",
    "NO_CLAIM",
    "CLAIM",
    former_keys=("execution.savepoint-restore-mode",),
)
IGNORE_UNCLAIMED_STATE = _boolean(
    "execution.state-recovery.ignore-unclaimed-state",
    False,
    "Drop state whose operator the job no longer has, instead of refusing to start.",
    former_keys=("execution.savepoint.ignore-unclaimed-state",),
)
UID_MAPPING = ConfigOption(
    "headwater.state-recovery.uid-mapping",
    read_map,
    None,
    "Operators, sources and sinks that have another uid than in the checkpoint: old:new pairs separated by commas.",
    "map",
)
STORAGE_OPTIONS = ConfigOption(
    "headwater.storage.options",
    read_map,
    None,
    "For checkpoints and savepoints at a URL: options of the fsspec file system, key:value pairs separated by commas. "
    "Credentials are better given as the store's own environment variables.",
    "map",
)
LOCAL_COPIES = _text(
    "execution.checkpointing.local-backup.dirs",
    None,
    "For checkpoints at a URL: a directory on each machine where slots keep copies of what they wrote, so that one "
    "that restarts on its machine need not read from the store.",
)

RESTART_STRATEGY = _choice(
    "restart-strategy.type",
    "fixed-delay",
    "What happens when an epoch fails for another reason than user code: try again after a fixed or a growing "
    "delay, as long as failures are rare enough, or fail at once. A slot that dies between two epochs fails none: it "
    "is started again, with any of these.",
    "fixed-delay",
    "exponential-delay",
    "failure-rate",
    "none",
    synonyms={"off": "none", "disable": "none"},
    former_keys=("restart-strategy",),
)
FIXED_DELAY_ATTEMPTS = _integer(
    "restart-strategy.fixed-delay.attempts",
    10,
    "Failures in a row after which the job fails; a completed epoch sets the count back.",
    minimum=0,
)
FIXED_DELAY = _duration("restart-strategy.fixed-delay.delay", 1_000, "Time between a failure and the next attempt.")
EXPONENTIAL_INITIAL_BACKOFF = _duration(
    "restart-strategy.exponential-delay.initial-backoff", 1_000, "Time between the first failure and the next attempt."
)
EXPONENTIAL_MAX_BACKOFF = _duration(
    "restart-strategy.exponential-delay.max-backoff", 60_000, "Longest time between a failure and the next attempt."
)
EXPONENTIAL_MULTIPLIER = _number(
    "restart-strategy.exponential-delay.backoff-multiplier",
    1.5,
    "By how much the delay grows with each failure.",
    minimum=1.0,
)
EXPONENTIAL_RESET_THRESHOLD = _duration(
    "restart-strategy.exponential-delay.reset-backoff-threshold",
    3_600_000,
    "Time without a failure after which delay and count start afresh.",
)
EXPONENTIAL_JITTER = _number(
    "restart-strategy.exponential-delay.jitter-factor",
    0.1,
    "Random share added to, or taken from, each delay.",
    minimum=0.0,
    maximum=1.0,
)
EXPONENTIAL_ATTEMPTS = _integer(
    "restart-strategy.exponential-delay.attempts-before-reset-backoff",
    None,
    "Failures, without a quiet reset-backoff-threshold between them, after which the job fails.",
    default_text="no limit",
    minimum=1,
)

FAILURE_RATE_MAX = _integer(
    "restart-strategy.failure-rate.max-failures-per-interval",
    1,
    "Failures within the interval that the job survives.",
    minimum=0,
)
FAILURE_RATE_INTERVAL = _duration(
    "restart-strategy.failure-rate.failure-rate-interval", 60_000, "The time in which failures are counted.", minimum=1
)
FAILURE_RATE_DELAY = _duration(
    "restart-strategy.failure-rate.delay", 1_000, "Time between a failure and the next attempt."
)

STATE_BACKEND = _choice(
    "state.backend.type",
    "hashmap",
    "Where keyed state lives: hashmap is Python objects in the memory of the slots; rocksdb is a database on their "
    "disks, for state larger than memory.",
    "hashmap",
    "rocksdb",
    synonyms={"heap": "hashmap", "jobmanager": "hashmap", "filesystem": "hashmap", "forst": "rocksdb"},
    former_keys=("state.backend",),
)

ROCKSDB_MEMORY = ConfigOption(
    "state.backend.rocksdb.memory.fixed-per-slot",
    read_memory_bytes,
    256 << 20,
    "Memory that the RocksDB state of one slot may use: caches, write buffers and entries kept as objects.",
    "memory size",
    default_text="256 mb",
)
ROCKSDB_DIRECTORY = _text(
    "state.backend.rocksdb.localdir",
    None,
    "Where slots keep their RocksDB files; a local disk.",
    default_text="the machine's directory for temporary files",
)
ROCKSDB_TIMERS = _choice(
    "state.backend.rocksdb.timer-service.factory",
    "rocksdb",
    "Where the timers of RocksDB state are: rocksdb keeps those that fire next in memory and the others on the disk; "
    "heap keeps all of them in memory.",
    "rocksdb",
    "heap",
)

MASTER = ConfigOption(
    "headwater.master",
    read_master,
    "local[*]",
    "Spark master: local[N], local-cluster[...], spark://host:port, yarn, k8s://... A Spark that the process has "
    "running already is used as it is. in-process: no Spark, the whole job runs in the process that starts it.",
    "text",
)
DRIVER_MEMORY = ConfigOption(
    "headwater.driver-memory",
    read_memory_bytes,
    None,
    "Heap of the JVM that Spark's driver (and with local[N] everything in Spark) runs in. State does not live there.",
    "memory size",
    minimum=256 * 2**20,
    default_text="chosen from the machine's memory",
)
EPOCH_DURATION = _duration(
    "headwater.epoch.duration",
    1_000,
    "How long an epoch should take: short for latency, long for throughput. Sources that let us choose are read just "
    "as much as fits.",
    minimum=1,
)
EPOCH_MIN_RECORDS = _integer(
    "headwater.epoch.min-records",
    1_000,
    "An epoch reads at least this many records per source, if they are there.",
    minimum=1,
)
EPOCH_MAX_RECORDS = _integer(
    "headwater.epoch.max-records", 5_000_000, "An epoch reads at most this many records per source.", minimum=1
)
EPOCH_ENGINE = _choice(
    "headwater.epoch.engine",
    "auto",
    "How epochs run on Spark. `shuffle`: each is a Spark job, for volume. `resident`: one Spark task stays and takes "
    "epochs through all stages, for milliseconds; it needs a core of its own. `auto`: resident while epochs are small.",
    "auto",
    "resident",
    "shuffle",
)
SLOT_HEALTH = _duration(
    "headwater.slot.health-check",
    10_000,
    "How often a slot at work is asked whether it lives, and how long it may take to answer. One that does not is "
    "replaced, as if it had been killed. So is a Python worker of Spark that gives no sign of life for so long. One "
    "that computes or waits, however long, is not.",
)
BAD_TIMESTAMPS_POLICY = _choice(
    "headwater.bad-timestamps",
    "fail",
    "A record whose timestamp is None, not a number, negative or too far ahead: fail the job, or send the record to "
    "the side output BAD_TIMESTAMPS (of headwater.datastream.output_tag) of the stream that got its timestamps there. "
    "If nobody reads that, the record is dropped.",
    "fail",
    "side-output",
)
MAX_TIMESTAMP_AHEAD = _duration(
    "headwater.timestamps.max-ahead",
    365 * 86_400_000,
    "How far ahead of processing time a timestamp may be before it counts as bad.",
)
TYPE_CHECK = _boolean(
    "headwater.type-check", True, "Whether records, keys and state are checked against the types declared for them."
)
STATE_DIRECTORY = _text(
    "headwater.state.dir",
    None,
    "Where headwater keeps what belongs to the user: checkpoints of jobs that name no directory.",
    default_from=_state_directory,
    default_text="$XDG_STATE_HOME/headwater, else ~/.local/state/headwater",
)
LOG_LEVEL = _choice(
    "headwater.log-level",
    "WARN",
    "How much headwater and Spark log.",
    "DEBUG",
    "INFO",
    "WARN",
    "ERROR",
    "OFF",
    synonyms={"warning": "WARN", "critical": "ERROR", "fatal": "ERROR"},
)
PYTHON_FILES = ConfigOption(
    "headwater.python.files",
    read_list,
    None,
    "Python files, directories or zips that user code imports; they are sent to the executors.",
    "list",
    former_keys=("python.files",),
)
PYTHON_REQUIREMENTS = _text(
    "headwater.python.requirements",
    None,
    "A requirements.txt that must be installed where user code runs.",
    former_keys=("python.requirements",),
)

OPTIONS: tuple[ConfigOption[Any], ...] = (
    PARALLELISM,
    MAX_PARALLELISM,
    PIPELINE_NAME,
    RUNTIME_MODE,
    OPERATOR_CHAINING,
    GLOBAL_JOB_PARAMETERS,
    AUTO_WATERMARK_INTERVAL,
    CHECKPOINTING_ENABLED,
    CHECKPOINT_DIRECTORY,
    CHECKPOINTING_INTERVAL,
    CHECKPOINTING_MIN_PAUSE,
    CHECKPOINTING_TIMEOUT,
    TOLERABLE_FAILED_CHECKPOINTS,
    CHECKPOINTING_MODE,
    CHECKPOINTS_RETAINED,
    CHECKPOINT_RETENTION,
    SAVEPOINT_DIRECTORY,
    RECOVERY_PATH,
    RECOVERY_CLAIM_MODE,
    IGNORE_UNCLAIMED_STATE,
    UID_MAPPING,
    STORAGE_OPTIONS,
    LOCAL_COPIES,
    RESTART_STRATEGY,
    FIXED_DELAY_ATTEMPTS,
    FIXED_DELAY,
    EXPONENTIAL_INITIAL_BACKOFF,
    EXPONENTIAL_MAX_BACKOFF,
    EXPONENTIAL_MULTIPLIER,
    EXPONENTIAL_RESET_THRESHOLD,
    EXPONENTIAL_JITTER,
    EXPONENTIAL_ATTEMPTS,
    FAILURE_RATE_MAX,
    FAILURE_RATE_INTERVAL,
    FAILURE_RATE_DELAY,
    STATE_BACKEND,
    ROCKSDB_MEMORY,
    ROCKSDB_DIRECTORY,
    ROCKSDB_TIMERS,
    MASTER,
    DRIVER_MEMORY,
    EPOCH_DURATION,
    EPOCH_MIN_RECORDS,
    EPOCH_MAX_RECORDS,
    EPOCH_ENGINE,
    SLOT_HEALTH,
    BAD_TIMESTAMPS_POLICY,
    MAX_TIMESTAMP_AHEAD,
    TYPE_CHECK,
    STATE_DIRECTORY,
    LOG_LEVEL,
    PYTHON_FILES,
    PYTHON_REQUIREMENTS,
)
"""All of them, in the order in which documentation shows them."""
