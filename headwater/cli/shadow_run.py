"""One side of a shadow run, in a process of its own: `python -m headwater.cli.shadow_run SPEC.json [run words]`.

SPEC.json has the program, which need not be the one that the words name, and its `ShadowRun`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from headwater.cli.run import prepare_program, run_program
from headwater.cli.run_arguments import parse_run_arguments
from headwater.cli.usage import FAILURE, USAGE_ERROR, UsageError
from headwater.common.config_options import IGNORE_UNCLAIMED_STATE, UID_MAPPING
from headwater.common.errors import HeadwaterError
from headwater.datastream.executor import set_executor
from headwater.runtime.shadow.run import ShadowDone, ShadowExecutor, ShadowRun


def main(arguments: Sequence[str]) -> int:
    spec = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    try:
        return _run(spec["program"], ShadowRun(**spec["run"]), arguments[1:])
    except (UsageError, HeadwaterError) as error:
        print(error, file=sys.stderr)
        return FAILURE


def _run(program: str, run: ShadowRun, words: Sequence[str]) -> int:
    given = parse_run_arguments(words, "headwater shadow")
    if given.program != program:
        # The old program fits its own savepoint, so options about taking over state are not for it.
        given.program = program
        for option in (IGNORE_UNCLAIMED_STATE, UID_MAPPING):
            given.settings.remove_config(option.key)
    source = prepare_program(given)
    if source is None:
        return USAGE_ERROR
    set_executor(ShadowExecutor(run))
    try:
        code = run_program(given.program, source, given.arguments)
    except ShadowDone:
        return 0
    if code == 0:
        print(f"headwater shadow: {given.program} ended without a call of execute(); there is no job to run")
    return code or FAILURE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
