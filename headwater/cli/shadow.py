"""`headwater shadow`: run new code from a fork of a job, unseen, and compare its output with the old code's."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.savepoint.savepoint import open_savepoint, write_savepoint
from headwater.cli.run_arguments import RunArguments, parse_run_arguments
from headwater.cli.stored_path import stored_path
from headwater.cli.table import print_table
from headwater.cli.usage import FAILURE, Parser, UsageError
from headwater.common.config.values import read_duration_ms
from headwater.common.errors import ConfigurationError, HeadwaterError, short_repr
from headwater.runtime.shadow.diff import (
    DifferingRecord,
    SinkDifference,
    Stand,
    common_stand,
    compare_sinks,
    first_records,
    last_stand,
)
from headwater.runtime.shadow.run import ShadowRun

_EPOCHS = 10
_EPOCH_RECORDS = 10_000
_SHOWN = 10
_TAKES_A_VALUE = (
    "--from", "--against", "--records", "--epochs", "--duration", "--epoch-records", "--show", "--work-dir"
)  # fmt: skip


def shadow(arguments: Sequence[str]) -> int:
    """0: the same output (or nothing to compare with). 1: not the same, or a run failed. 2: wrong usage."""
    own, words = _split(arguments)
    given = _parser().parse_args(own)
    if not words:
        raise UsageError("headwater shadow: no program given; see headwater shadow --help")
    program = parse_run_arguments(words, "headwater shadow")
    seconds = _seconds(given.duration)
    epochs = None if seconds is not None else given.epochs or _EPOCHS
    if given.records is not None:
        epochs = -(-given.records // given.epoch_records)
    if given.work_dir is not None and not os.path.isdir(given.work_dir):
        raise UsageError(f"headwater shadow: --work-dir {given.work_dir} is not a directory")
    with tempfile.TemporaryDirectory(prefix="headwater-shadow-", dir=given.work_dir) as scratch:
        fork, manifest = _fork(given.start, program, Path(scratch))
        sides: list[ShadowRun] = []
        # The new program first: it is the one that may not even start.
        for path in (program.program, given.against):
            if path is not None:
                directory = f"{scratch}/{len(sides)}"
                run = ShadowRun(fork, manifest.epoch, directory, given.epoch_records, epochs, seconds)
                _run_side(path, run, words)
                sides.append(run)
        print(f"shadow of job '{manifest.job_name}' from {given.start}, epoch {manifest.epoch}")
        if len(sides) == 1:
            return _show_one(sides[0], manifest, program.program, given.show)
        return _show_both(sides[1], sides[0], manifest, (given.against, program.program), given.show)


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the arguments into this command's own options, which come first, and those of `headwater run`."""
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word in ("-h", "--help"):
            position += 1
        elif word.partition("=")[0] in _TAKES_A_VALUE:
            position += 1 if "=" in word else 2
        else:
            break
    return list(arguments[:position]), list(arguments[position:])


def _fork(where: str, program: RunArguments, scratch: Path) -> tuple[str, Manifest]:
    """Return a savepoint that nobody deletes meanwhile: a running job deletes its old checkpoints."""
    opened = open_savepoint(stored_path(where, program.settings))
    if opened.manifest.finished:
        raise HeadwaterError(f"{opened.path}: the input of the job had ended by then; there is nothing left to run")
    if opened.is_savepoint:
        return opened.path, opened.manifest
    copy = write_savepoint(opened.layout, opened.manifest, scratch / "fork", durable=False)
    return copy.path, opened.manifest


def _run_side(program: str, run: ShadowRun, words: Sequence[str]) -> None:
    """Run one program in a process of its own. Its output is not part of this command's."""
    spec = Path(f"{run.directory}.json")
    spec.write_text(json.dumps({"program": program, "run": asdict(run)}), encoding="utf-8")
    print(f"headwater shadow: running {program}", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "headwater.cli.shadow_run", str(spec), *words]
    if subprocess.run(command, stdout=2, check=False).returncode != 0:
        raise HeadwaterError(f"{program} did not run to the end; see above")


def _show_one(run: ShadowRun, fork: Manifest, program: str, most: int) -> int:
    stand = last_stand(run, fork)
    print(f"{program}: {_extent(stand, fork)}")
    for uid in run.sinks():
        count, records = first_records(run, uid, stand.epoch, most)
        print(f"\nsink '{uid}': {count:,} records" + (", the first:" if records else ""))
        _print_records(records, " ")
    return 0


def _show_both(old: ShadowRun, new: ShadowRun, fork: Manifest, programs: tuple[str, str], most: int) -> int:
    stand = common_stand(old, new, fork)
    print(f"old: {programs[0]}, new: {programs[1]}; both {_extent(stand, fork)}\n")
    found = compare_sinks(old, new, stand.epoch)
    rows = [
        (
            each.uid,
            *("-" if count is None else f"{count:,}" for count in (each.old, each.new)),
            *(f"{sum(record.times for record in records):,}" for records in (each.only_old, each.only_new)),
            "same" if each.same else "different",
        )
        for each in found
    ]
    headers = ("SINK", "OLD", "NEW", "ONLY OLD", "ONLY NEW", "")
    print_table(headers, rows, headers[1:5])
    different = [each for each in found if not each.same]
    for each in different:
        _print_difference(each, most)
    return FAILURE if different else 0


def _print_difference(difference: SinkDifference, most: int) -> None:
    only_old, only_new = difference.only_old[:most], difference.only_new[:most]
    if not only_old and not only_new:
        return
    print(f"\nsink '{difference.uid}', first differences (- only old, + only new):")
    for epoch in sorted({record.epoch for record in (*only_old, *only_new)}):
        _print_records([record for record in only_old if record.epoch == epoch], "-")
        _print_records([record for record in only_new if record.epoch == epoch], "+")


def _print_records(records: Sequence[DifferingRecord], mark: str) -> None:
    for record in records:
        times = f"  ({record.times} times)" if record.times > 1 else ""
        print(f"  epoch {record.epoch}  {mark} {_cut(record.text)}{times}")


def _cut(text: str, most: int = 300) -> str:
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def _extent(stand: Stand, fork: Manifest) -> str:
    end = ", to the end of the input" if stand.finished else ""
    return f"read {stand.records:,} records in epochs {fork.epoch + 1} to {stand.epoch}{end}"


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    with contextlib.suppress(ConfigurationError, ValueError):
        return read_duration_ms(text) / 1000
    raise UsageError(f"headwater shadow: --duration {short_repr(text)}: expected a time such as 30s or 5 min")


def _parser() -> Parser:
    parser = Parser(
        prog="headwater shadow",
        usage="headwater shadow --from FORK [--against OLD.py] [options] [options of headwater run] NEW.py [arguments]",
        description=(
            "Run NEW.py from a savepoint or a retained checkpoint, with every sink diverted, so that nothing of it "
            "becomes visible; do the same with OLD.py and the same arguments; and show in what their outputs differ: "
            "counts per sink (matched by uid) and the first differing records. Neither order, partition, event "
            "timestamp nor processing time is compared."
        ),
        epilog="exit codes: 0 the same output, 1 another output or a failure, 2 wrong usage",
    )
    parser.add_argument(
        "--from",
        dest="start",
        metavar="FORK",
        required=True,
        help="a savepoint, or a job's checkpoint directory (DIR: its newest checkpoint, DIR@EPOCH: an older one)",
    )
    parser.add_argument(
        "--against", metavar="OLD.py", help="the program to compare with; without, only show the output"
    )
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--epochs", type=_positive, metavar="N", help=f"how far to run, default {_EPOCHS}")
    extent.add_argument("--records", type=_positive, metavar="N", help="how far to run, in records per source")
    extent.add_argument("--duration", metavar="TIME", help="how long to run each program, for example '2 min'")
    parser.add_argument(
        "--epoch-records",
        type=_positive,
        default=_EPOCH_RECORDS,
        metavar="N",
        help=f"records per source and epoch, default {_EPOCH_RECORDS:,}",
    )
    parser.add_argument(
        "--show",
        type=_positive,
        default=_SHOWN,
        metavar="N",
        help=f"records to show per sink and side, default {_SHOWN}",
    )
    parser.add_argument(
        "--work-dir", metavar="DIR", help="for temporary files; with a Spark cluster, one that all hosts mount"
    )
    return parser


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise ArgumentTypeError(f"expected a whole number above 0, found '{text}'")
    return number
