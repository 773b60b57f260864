"""The command `headwater`, also `python -m headwater`."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pkgutil import resolve_name
from typing import cast

from headwater import __version__
from headwater.cli.broken_pipe import leave_quietly, nobody_reads
from headwater.cli.usage import FAILURE, INTERRUPTED, USAGE_ERROR, UsageError, nearest
from headwater.common.errors import HeadwaterError

VERBS = {
    "run": ("headwater.cli.run:run", "run a program; its imports may say headwater or pyflink"),
    "sql": ("headwater.cli.sql.client:sql", "the SQL client: a prompt, a file (-f) or a pipe"),
    "list": (
        "headwater.cli.list_jobs:list_jobs",
        "the running jobs: epoch, rate, uptime, parallelism, checkpoint directory",
    ),
    "stop": ("headwater.cli.stop:stop", "end a running job with a savepoint"),
    "cancel": ("headwater.cli.stop:cancel", "end a running job as it is; its checkpoints stay"),
    "info": ("headwater.cli.info:info", "the plan of a program, as JSON; nothing is run"),
    "logs": ("headwater.cli.logs:logs", "what a job's driver printed"),
    "top": ("headwater.cli.top:top", "the running jobs, live in the terminal"),
    "rescale": ("headwater.cli.rescale:rescale", "another parallelism for a running job, between two epochs"),
    "checkpoint": ("headwater.cli.checkpoint:checkpoint", "complete a checkpoint of a running job now"),
    "checkpoints": (
        "headwater.cli.checkpoints:checkpoints",
        "how long a job's checkpoints take and how large they are; which are retained",
    ),
    "state": ("headwater.cli.state:state", "read the state of a running job: ls, get, scan, watch, sql"),
    "why": ("headwater.cli.why:why", "why a running job emits nothing: the cause, and the cure"),
    "savepoint": (
        "headwater.cli.savepoint:savepoint",
        "trigger, list, inspect, dispose; compare one with a program before a start",
    ),
    "dead-letters": (
        "headwater.cli.dead_letters:dead_letters",
        "list, show and replay the records that a job refused",
    ),
    "server": ("headwater.cli.server:server", "take programs, run each in its own process, answer over HTTP"),
    "shadow": (
        "headwater.cli.shadow:shadow",
        "run new code from a savepoint, its output diverted, and compare it with the old code's",
    ),
    "config": (
        "headwater.cli.config:config",
        "list the settings: key, type, default, environment variable, what it does",
    ),
    "demo": (
        "headwater.demo.__main__:main",
        "two million card payments, one slot killed half way, nothing lost",
    ),
}
"""{verb: (function, help)}. A verb is imported when it is called: --version must not wait for Spark."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0, 1 (failed), 2 (wrong usage), 130 (Ctrl-C) or 141 (nobody reads the output any more).
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _dispatch(given)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        if nobody_reads():
            return leave_quietly()
        raise
    except UsageError as error:
        print(error, file=sys.stderr)
        return USAGE_ERROR
    except HeadwaterError as error:
        print(f"headwater {given[0]}: {error}", file=sys.stderr)
        return FAILURE
    except KeyboardInterrupt:
        return INTERRUPTED


def _dispatch(given: list[str]) -> int:
    if not given or given[0] in ("-h", "--help") or given == ["help"]:
        print(_help())
        return 0 if given else USAGE_ERROR
    if given[0] == "help":
        given = [*given[1:], "--help"]
    verb, *rest = given
    if verb in ("-V", "--version", "version"):
        print(_version())
        return 0
    if verb not in VERBS:
        kind = "option" if verb.startswith("-") else "command"
        hint = nearest(verb, [*VERBS, "--version", "--help"])
        if verb.endswith(".py"):
            hint = f"; did you mean 'headwater run {verb}'?"
        raise UsageError(f"headwater: unknown {kind} '{verb}'{hint or '; see headwater --help'}")
    function, _ = VERBS[verb]
    return cast(int, resolve_name(function)(rest))


def _help() -> str:
    verbs = "\n".join(f"  {name:<12}  {text}" for name, (_, text) in VERBS.items())
    return (
        "usage: headwater COMMAND ...\n\n"
        "Flink's stateful stream processing in Python, executed by Spark.\n\n"
        f"commands:\n{verbs}\n\n"
        "options:\n"
        "  --version    the versions of headwater, Python and PySpark\n"
        "  --help       this text; also after a command"
    )


def _version() -> str:
    try:
        pyspark = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        pyspark = "missing"
    return f"headwater {__version__} (Python {platform.python_version()}, PySpark {pyspark})"


if __name__ == "__main__":
    sys.exit(main())
