"""Which running job a word on the command line means."""

from __future__ import annotations

import os
from collections.abc import Sequence

from headwater.checkpoint.storage.base import is_remote, local_path
from headwater.cli.usage import Parser, nearest
from headwater.common.config_options import STATE_DIRECTORY, resolve
from headwater.common.configuration import Configuration
from headwater.common.errors import HeadwaterError
from headwater.runtime.job.run_directory import JobCard, RunDirectory

SHORT_ID = 12
JOB_HELP = "the beginning of its id, its name, or its checkpoint directory; see headwater list"


def add_job_arguments(parser: Parser) -> None:
    """Add the arguments with which every command names its job."""
    parser.add_argument("job", metavar="JOB", help=JOB_HELP)
    add_state_directory(parser)


def add_state_directory(parser: Parser) -> None:
    parser.add_argument(
        "--state-dir", metavar="DIR", help=f"where to look for jobs, if the job set {STATE_DIRECTORY.key}"
    )


def run_directory(state_directory: str | None) -> RunDirectory:
    """Return the directory of this user's jobs: the given one, or the default."""
    given = Configuration()
    if state_directory is not None:
        given.set_string(STATE_DIRECTORY.key, state_directory)
    return RunDirectory(resolve(given).get(STATE_DIRECTORY))


def find_job(directory: RunDirectory, wanted: str) -> JobCard:
    """Return the one job that `wanted` names. Raises an error that lists the running jobs."""
    cards = directory.cards()
    if not cards:
        raise HeadwaterError(
            f"no job runs here, so there is no '{wanted}'; looked in {directory.path}. A job that set "
            f"{STATE_DIRECTORY.key} is found with --state-dir"
        )
    found = matching(cards, wanted)
    if len(found) == 1:
        return found[0]
    if found:
        raise HeadwaterError(f"'{wanted}' means {len(found)} jobs: {shown(found)}; give the id, or more of it")
    hint = nearest(wanted, [card.name for card in cards])
    raise HeadwaterError(f"no running job is '{wanted}'{hint or ';'} running: {shown(cards)}")


def matching(cards: Sequence[JobCard], wanted: str) -> list[JobCard]:
    """Return the jobs with that id or name; if none, those whose id begins with it; if none, with that directory."""
    path = wanted.rstrip("/") if is_remote(wanted) else os.path.realpath(local_path(wanted))
    for test in (
        lambda card: wanted in (card.job_id, card.name),
        lambda card: bool(wanted) and card.job_id.startswith(wanted),
        lambda card: bool(card.checkpoint_dir) and path in (card.checkpoint_dir, os.path.realpath(card.checkpoint_dir)),
    ):
        found = [card for card in cards if test(card)]
        if found:
            return found
    return []


def shown(cards: Sequence[JobCard]) -> str:
    """The jobs as an error names them."""
    return ", ".join(f"{card.job_id[:SHORT_ID]} '{card.name}'" for card in cards)
