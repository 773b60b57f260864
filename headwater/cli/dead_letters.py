"""`headwater dead-letters`: what a job refused, from the files it wrote them to, and its way back into the job."""

from __future__ import annotations

import os
from collections.abc import Sequence

from headwater.checkpoint.storage.base import is_remote, local_path
from headwater.cli.running_jobs import JOB_HELP, add_state_directory, find_job, matching, run_directory
from headwater.cli.table import print_table, shown, utc
from headwater.cli.usage import Parser
from headwater.common.config_options import DEAD_LETTERS_DIRECTORY
from headwater.common.dead_letter import REPLAYED, SOURCE, DeadLetter
from headwater.common.errors import HeadwaterError
from headwater.datastream.dead_letter_files import DeadLetterBox
from headwater.runtime.job.control_client import ask

_COLUMNS = ("REFUSED (UTC)", "STAGE", "OPERATOR", "WHERE", "ERROR", "ID")
_ERROR_CHARS = 60


def dead_letters(arguments: Sequence[str]) -> int:
    """List the letters below a directory, show one of them in full, or put them through again."""
    parser = Parser(
        prog="headwater dead-letters",
        description=(
            "The records that a job refused, with the error and the operator. JOB is a running job with "
            "headwater.dead-letters.dir; DIR is the directory that a job writes them to: the same one, or what "
            "with_dead_letters was given."
        ),
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list|show|replay")
    listing = verbs.add_parser("list", help="one line per letter, the oldest first")
    listing.add_argument("job", metavar="JOB|DIR")
    listing.add_argument("--operator", metavar="NAME", help="only those of the operator with this name or uid")
    listing.add_argument("--done", action="store_true", help="also those that were put through again")
    listing.add_argument("--json", action="store_true", help="the letters as they are stored, for tools")
    showing = verbs.add_parser("show", help="one letter in full")
    showing.add_argument("job", metavar="JOB|DIR")
    showing.add_argument("id", metavar="ID", help="as `list` shows it, or its beginning")
    replaying = verbs.add_parser(
        "replay",
        help="put letters through again, into the running job, at the operator that refused them",
        description="Waits until that is committed. A letter that is refused again becomes a new one.",
    )
    replaying.add_argument("job", metavar="JOB", help=JOB_HELP)
    replaying.add_argument("ids", metavar="ID", nargs="*", help="as `list` shows it, or its beginning")
    replaying.add_argument("--all", action="store_true", help="all letters that wait")
    replaying.add_argument(
        "--dir", metavar="DIR", help="where they are, if not in the job's headwater.dead-letters.dir"
    )
    for verb in (listing, showing, replaying):
        add_state_directory(verb)
    given = parser.parse_args(list(arguments))
    if given.verb == "replay":
        return _replay(given.job, given.dir, given.ids, given.all, given.state_dir)
    box = DeadLetterBox.read(_directory(given.job, given.state_dir))
    if given.verb == "show":
        _show(box, given.id)
        return 0
    known = box.letters if given.done else box.open
    chosen = [each for each in known if given.operator in (None, each.operator, each.operator_uid)]
    if given.json:
        for letter in chosen:
            print(letter.to_json().decode())
    elif chosen:
        print_table(_COLUMNS, [_row(letter) for letter in chosen])
    else:
        print("no dead letters")
    return 0


def _directory(wanted: str, state_directory: str | None) -> str:
    """The directory of a running job's letters, or the one that was named."""
    jobs = run_directory(state_directory)
    if not matching(jobs.cards(), wanted):
        return wanted
    job = find_job(jobs, wanted)
    found = ask(jobs, job, "describe")["config"].get(DEAD_LETTERS_DIRECTORY.key)
    if not found:
        raise HeadwaterError(
            f"job '{job.name}' runs without {DEAD_LETTERS_DIRECTORY.key}; if it uses with_dead_letters, name the "
            "directory that it gives there"
        )
    return str(found)


def _row(letter: DeadLetter) -> tuple[str, ...]:
    error = next((line for line in letter.error.splitlines() if line.strip()), "")
    short = error if len(error) <= _ERROR_CHARS else error[:_ERROR_CHARS] + "..."
    return utc(letter.rejected_at_ms), letter.stage, letter.operator, letter.where, short, letter.id


def _show(box: DeadLetterBox, wanted: str) -> None:
    letter = box.find(wanted)
    answer = box.answers.get(letter.id)
    facts = {
        "id": letter.id,
        "job": letter.job_id,
        "operator": f"{letter.operator} ({letter.operator_uid})",
        "stage": letter.stage,
        "where": letter.where,
        "refused": f"{utc(letter.rejected_at_ms)} UTC, epoch {letter.epoch}",
        **({"replaces": letter.replaces} if letter.replaces else {}),
        **({} if answer is None else {"put through": _became(answer)}),
        "timestamp": "none" if letter.timestamp_ms is None else f"{utc(letter.timestamp_ms)} UTC",
        **{f"attribute {name}": repr(value) for name, value in letter.attributes.items()},
        "raw" if letter.stage == SOURCE else "pickled": "none" if letter.raw is None else repr(letter.raw),
        "record": letter.record,
    }
    for name, value in facts.items():
        print(f"{name}: {shown(value)}")
    print("error:")
    for line in letter.error.splitlines():
        print(f"  {shown(line)}")


def _became(answer: DeadLetter) -> str:
    when = f"{utc(answer.rejected_at_ms)} UTC, epoch {answer.epoch}"
    return f"{when}: done" if answer.stage == REPLAYED else f"{when}: refused again, as {answer.id}"


def _replay(wanted: str, directory: str | None, ids: Sequence[str], every: bool, state_directory: str | None) -> int:
    if bool(ids) == every:
        raise HeadwaterError("name the letters to put through again by their ids, or give --all")
    jobs = run_directory(state_directory)
    job = find_job(jobs, wanted)
    where = directory or _directory(wanted, state_directory)
    where = where if is_remote(where) else os.path.abspath(local_path(where))
    answer = ask(jobs, job, "replay", directory=where, ids=None if every else list(ids))
    print(f"{len(answer['done'])} done")
    for old, new in answer["refused_again"].items():
        print(f"{old}: refused again, as {new}")
    for letter, problem in answer["not_possible"].items():
        print(f"{letter}: {problem}")
    return 1 if answer["refused_again"] or answer["not_possible"] else 0
