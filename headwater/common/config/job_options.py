"""The settings that headwater knows. Flink's keys where Flink has the setting; `headwater.` for our own.

This is the only place that spells a key, a default or a limit. Everything else refers to the option: the runtime,
`headwater config` and `docs/configuration.md`, so the descriptions are for users.
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
PIPELINE_NAME = _text("pipeline.name", "Streaming Job", "Name of the job, unless execute() gives one.")
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
    "Time between two checkpoints. Output becomes visible at a checkpoint, and a restart begins at one. An interval "
    "shorter than headwater.epoch.duration shortens the epochs.",
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
    "have. One more failure is a failure of the job, for restart-strategy.type.",
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
    "Who owns the savepoint after the start: NO_CLAIM leaves it alone, CLAIM deletes it after the job's first own "
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
    "delay, as long as failures are rare enough, or fail at once. A slot that dies between two epochs fails no epoch: "
    "it is started again with any of these.",
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
    minimum=8 << 20,
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
    minimum=256 << 20,
    default_text="chosen from the machine's memory",
)
EPOCH_DURATION = _duration(
    "headwater.epoch.duration",
    1_000,
    "How long an epoch should take: short for latency, long for throughput. It reads as many records as fit, from all "
    "sources except DataFrames.",
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
    "How often a busy slot is asked for a sign of life, and how long it may take to answer. A slot that does not "
    "answer is replaced, as if it had been killed; so is a Python worker of Spark without a sign of life for so long. "
    "One that computes or waits gives signs of life, however long it takes.",
)
BAD_TIMESTAMPS_POLICY = _choice(
    "headwater.bad-timestamps",
    "fail",
    "A record whose timestamp is None, not a number, negative or too far ahead: fail the job, or send the record to "
    "the side output BAD_TIMESTAMPS (of headwater.datastream.output_tag) of the stream that got its timestamps there. "
    "If nothing reads that, the record is dropped.",
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
DEAD_LETTERS_DIRECTORY = _text(
    "headwater.dead-letters.dir",
    None,
    "Records that a source's format, a function or a sink refuses go to files below this directory, in the epoch that "
    "refused them, and the job goes on. Without it (and without with_dead_letters) such a record fails the job.",
)
DEAD_LETTERS_PER_MINUTE = _integer(
    "headwater.dead-letters.max-per-minute",
    None,
    "More dead letters within a minute fail the job. The epoch that has them is not committed.",
    minimum=0,
)
DEAD_LETTERS_PERCENT = ConfigOption(
    "headwater.dead-letters.max-percent",
    read_float,
    None,
    "A larger share of dead letters among the records of the last minute (if there were 100) fails the job.",
    "number",
    minimum=0,
    maximum=100,
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
FIXED_JOB_ID = _text(
    "$internal.pipeline.job-id",
    None,
    "The id of the job, 32 hexadecimal digits, if its checkpoint directory does not have another one already. A job "
    "server sets it.",
)
SERVER_STORAGE = _text(
    "high-availability.storageDir",
    None,
    "Where headwater server keeps submissions, logs, history and its jobs' checkpoints. Servers with the same one "
    "stand by for each other.",
    default_from=lambda environ: os.path.join(_state_directory(environ), "server"),
    default_text="server in headwater.state.dir's default",
)
JOB_HISTORY_SIZE = _integer(
    "jobstore.max-capacity",
    100,
    "How many jobs that have ended a server remembers; older ones are forgotten, with the checkpoints of those that "
    "finished.",
    minimum=1,
)
DRIVER_RESTARTS = _integer(
    "headwater.server.driver-restarts",
    10,
    "How often in a row a server starts a driver again that died (not one whose program failed); the count starts anew "
    "when a driver has lived for an hour.",
    minimum=0,
)

REST_ENABLED = _boolean(
    "headwater.rest.enabled",
    False,
    "Whether a job serves the REST API and the dashboard while it runs. `headwater run` turns it on; a program that is "
    "run as plain Python opens no port unless this is set.",
)
REST_ADDRESS = _text(
    "rest.address",
    None,
    "Host of the server that the command line asks, at rest.port, as if -m named it. -m local asks the jobs of this "
    "machine all the same.",
)
REST_PORT = _text(
    "rest.port",
    "8081",
    "Port of the REST API and the dashboard: one, a range such as 8081-8090, or 0 for any. If one port is given and "
    "taken, a job takes the next free one.",
    former_keys=("rest.bind-port", "web.port", "jobmanager.web.port"),
)
REST_BIND_ADDRESS = _text(
    "rest.bind-address",
    "127.0.0.1",
    "Address that the REST API listens on. One that other machines can reach needs headwater.server.token.",
)
REST_MAX_CONTENT = ConfigOption(
    "rest.server.max-content-length",
    read_memory_bytes,
    100 << 20,
    "Largest request, and so the largest program that can be uploaded.",
    "memory size",
    minimum=1 << 10,
)
UPLOAD_DIRECTORY = _text(
    "web.upload.dir",
    None,
    "Where a session server keeps uploaded programs. Only its user may enter it.",
    default_text="programs under headwater.state.dir",
)
SERVER_TOKEN = _text(
    "headwater.server.token",
    None,
    "Token that opens every route of the REST API: clients send it as Authorization: Bearer. Better kept in the "
    "environment or in headwater.server.token-file than on a command line.",
)
SERVER_TOKEN_FILE = _text(
    "headwater.server.token-file",
    None,
    "A file with the token of headwater.server.token. Only the server's user may read it.",
)
JOB_TOKEN = _text(
    "headwater.job.token",
    None,
    "Token that opens this job's routes, and no others, at any server that shows the job. Without it, or the server's "
    "token, nobody reads or operates the job over REST.",
)
SERVER_TLS_CERT = _text(
    "headwater.server.tls-cert", None, "A file with the certificate (chain) to serve HTTPS with; needs the key, too."
)
SERVER_TLS_KEY = _text("headwater.server.tls-key", None, "A file with the private key of the certificate.")
SERVER_ALLOWED_HOSTS = ConfigOption(
    "headwater.server.allowed-hosts",
    read_list,
    None,
    "Host names, besides localhost, under which a server on a loopback address may be asked: a proxy's.",
    "list",
)

# -- tables and SQL

LOCAL_TIME_ZONE = _text(
    "table.local-time-zone",
    "UTC",
    "Time zone of SQL: in which TIMESTAMP_LTZ values are shown and days begin. A name such as Europe/Berlin.",
)

STATE_TTL = _duration(
    "table.exec.state.ttl",
    0,
    "How long SQL on streams keeps the state of a key that does not change. 0: for ever. Windows need none: time "
    "closes them.",
)
IDLE_TIMEOUT = _duration(
    "table.exec.source.idle-timeout",
    0,
    "A split of a SQL source that gives no row for so long does not hold the watermark back. 0: it does.",
)
LATE_ROWS_TABLE = _text(
    "headwater.sql.late-rows-table",
    "",
    "A table that gets the rows which SQL on streams drops because they are late: see docs/sql/streaming.md. "
    "They are counted either way.",
)

OPTIONS: tuple[ConfigOption[Any], ...] = tuple(each for each in globals().values() if isinstance(each, ConfigOption))
"""All options above, in the order in which documentation shows them."""
