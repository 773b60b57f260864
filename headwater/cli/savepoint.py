"""`headwater savepoint`: make savepoints, look at them, compare one with a program, throw one away."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence

from headwater.checkpoint.savepoint.catalogue import catalogue
from headwater.checkpoint.savepoint.compatibility import Finding, ProgramFacts, Verdict, compare, rename_facts
from headwater.checkpoint.savepoint.history import retained_checkpoints
from headwater.checkpoint.savepoint.listing import savepoints_in
from headwater.checkpoint.savepoint.savepoint import Savepoint, dispose_savepoint, open_savepoint, write_savepoint
from headwater.checkpoint.start.decision import Refuse, renames
from headwater.checkpoint.storage.base import is_remote, local_path
from headwater.cli.program_plan import PlannedJob, plan_of_program
from headwater.cli.run_arguments import parse_run_arguments
from headwater.cli.running_jobs import add_job_arguments, find_job, run_directory
from headwater.cli.stop import absolute
from headwater.cli.stored_path import stored_path
from headwater.cli.table import print_table, utc
from headwater.cli.usage import FAILURE, Parser, UsageError, nearest
from headwater.common.config_options import IGNORE_UNCLAIMED_STATE, UID_MAPPING
from headwater.common.errors import CheckpointError, HeadwaterError, StorageError
from headwater.runtime.job.control_client import ask
from headwater.runtime.program_states import program_facts

_HEADERS = {
    "diff": ("UID", "STATE", "VERDICT", "DETAIL"),
    "inspect": ("UID", "OPERATOR", "STATE", "KIND", "VERSION", "ENTRIES", "BYTES"),
    "list": ("PATH", "JOB", "EPOCH", "CREATED (UTC)", "BYTES"),
}


def savepoint(arguments: Sequence[str]) -> int:
    """Run one of the verbs below and return the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_HELP)
        return 0 if arguments else 2
    verb, *rest = arguments
    if verb not in _VERBS:
        raise UsageError(f"headwater savepoint: unknown command '{verb}'{nearest(verb, _VERBS) or _SEE_HELP}")
    try:
        return _VERBS[verb](rest)
    except HeadwaterError as error:
        print(f"headwater savepoint {verb}: {error}", file=sys.stderr)
        return FAILURE


def _diff(arguments: Sequence[str]) -> int:
    """0: everything finds its place. 1: something is lost, incompatible, or cannot be said."""
    if not arguments or arguments[0].startswith("-"):
        _parser("diff", _DIFF, "SAVEPOINT").parse_args(arguments[:1])
    path, *rest = arguments
    if not rest:
        raise UsageError("headwater savepoint diff: no program given; expected SAVEPOINT program.py")
    program_arguments = parse_run_arguments(rest, "headwater savepoint diff")
    opened = open_savepoint(stored_path(path, program_arguments.settings))
    with contextlib.redirect_stdout(sys.stderr):  # what the program prints is not part of the answer
        job, exit_code = plan_of_program(program_arguments)
        if job is None:
            return exit_code
        program = program_facts(job.plan)
        findings = compare(rename_facts(catalogue(opened), _renames(opened, job, program)), program)
    manifest = opened.manifest
    kind = "savepoint" if opened.is_savepoint else "checkpoint"
    print(f"{kind} of job '{manifest.job_name}', epoch {manifest.epoch}; program's job '{job.plan.name}'\n")
    _print_table("diff", [(each.uid, each.state, each.verdict.value, each.detail) for each in findings])
    print(f"\n{_summary(findings)}")
    return FAILURE if any(each.verdict.stops for each in findings) else 0


def _renames(opened: Savepoint, job: PlannedJob, program: ProgramFacts) -> Mapping[str, str]:
    """What the job's uid mapping would rename at its start. A mapping that the start would refuse is an error."""
    mapping = job.configuration.get(UID_MAPPING, {})
    wanted = {*program.operators, *program.sources, *program.sinks}
    found = renames(opened.manifest, mapping, wanted, f"{opened.path}, epoch {opened.manifest.epoch},")
    if isinstance(found, Refuse):
        raise CheckpointError(found.reason)
    return found


def _summary(findings: Sequence[Finding]) -> str:
    counts = {verdict: sum(each.verdict is verdict for each in findings) for verdict in Verdict}
    text = ", ".join(f"{number} {verdict.value}" for verdict, number in counts.items() if number) or "no state at all"
    advice: list[str] = []
    if counts[Verdict.LOST]:
        advice.append(
            f"an operator or source that is gone is dropped only with {IGNORE_UNCLAIMED_STATE.key}=true (headwater run "
            f"-n), and found under another uid with {UID_MAPPING.key}=old:new"
        )
    if counts[Verdict.INCOMPATIBLE]:
        advice.append("the job would refuse to start")
    return "; ".join([text, *advice])


def _inspect(arguments: Sequence[str]) -> int:
    path = _parser("inspect", _INSPECT, "SAVEPOINT").parse_args(list(arguments)).SAVEPOINT
    opened = open_savepoint(stored_path(path))
    facts = catalogue(opened)
    manifest = opened.manifest
    kind = "savepoint" if opened.is_savepoint else "checkpoint"
    print(
        f"{kind} of job '{manifest.job_name}' ({manifest.job_id})\n"
        f"epoch {manifest.epoch}, {utc(manifest.created_ms)} UTC, max parallelism {manifest.max_parallelism}, "
        f"{len(manifest.partitions)} partitions, {len(manifest.sources)} sources\n"
    )
    rows = [
        (
            state.uid,
            facts.operators.get(state.uid, ""),
            state.name,
            state.kind,
            "" if state.layout is None else str(state.layout.version),
            f"{state.entries:,}",
            f"{state.bytes:,}",
        )
        for state in facts.states
    ]
    _print_table("inspect", rows)
    return 0


def _list(arguments: Sequence[str]) -> int:
    directory = _parser("list", _LIST, "DIR").parse_args(list(arguments)).DIR
    rows: list[tuple[str, ...]] = [
        (each.path, each.info.job_name, str(each.info.epoch), utc(each.info.created_ms), f"{each.info.bytes:,}")
        if each.info is not None
        else (each.path, "", "", "", each.problem)
        for each in savepoints_in(stored_path(directory))
    ]
    if not rows:
        rows = _checkpoints_in(directory)
    _print_table("list", rows)
    return 0


def _checkpoints_in(directory: str) -> list[tuple[str, ...]]:
    """Those that a job retains, if it is a job's directory."""
    try:
        found = retained_checkpoints(stored_path(directory))
    except StorageError:
        raise
    except CheckpointError:
        exists = is_remote(directory) or local_path(directory).exists()
        what = "has neither savepoints nor checkpoints" if exists else "does not exist"
        raise CheckpointError(
            f"{directory} {what}; expected a directory with savepoints, or the checkpoint directory of a job"
        ) from None
    return [
        (
            str(each.path),
            each.job_name,
            str(each.epoch),
            utc(each.created_ms) if not each.problem else "",
            each.problem or f"{each.full_bytes:,}",
        )
        for each in found
    ]


def _trigger(arguments: Sequence[str]) -> int:
    """Returns when the savepoint is there; the job has gone on meanwhile."""
    parser = Parser(prog="headwater savepoint trigger", description=_TRIGGER)
    add_job_arguments(parser)
    parser.add_argument("directory", metavar="DIR", nargs="?", help="default: execution.checkpointing.savepoint-dir")
    given = parser.parse_args(list(arguments))
    directory = run_directory(given.state_dir)
    card = find_job(directory, given.job)
    print(ask(directory, card, "savepoint", directory=absolute(given.directory)))
    return 0


def _copy(arguments: Sequence[str]) -> int:
    """A job that retains the checkpoint may delete it meanwhile: then nothing is at the new place."""
    parser = _parser("copy", _COPY, "SAVEPOINT")
    parser.add_argument("NEW")
    given = parser.parse_args(list(arguments))
    opened = open_savepoint(stored_path(given.SAVEPOINT))
    target, committed = stored_path(given.NEW), opened.output_committed
    print(write_savepoint(opened.layout, opened.manifest, target, output_committed=committed).path)
    return 0


def _dispose(arguments: Sequence[str]) -> int:
    path = _parser("dispose", _DISPOSE, "SAVEPOINT").parse_args(list(arguments)).SAVEPOINT
    dispose_savepoint(stored_path(path))
    print(f"disposed of {path}")
    return 0


def _parser(verb: str, description: str, argument: str) -> Parser:
    parser = Parser(prog=f"headwater savepoint {verb}", description=description)
    parser.add_argument(argument)
    return parser


def _print_table(verb: str, rows: Sequence[Sequence[str]]) -> None:
    print_table(_HEADERS[verb], rows, ("ENTRIES", "BYTES", "EPOCH", "VERSION"))


_DIFF = (
    "Say, for each uid and state, what becomes of it when program.py is started from SAVEPOINT: same, migrated, new, "
    "kept, lost or incompatible. The program is run up to its execute(), its functions are opened, and no Spark is "
    "started. Options of headwater run may stand around program.py. Exit code 1 if something is lost or incompatible."
)
_INSPECT = "List the states in SAVEPOINT: operator, kind, version, number of entries, bytes."
_LIST = "List the savepoints in DIR, or the checkpoints that the job of the checkpoint directory DIR retains."
_TRIGGER = (
    "Make a savepoint of a running job, which goes on. It is a new directory in DIR, printed when it is complete."
)
_COPY = (
    "Make a savepoint at NEW, where there must be nothing, of another savepoint or of a checkpoint that a job retains "
    "(DIR, DIR@EPOCH). Every file is checked."
)
_DISPOSE = "Delete a savepoint. Refuses whatever is not one."
_SEE_HELP = "; see headwater savepoint --help"
_HELP = """usage: headwater savepoint COMMAND ...

commands:
  trigger JOB [DIR]          make one of a running job, which goes on; headwater stop makes one and ends the job
  list DIR                   the savepoints in a directory, or the checkpoints that a job retains
  inspect SAVEPOINT          operators, states, entries, bytes
  diff SAVEPOINT program.py  what would become of each state: same, migrated, new, lost
  copy SAVEPOINT NEW         make another of it, or one of a checkpoint that a job retains, to keep
  dispose SAVEPOINT          delete it

SAVEPOINT is a savepoint's directory, a job's checkpoint directory (its newest checkpoint; DIR@EPOCH for another), or
the manifest file of a checkpoint. DIR and SAVEPOINT may be URLs (s3://...); what the store needs to be opened is in the
environment: its own variables, or HEADWATER_STORAGE_OPTIONS=key:value,... (headwater.storage.options)."""

_VERBS: dict[str, Callable[[Sequence[str]], int]] = {
    "trigger": _trigger,
    "list": _list,
    "inspect": _inspect,
    "diff": _diff,
    "copy": _copy,
    "dispose": _dispose,
}
