"""`headwater dead-letters`: what a job refused, from the files it wrote them to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headwater.cli.running_jobs import add_state_directory, find_job, matching, run_directory
from headwater.cli.table import print_table, shown, utc
from headwater.cli.usage import Parser
from headwater.common.config_options import DEAD_LETTERS_DIRECTORY
from headwater.common.dead_letter import SOURCE, DeadLetter
from headwater.common.errors import HeadwaterError, SerializationError
from headwater.datastream.connectors.file_access import find_files, open_decompressed
from headwater.runtime.job.control_client import ask

_COLUMNS = ("REFUSED (UTC)", "STAGE", "OPERATOR", "WHERE", "ERROR", "ID")
_ERROR_CHARS = 60


def dead_letters(arguments: Sequence[str]) -> int:
    """List the letters below a directory, or show one of them in full."""
    parser = Parser(
        prog="headwater dead-letters",
        description=(
            "The records that a job refused, with the error and the operator. JOB is a running job with "
            "headwater.dead-letters.dir; DIR is the directory that a job writes them to: the same one, or what "
            "with_dead_letters was given."
        ),
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list|show")
    listing = verbs.add_parser("list", help="one line per letter, the oldest first")
    listing.add_argument("job", metavar="JOB|DIR")
    listing.add_argument("--operator", metavar="NAME", help="only those of the operator with this name or uid")
    listing.add_argument("--json", action="store_true", help="the letters as they are stored, for tools")
    showing = verbs.add_parser("show", help="one letter in full")
    showing.add_argument("job", metavar="JOB|DIR")
    showing.add_argument("id", metavar="ID", help="as `list` shows it, or its beginning")
    for verb in (listing, showing):
        add_state_directory(verb)
    given = parser.parse_args(list(arguments))
    letters = sorted(
        _letters(_directory(given.job, given.state_dir)), key=lambda letter: (letter.rejected_at_ms, letter.id)
    )
    if given.verb == "show":
        _show(letters, given.id)
        return 0
    chosen = [each for each in letters if given.operator in (None, each.operator, each.operator_uid)]
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


def _letters(directory: str) -> Iterator[DeadLetter]:
    for file in find_files(directory, must_exist=True):
        with open_decompressed(file.path) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield DeadLetter.from_json(line)
                except SerializationError as error:
                    raise HeadwaterError(f"file {file.path}, line {number}: {error}") from None


def _row(letter: DeadLetter) -> tuple[str, ...]:
    error = next((line for line in letter.error.splitlines() if line.strip()), "")
    short = error if len(error) <= _ERROR_CHARS else error[:_ERROR_CHARS] + "..."
    return utc(letter.rejected_at_ms), letter.stage, letter.operator, letter.where, short, letter.id


def _show(letters: Sequence[DeadLetter], wanted: str) -> None:
    found = [letter for letter in letters if letter.id == wanted] or [
        letter for letter in letters if letter.id.startswith(wanted)
    ]
    if not found:
        raise HeadwaterError(f"no dead letter with the id {wanted!r}; `headwater dead-letters list` shows all")
    if len({letter.id for letter in found}) > 1:
        raise HeadwaterError(f"{len(found)} dead letters begin with {wanted!r}; give more of the id")
    letter = found[0]
    facts = {
        "id": letter.id,
        "job": letter.job_id,
        "operator": f"{letter.operator} ({letter.operator_uid})",
        "stage": letter.stage,
        "where": letter.where,
        "refused": f"{utc(letter.rejected_at_ms)} UTC, epoch {letter.epoch}",
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
