"""The command line of `headwater run`: which words are ours and which are the program's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headwater.cli.usage import Parser, UsageError, nearest
from headwater.common.config_options import CHECKPOINT_DIRECTORY, MASTER, PARALLELISM
from headwater.common.configuration import Configuration

_TAKES_A_VALUE = ("-p", "--parallelism", "-D", "--define", "-m", "--master", "-c", "--checkpoint-dir")
_HELP = ("-h", "--help")


@dataclass
class RunArguments:
    """What to run and with which settings."""

    program: str
    arguments: list[str] = field(default_factory=list)
    settings: Configuration = field(default_factory=Configuration)


def parse_run_arguments(given: Sequence[str]) -> RunArguments:
    """Read a command line.

    Options stand before the program, or directly after it; from the first word that is not one of ours, or from `--`
    on, everything is the program's. Raises `UsageError`; a value that does not fit its key is a `ConfigurationError`.
    """
    ours, rest = _split_options(given)
    if any(word in _HELP for word in ours):
        _parser().parse_args(["--help"])
    if not rest or rest[0] == "--":
        raise UsageError("headwater run: no program given; see headwater run --help")
    program, *rest = rest
    if program.startswith("-") and program != "-":
        hint = nearest(program, (*_TAKES_A_VALUE, *_HELP))
        raise UsageError(f"headwater run: unknown option '{program}'{hint or '; see headwater run --help'}")
    more, rest = _split_options(rest, allow_help=False)
    if rest[:1] == ["--"]:
        rest = rest[1:]
    return RunArguments(program, rest, _settings([*ours, *more]))


def _split_options(words: Sequence[str], *, allow_help: bool = True) -> tuple[list[str], list[str]]:
    """The options at the beginning of `words`, and what comes after them."""
    position = 0
    while position < len(words):
        word = words[position]
        if word in _TAKES_A_VALUE:
            position += 2
        elif _has_its_value(word) or (allow_help and word in _HELP):
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


def _settings(words: list[str]) -> Configuration:
    chosen = _parser().parse_args(words)
    settings = Configuration()
    for pair in chosen.define or []:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"headwater run: -D {pair}: expected key=value, for example -D parallelism.default=2")
        settings.set_string(key.strip(), value)
    if chosen.parallelism is not None:
        settings.set_string(PARALLELISM.key, chosen.parallelism)
    if chosen.master is not None:
        settings.set_string(MASTER.key, chosen.master)
    if chosen.checkpoint_dir is not None:
        settings.set_string(CHECKPOINT_DIRECTORY.key, chosen.checkpoint_dir)
    return settings


def _parser() -> Parser:
    parser = Parser(
        prog="headwater run",
        usage="headwater run [options] program.py [options] [--] [arguments of the program ...]",
        description=(
            "Run a Python program. Imports of pyflink in it, and in the modules it imports, give headwater. Settings "
            "made here are the base of every environment of the program; what the program sets itself wins."
        ),
        epilog="exit codes: 0 done, 1 the program or its job failed, 2 wrong usage, 130 Ctrl-C",
    )
    parser.add_argument("-p", "--parallelism", metavar="N", help=f"partitions of each operator ({PARALLELISM.key})")
    parser.add_argument(
        "-D", "--define", metavar="KEY=VALUE", action="append", help="a setting; see headwater config (repeatable)"
    )
    parser.add_argument("-m", "--master", metavar="MASTER", help=f"Spark master, default local[*] ({MASTER.key})")
    parser.add_argument(
        "-c",
        "--checkpoint-dir",
        metavar="DIR",
        help=f"where checkpoints go; started again on it, the job resumes ({CHECKPOINT_DIRECTORY.key})",
    )
    return parser
