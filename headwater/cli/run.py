"""`headwater run program.py`: runs a program as Python itself would, with PyFlink's imports mapped."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from concurrent.futures import CancelledError
from types import ModuleType

from headwater.cli.broken_pipe import leave_quietly, nobody_reads
from headwater.cli.run_arguments import RunArguments, parse_run_arguments
from headwater.cli.usage import FAILURE, INTERRUPTED, USAGE_ERROR, UsageError
from headwater.common.config.session_defaults import set_session_defaults
from headwater.common.config_options import validate
from headwater.common.errors import ConfigurationError, HeadwaterError, UserCodeError, user_traceback
from headwater.compat import pyflink_imports
from headwater.datastream import stream_execution_environment
from headwater.graph.transformation import OperatorTransformation
from headwater.runtime.job import launcher
from headwater.runtime.python_path import make_importable
from headwater.server.job_dashboard import serve_job

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def run(arguments: Sequence[str]) -> int:
    """Run the program that the command line names, and return the exit code."""
    given = parse_run_arguments(arguments)
    if given.server is not None:
        from headwater.cli.submit import submit  # with what a client needs, which programs that run here do not

        return submit(given)
    source = prepare_program(given)
    if source is None:
        return USAGE_ERROR
    launcher.on_launch.append(serve_job)
    built: list[list[OperatorTransformation]] = []
    stream_execution_environment.built = built
    try:
        code = run_program(given.program, source, given.arguments)
        if code == 0:
            _tell_of_forgotten(built)
        return code
    finally:
        stream_execution_environment.built = None
        launcher.on_launch.remove(serve_job)


def _tell_of_forgotten(built: list[list[OperatorTransformation]]) -> None:
    """Name the sinks that the program has built, but no job of it has filled."""
    names = [f"'{node.name}'" for operators in built for node in operators if node.sink is not None]
    if names:
        print(
            f"headwater: the program has ended, and nothing was written to {', '.join(names)}: execute() was not "
            "called after that was built; end the program with env.execute()",
            file=sys.stderr,
        )


def prepare_program(given: RunArguments) -> bytes | None:
    """Read the program and make this process ready for it. None if a setting is wrong, which has been printed."""
    try:
        _check(given)
    except ConfigurationError as error:
        print(f"{given.command}: {error}", file=sys.stderr)
        return None
    source = _read(given)
    make_importable(given.python_files)
    set_session_defaults(given.settings)
    pyflink_imports.install()
    return source


def run_program(path: str, source: bytes, arguments: Sequence[str]) -> int:
    """Execute `source` as `__main__` of this process. The module stays: jobs find the program's classes in it."""
    main = ModuleType("__main__")
    main.__file__ = path
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    sys.argv = [path, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    try:
        exec(compile(source, path, "exec"), main.__dict__)
    except KeyboardInterrupt:
        print("headwater: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        return leave_quietly() if nobody_reads() else _tell(error, path)
    return 0


def _tell(error: Exception, path: str) -> int:
    """Say why the program failed, in as few lines as explain it, and return the exit code."""
    if isinstance(error, UserCodeError):
        print(error.user_traceback.rstrip(), file=sys.stderr)
        print(
            f"headwater: job failed: operator '{error.operator_name}', epoch {error.epoch}, "
            f"record {error.record_repr}: {error.cause_repr}",
            file=sys.stderr,
        )
    elif isinstance(error, HeadwaterError):
        print(f"headwater: {_where(error, path)}{error}", file=sys.stderr)
    elif isinstance(error, CancelledError):
        print(f"headwater: {error or 'the job was cancelled'}", file=sys.stderr)
    elif isinstance(error, ImportError):
        print(user_traceback(error).rstrip(), file=sys.stderr)  # the way through our finder explains nothing
    else:
        print(_traceback(error), file=sys.stderr)
    return FAILURE


def _read(given: RunArguments) -> bytes:
    try:
        with open(given.program, "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{given.command}: cannot read program '{given.program}': {error.strerror}") from None


def _check(given: RunArguments) -> None:
    """Raise for bad values now, not when the program uses them; print a line for each unknown key."""
    with warnings.catch_warnings(record=True) as caught:
        # Only UserWarning: when the interpreter ends, it uses the last filters that it saw, and would name open files.
        warnings.simplefilter("always", UserWarning)
        validate(given.settings)
    for warning in caught:
        print(f"{given.command}: warning: {warning.message}", file=sys.stderr)


def _where(error: BaseException, program: str) -> str:
    """`program.py:12: `, the innermost line of the program, or of a module beside it, that led to `error`."""
    directory = os.path.dirname(os.path.abspath(program)) + os.sep
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if os.path.abspath(frame.filename).startswith(directory) and not frame.filename.startswith(_PACKAGE)
    ]
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}: " if frames else ""


def _traceback(error: BaseException) -> str:
    """As Python shows it, without this file's own frame at the top."""
    described = traceback.TracebackException.from_exception(error)
    while described.stack and described.stack[0].filename == __file__:
        del described.stack[0]
    return "".join(described.format()).rstrip()
