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
from headwater.cli import remote_jobs
from headwater.cli.program_plan import PlannedJob, plan_of_program
from headwater.cli.run_arguments import parse_run_arguments
from headwater.cli.running_jobs import add_job_arguments, find_job, run_directory
from headwater.cli.stop import absolute, add_savepoint_arguments, note_the_format
from headwater.cli.stored_path import stored_path
from headwater.cli.table import print_table, shown, utc
from headwater.cli.usage import FAILURE, Parser, UsageError, nearest
from headwater.common.config_options import IGNORE_UNCLAIMED_STATE, UID_MAPPING
from headwater.common.errors import CheckpointError, HeadwaterError, StorageError
from headwater.runtime.job.control_client import Conversation
from headwater.runtime.program_states import program_facts
from headwater.state.evolution.changed_classes import ClassChange, class_change
from headwater.state.evolution.schema import ClassSchema, loaded_class

_TRUST = "--trust"
_NAMED = 5
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
    run = _VERBS.get(verb)
    if run is None:
        verb, run, rest = _as_flink(list(arguments))
    try:
        return run(rest)
    except HeadwaterError as error:
        print(f"headwater savepoint {verb}: {error}", file=sys.stderr)
        return FAILURE


def _as_flink(words: list[str]) -> tuple[str, Callable[[Sequence[str]], int], list[str]]:
    """Flink's words: `savepoint JOB [DIR]` triggers, `savepoint -d PATH` disposes, with options anywhere.

    A word much like a command is a typing error: a job with such a name needs `savepoint trigger`.
    """
    if "-d" in words or "--dispose" in words:
        return "dispose", _dispose, [word for word in words if word not in ("-d", "--dispose")]
    hint = nearest(words[0], _VERBS)
    if hint and "-m" not in words and "--jobmanager" not in words:
        raise UsageError(f"headwater savepoint: unknown command '{words[0]}'{hint}")
    return "trigger", _trigger_as_flink, words


def _diff(arguments: Sequence[str]) -> int:
    """0: everything finds its place. 1: something is lost, incompatible, or cannot be said."""
    words = list(arguments)
    trust = _TRUST in words[:2]  # what follows belongs to the program
    if trust:
        words.remove(_TRUST)
    if not words or words[0].startswith("-"):
        _reading_parser("diff", _DIFF).parse_args(words[:1])
    path, *rest = words
    if not rest:
        raise UsageError("headwater savepoint diff: no program given; expected SAVEPOINT program.py")
    program_arguments = parse_run_arguments(rest, "headwater savepoint diff")
    opened = open_savepoint(stored_path(path, program_arguments.settings))
    with contextlib.redirect_stdout(sys.stderr):  # what the program prints is not part of the answer
        job, exit_code = plan_of_program(program_arguments)
        if job is None:
            return exit_code
        program = program_facts(job.plan)
        facts = rename_facts(catalogue(opened, trust=trust), _renames(opened, job, program))
        findings = compare(facts, program, class_change if trust else _loaded_class_change)
    manifest = opened.manifest
    kind = "savepoint" if opened.is_savepoint else "checkpoint"
    print(f"{kind} of job '{shown(manifest.job_name)}', epoch {manifest.epoch}; program's job '{job.plan.name}'\n")
    _print_table("diff", [(each.uid, each.state, each.verdict.value, each.detail) for each in findings])
    print(f"\n{_summary(findings)}")
    return FAILURE if any(each.verdict.stops for each in findings) else 0


def _renames(opened: Savepoint, job: PlannedJob, program: ProgramFacts) -> Mapping[str, str]:
    """Return what the job's uid mapping would rename at its start. Raises if the start would refuse the mapping."""
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
    given = _reading_parser("inspect", _INSPECT).parse_args(list(arguments))
    opened = open_savepoint(stored_path(given.SAVEPOINT))
    facts = catalogue(opened, trust=given.trust)
    manifest = opened.manifest
    kind = "savepoint" if opened.is_savepoint else "checkpoint"
    print(
        f"{kind} of job '{shown(manifest.job_name)}' ({shown(manifest.job_id)})\n"
        f"epoch {manifest.epoch}, {utc(manifest.created_ms)} UTC, max parallelism {manifest.max_parallelism}, "
        f"{len(manifest.partitions)} partitions, {len(manifest.sources)} sources\n"
    )
    rows = [
        (
            state.uid,
            facts.operators.get(state.uid, ""),
            state.name,
            "?" if state.problem else state.kind,
            "" if state.layout is None else str(state.layout.version),
            "?" if state.problem else f"{state.entries:,}",
            f"{state.bytes:,}",
        )
        for state in facts.states
    ]
    _print_table("inspect", rows)
    for state in facts.states:
        if state.problem:
            print(f"headwater savepoint inspect: {shown(state.problem)}", file=sys.stderr)
    if facts.not_loaded:
        names = shown(", ".join(sorted(facts.not_loaded)[:_NAMED]))
        more = f" and {len(facts.not_loaded) - _NAMED} more" if len(facts.not_loaded) > _NAMED else ""
        print(
            f"headwater savepoint inspect: {names}{more} not loaded: objects are told apart by their content. To load "
            f"them, if you trust whoever wrote this: {_TRUST}",
            file=sys.stderr,
        )
    return 0


def _loaded_class_change(schema: ClassSchema) -> ClassChange | None:
    """How a class has changed that the program has loaded. What a savepoint names is not imported for it."""
    return class_change(schema, loaded_class)


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
    """Return the retained checkpoints, if it is a job's directory."""
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


def _trigger_as_flink(arguments: Sequence[str]) -> int:
    return _trigger(arguments, as_flink=True)


def _trigger(arguments: Sequence[str], *, as_flink: bool = False) -> int:
    """Trigger a savepoint and wait for it. The job goes on. Prints the path, or Flink's lines."""
    parser = Parser(prog="headwater savepoint trigger", description=_TRIGGER)
    add_job_arguments(parser)
    parser.add_argument("directory", metavar="DIR", nargs="?", help="default: execution.checkpointing.savepoint-dir")
    add_savepoint_arguments(parser)
    remote_jobs.add_server(parser)
    given = parser.parse_intermixed_args(list(arguments))
    note_the_format(given.type)
    if given.jobmanager is not None:
        client = remote_jobs.client_of(given.jobmanager, "headwater savepoint")
        return remote_jobs.savepoint(client, given.job, absolute(given.directory), detached=given.detached)
    directory = run_directory(given.state_dir)
    card = find_job(directory, given.job)
    with Conversation(directory, card, "savepoint", directory=absolute(given.directory)) as conversation:
        if given.detached or as_flink:
            print(remote_jobs.triggering("savepoint", card.job_id, given.detached), flush=True)
        if not given.detached:
            path = conversation.answer()
            print(remote_jobs.savepoint_made(path) if as_flink else path)
    return 0


def _copy(arguments: Sequence[str]) -> int:
    """Copy a checkpoint. If its job deletes it meanwhile, the copy fails and leaves nothing behind."""
    parser = _parser("copy", _COPY, "SAVEPOINT")
    parser.add_argument("NEW")
    given = parser.parse_args(list(arguments))
    opened = open_savepoint(stored_path(given.SAVEPOINT))
    target, committed = stored_path(given.NEW), opened.output_committed
    print(write_savepoint(opened.layout, opened.manifest, target, output_committed=committed).path)
    return 0


def _dispose(arguments: Sequence[str]) -> int:
    parser = _parser("dispose", _DISPOSE, "SAVEPOINT")
    remote_jobs.add_server(parser)
    given = parser.parse_args(list(arguments))
    if given.jobmanager is not None:
        return remote_jobs.dispose(remote_jobs.client_of(given.jobmanager, "headwater savepoint"), given.SAVEPOINT)
    dispose_savepoint(stored_path(given.SAVEPOINT))
    print(f"Savepoint '{given.SAVEPOINT}' disposed.")
    return 0


def _parser(verb: str, description: str, argument: str) -> Parser:
    parser = Parser(prog=f"headwater savepoint {verb}", description=description)
    parser.add_argument(argument)
    return parser


def _reading_parser(verb: str, description: str) -> Parser:
    parser = _parser(verb, description, "SAVEPOINT")
    parser.add_argument(
        _TRUST, action="store_true", help="load the classes that SAVEPOINT names, which runs their code"
    )
    return parser


def _print_table(verb: str, rows: Sequence[Sequence[str]]) -> None:
    print_table(_HEADERS[verb], rows, ("ENTRIES", "BYTES", "EPOCH", "VERSION"))


_DIFF = (
    "Say, for each uid and state, what becomes of it when program.py is started from SAVEPOINT: same, migrated, new, "
    "kept, lost or incompatible. The program is run up to its execute(), its functions are opened, and no Spark is "
    "started. Options of headwater run may stand around program.py. Exit code 1 if something is lost or incompatible. "
    "Classes that SAVEPOINT names are looked for only in what the program has imported, unless --trust stands before "
    "program.py."
)
_INSPECT = (
    "List the states in SAVEPOINT: operator, kind, version, number of entries, bytes. No code that SAVEPOINT names is "
    "run, unless with --trust."
)
_LIST = "List the savepoints in DIR, or the checkpoints that the job of the checkpoint directory DIR retains."
_TRIGGER = (
    "Make a savepoint of a running job, which goes on. It is a new directory in DIR, printed when it is complete."
)
_COPY = (
    "Make a savepoint at NEW, where there must be nothing, of another savepoint or of a checkpoint that a job retains "
    "(DIR, DIR@EPOCH). Every file is checked."
)
_DISPOSE = "Delete a savepoint. Refuses whatever is not one."
_HELP = """usage: headwater savepoint COMMAND ...

commands:
  trigger JOB [DIR]          make one of a running job, which goes on; headwater stop makes one and ends the job.
                             With -m HOST:PORT a job of a server. Flink's "savepoint ID [DIR]" is the same
  list DIR                   the savepoints in a directory, or the checkpoints that a job retains
  inspect SAVEPOINT          operators, states, entries, bytes
  diff SAVEPOINT program.py  what would become of each state: same, migrated, new, lost
  copy SAVEPOINT NEW         make another of it, or one of a checkpoint that a job retains, to keep
  dispose SAVEPOINT          delete it; Flink's "savepoint -d SAVEPOINT" is the same

SAVEPOINT is a savepoint's directory, a job's checkpoint directory (its newest checkpoint; DIR@EPOCH for another), or
the manifest file of a checkpoint. DIR and SAVEPOINT may be URLs (s3://...); what the store needs to be opened is in the
environment: its own variables, or HEADWATER_STORAGE_OPTIONS=key:value,... (headwater.storage.options).

A savepoint can name any class or function, and reading it as a job does would run that code. These commands do not;
inspect and diff do with --trust, before SAVEPOINT."""

_VERBS: dict[str, Callable[[Sequence[str]], int]] = {
    "trigger": _trigger,
    "list": _list,
    "inspect": _inspect,
    "diff": _diff,
    "copy": _copy,
    "dispose": _dispose,
}
