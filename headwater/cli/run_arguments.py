"""The command line of `headwater run`: separates headwater's options from the program's arguments."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from headwater.checkpoint.storage.base import is_remote, local_path
from headwater.cli.remote_jobs import default_server
from headwater.cli.usage import Parser, UsageError, nearest
from headwater.common.config_options import (
    CHECKPOINT_DIRECTORY,
    IGNORE_UNCLAIMED_STATE,
    MASTER,
    PARALLELISM,
    PYTHON_FILES,
    PYTHON_REQUIREMENTS,
    RECOVERY_CLAIM_MODE,
    RECOVERY_PATH,
    REST_ADDRESS,
)
from headwater.common.configuration import Configuration
from headwater.server.client import is_server_address

_TAKES_A_VALUE = (
    "-p", "--parallelism", "-D", "--define", "-m", "--master", "--jobmanager", "-c", "--checkpoint-dir",
    "-s", "--from-savepoint", "--fromSavepoint", "-py", "--python", "-pyfs", "--pyFiles", "-pyreq", "--pyRequirements",
    "-cm", "--claimMode", "-rm", "--restoreMode", "-pym", "--pyModule", "-pyexec", "--pyExecutable",
    "-pyclientexec", "--pyClientExecutable", "-pyarch", "--pyArchives", "-t", "--target",
)  # fmt: skip
_STANDS_ALONE = ("-n", "--allow-non-restored-state", "--allowNonRestoredState", "--claim", "-d", "--detached")
_ONLY_BEFORE_THE_PROGRAM = (
    "-s", "-n", "-d", "-t", "-py", "-pyfs", "-pyreq", "-cm", "-rm", "-pym", "-pyexec", "-pyclientexec", "-pyarch",
)  # fmt: skip
"""After the program's name these belong to the program: many programs have such options."""
_HELP = ("-h", "--help")

COMMAND = "headwater run"
_ABOUT = {
    COMMAND: "Run a Python program.",
    "headwater info": "Run a Python program up to its execute(), and print the plan of its job as JSON.",
}


@dataclass
class RunArguments:
    """What to run and with which settings."""

    program: str
    arguments: list[str] = field(default_factory=list)
    settings: Configuration = field(default_factory=Configuration)
    server: str | None = None
    """The address of the server that runs it; None: this process does."""
    detached: bool = False
    """Do not wait for the end of a job that a server runs."""
    python_files: list[str] = field(default_factory=list)
    requirements: str | None = None
    command: str = COMMAND
    """The command that runs the program. Messages begin with it."""


def parse_run_arguments(given: Sequence[str], command: str = COMMAND) -> RunArguments:
    """Read a command line, of `headwater run` or of another command that takes a program.

    Options come before the program, or directly after it. From `--`, or from the first word that is not headwater's
    option, everything belongs to the program. Raises `UsageError`, or `ConfigurationError` for a bad value of a key.
    """
    ours, rest = _split_options(given)
    if any(word in _HELP for word in ours):
        _parser(command).parse_args(["--help"])
    named = _program_of_an_option(ours, command)
    if named is None and (not rest or rest[0] == "--"):
        raise UsageError(f"{command}: no program given; see {command} --help")
    program, *rest = rest if named is None else [named, *rest]
    if program.startswith("-") and program != "-":
        hint = nearest(program, (*_TAKES_A_VALUE, *_STANDS_ALONE, *_HELP))
        raise UsageError(f"{command}: unknown option '{program}'{hint or f'; see {command} --help'}")
    more, rest = _split_options(rest, behind_program=True)
    if rest[:1] == ["--"]:
        rest = rest[1:]
    chosen = _parser(command).parse_args([*ours, *more])
    server = chosen.master if chosen.master is not None and is_server_address(chosen.master) else None
    server = server or _server_of_target(chosen.target, command)
    if server is not None and command != COMMAND:
        raise UsageError(f"{command}: -m {server} is a server, but this runs here; expected a Spark master")
    if chosen.detached and server is None:
        raise UsageError(f"{command}: -d needs a server to leave the job to: -m HOST:PORT (headwater server)")
    for given_word, option, cure in (
        (chosen.pyarch, "-pyarch", "archives are not unpacked; give code with -pyfs, data as a path that all see"),
        (chosen.pyclientexec, "-pyclientexec", "the program runs in this Python; start headwater with the other one"),
    ):
        if given_word is not None:
            raise UsageError(f"{command}: {option} {given_word}: {cure}")
    files = [part for each in chosen.python_files or () for part in each.split(",") if part]
    settings = _settings(chosen, command, server)
    if server is None:
        if files:
            settings.set(PYTHON_FILES, files)
        if chosen.requirements is not None:
            settings.set_string(PYTHON_REQUIREMENTS.key, chosen.requirements)
    return RunArguments(program, rest, settings, server, chosen.detached, files, chosen.requirements, command)


def _split_options(words: Sequence[str], *, behind_program: bool = False) -> tuple[list[str], list[str]]:
    """The options at the beginning of `words`, and what comes after them."""
    foreign = (*_HELP, *_ONLY_BEFORE_THE_PROGRAM) if behind_program else ()
    position = 0
    while position < len(words):
        word = words[position]
        if word in foreign:
            break
        if word in _TAKES_A_VALUE:
            position += 2
        elif _has_its_value(word) or word in _STANDS_ALONE or word in _HELP:
            position += 1
        else:
            break
    return list(words[:position]), list(words[position:])


def _has_its_value(word: str) -> bool:
    """`-p4`, `-Dkey=value`, `--master=local`."""
    if word.startswith("--"):
        return word.partition("=")[0] in _TAKES_A_VALUE and "=" in word
    if word.startswith("-p"):
        return word[2:].isdigit()
    return word.startswith("-D") and "=" in word


def _settings(chosen: argparse.Namespace, command: str, server: str | None) -> Configuration:
    settings = Configuration()
    for pair in chosen.define or []:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{command}: -D {pair}: expected key=value, for example -D parallelism.default=2")
        settings.set_string(key.strip(), value)
    if chosen.pyexec is not None:
        settings.set_string("python.executable", chosen.pyexec)
    if chosen.parallelism is not None:
        settings.set_string(PARALLELISM.key, chosen.parallelism)
    if chosen.master is not None and server is None:
        settings.set_string(MASTER.key, chosen.master)
    if chosen.checkpoint_dir is not None:
        settings.set_string(CHECKPOINT_DIRECTORY.key, chosen.checkpoint_dir)
    if chosen.from_savepoint is not None:
        path = chosen.from_savepoint
        absolute = path if server is None or is_remote(path) else str(local_path(path))  # it has another directory
        settings.set_string(RECOVERY_PATH.key, absolute)
    claim_mode = "CLAIM" if chosen.claim else _claim_mode(chosen.claim_mode, command)
    if claim_mode is not None:
        settings.set_string(RECOVERY_CLAIM_MODE.key, claim_mode)
    if chosen.allow_non_restored_state:
        settings.set_string(IGNORE_UNCLAIMED_STATE.key, "true")
    return settings


def _program_of_an_option(words: Sequence[str], command: str) -> str | None:
    """The file that -py names, or that has the module of -pym: among the files of -pyfs, or in this directory."""
    options = dict(pairwise(words))
    program, module = (
        next((options[name] for name in names if name in options), None)
        for names in (("-py", "--python"), ("-pym", "--pyModule"))
    )
    if module is None:
        return program
    if program is not None:
        raise UsageError(f"{command}: both -py {program} and -pym {module} name the program; expected one of them")
    files = options.get("-pyfs", options.get("--pyFiles", "")).split(",")
    places = [place for each in files if each for place in (each, os.path.dirname(os.path.abspath(each)))]
    for place in [*places, os.getcwd()]:
        for ending in (".py", "/__main__.py"):
            path = os.path.join(place, module.replace(".", "/") + ending)
            if os.path.isfile(path):
                return path
    raise UsageError(
        f"{command}: -pym {module}: there is no such module beside or in the files of -pyfs, or in {os.getcwd()}; zips "
        "are not searched: name the program's file with -py"
    )


def _server_of_target(target: str | None, command: str) -> str | None:
    """The server that Flink's -t means, if it means one."""
    if target in (None, "local"):
        return None
    if target != "remote":
        raise UsageError(
            f"{command}: -t {target}: expected local (here, in Spark), or remote (the server at {REST_ADDRESS.key}); a "
            "cluster of Spark's is named by -m, such as -m yarn"
        )
    server = default_server()
    if server is None:
        raise UsageError(f"{command}: -t remote: no server is known; set {REST_ADDRESS.key}, or give -m HOST:PORT")
    return server


def _claim_mode(given: str | None, command: str) -> str | None:
    """Flink's words for who owns the savepoint; None: not given."""
    if given is None or given.upper() in ("CLAIM", "NO_CLAIM"):
        return None if given is None else given.upper()
    why = "Flink 2 has removed it" if given.upper() == "LEGACY" else "it is not known"
    raise UsageError(f"{command}: -cm {given}: {why}; expected claim or no_claim")


def _parser(command: str = COMMAND) -> Parser:
    parser = Parser(
        prog=command,
        usage=f"{command} [options] program.py [options] [--] [arguments of the program ...]",
        description=(
            f"{_ABOUT.get(command, _ABOUT[COMMAND])} Imports of pyflink in it, and in the modules it imports, give "
            "headwater. Settings made here are the base of every environment of the program; what the program sets "
            "itself wins."
        ),
        epilog="exit codes: 0 done, 1 the program or its job failed, 2 wrong usage, 130 Ctrl-C",
    )
    parser.add_argument("-p", "--parallelism", metavar="N", help=f"partitions of each operator ({PARALLELISM.key})")
    parser.add_argument(
        "-D", "--define", metavar="KEY=VALUE", action="append", help="a setting; see headwater config (repeatable)"
    )
    parser.add_argument(
        "-m",
        "--master",
        "--jobmanager",
        metavar="MASTER",
        help=f"Spark master, default local[*] ({MASTER.key}); or HOST:PORT of a headwater server, which then runs it",
    )
    parser.add_argument(
        "-d", "--detached", action="store_true", help="with -m HOST:PORT: do not wait for the job's end"
    )
    parser.add_argument("-py", "--python", metavar="FILE", help="the program, as Flink's option")
    parser.add_argument(
        "-pyfs",
        "--pyFiles",
        dest="python_files",
        metavar="FILES",
        action="append",
        help=f"files, folders or zips that the program imports, separated by commas ({PYTHON_FILES.key})",
    )
    parser.add_argument(
        "-pyreq",
        "--pyRequirements",
        dest="requirements",
        metavar="FILE",
        help=f"what must be installed ({PYTHON_REQUIREMENTS.key})",
    )
    parser.add_argument("-pym", "--pyModule", metavar="MODULE", help="the program, as a module in this folder or -pyfs")
    parser.add_argument(
        "-pyexec",
        "--pyExecutable",
        dest="pyexec",
        metavar="PATH",
        help="the Python of Spark's workers (python.executable)",
    )
    parser.add_argument("-pyarch", "--pyArchives", dest="pyarch", help=argparse.SUPPRESS)
    parser.add_argument("-pyclientexec", "--pyClientExecutable", dest="pyclientexec", help=argparse.SUPPRESS)
    parser.add_argument(
        "-t",
        "--target",
        metavar="TARGET",
        help=f"local, or remote: the server at {REST_ADDRESS.key}",
    )
    parser.add_argument(
        "-c",
        "--checkpoint-dir",
        metavar="DIR",
        help=f"where checkpoints go; started again on it, the job resumes ({CHECKPOINT_DIRECTORY.key})",
    )
    parser.add_argument(
        "-s",
        "--from-savepoint",
        "--fromSavepoint",
        metavar="PATH",
        help="start from a savepoint, or from a checkpoint that a job retains (DIR or DIR@EPOCH); ignored once the "
        f"job's own directory has a checkpoint. -s and -n stand before the program ({RECOVERY_PATH.key})",
    )
    parser.add_argument(
        "--claim",
        action="store_true",
        help=f"delete the savepoint after the first own checkpoint ({RECOVERY_CLAIM_MODE.key}=CLAIM)",
    )
    parser.add_argument(
        "-cm",
        "--claimMode",
        "-rm",
        "--restoreMode",
        dest="claim_mode",
        metavar="MODE",
        help="claim: as --claim; no_claim (default): the savepoint stays its owner's, and the first own checkpoint "
        f"needs none of its files ({RECOVERY_CLAIM_MODE.key})",
    )
    parser.add_argument(
        "-n",
        "--allow-non-restored-state",
        "--allowNonRestoredState",
        action="store_true",
        help=f"drop state whose operator the program no longer has ({IGNORE_UNCLAIMED_STATE.key})",
    )
    return parser
