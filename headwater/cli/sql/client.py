"""The command `headwater sql`: statements from a file, a pipe or a person."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from headwater.cli.sql.prompt import statements
from headwater.cli.sql.script import Piece, pieces
from headwater.cli.sql.session import Quit, Session, error_text
from headwater.cli.usage import FAILURE, INTERRUPTED, Parser, UsageError
from headwater.common.errors import HeadwaterError


def sql(arguments: Sequence[str]) -> int:
    """Run the client. Return 0, or 1 if a statement of a file or a pipe failed: what follows it is not run."""
    parser = Parser(
        prog="headwater sql",
        description="Run SQL: at a prompt, from a file (-f), or from a pipe. Jobs run in this process and end with it; "
        "a file's or a pipe's INSERTs are waited for.",
    )
    parser.add_argument("-f", "--file", metavar="FILE", help="run the statements of a file, and end")
    parser.add_argument("-i", "--init", metavar="FILE", help="run the statements of a file first")
    parser.add_argument("-e", "--execute", metavar="SQL", help="run these statements, and end")
    parser.add_argument("-D", action="append", default=[], metavar="KEY=VALUE", dest="settings", help="as SET does")
    parser.add_argument("--mode", choices=("streaming", "batch"), default="streaming", help="streaming is the default")
    given = parser.parse_args(list(arguments))
    session = Session.of_mode(given.mode, _settings(given.settings))
    if given.init is not None and (code := _run_all(session, _read(given.init, "--init"), given.init)):
        return code
    if given.file is not None and given.execute is not None:
        raise UsageError("headwater sql: -f and -e do not go together")
    if given.file is not None:
        return _script(session, _read(given.file, "--file"), given.file)
    if given.execute is not None:
        return _script(session, given.execute, "-e")
    if not sys.stdin.isatty():
        return _script(session, sys.stdin.read(), "standard input")
    return _interactive(session)


def _script(session: Session, text: str, name: str) -> int:
    code = _run_all(session, text, name)
    try:
        if not code:
            session.wait_for_jobs()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except HeadwaterError as error:
        print(error_text(error), file=sys.stderr)
        code = FAILURE
    session.cancel_jobs()
    return code


def _run_all(session: Session, text: str, name: str) -> int:
    found, rest = pieces(text)
    if rest.strip():
        found.append(Piece(rest.strip()))  # the last semicolon may be missing
    try:
        for number, piece in enumerate(found, 1):
            try:
                session.run(piece)
            except HeadwaterError as error:
                print(f"{error_text(error)}\n(statement {number} of {name})", file=sys.stderr)
                return FAILURE
    except Quit:
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _interactive(session: Session) -> int:
    print("headwater SQL client. HELP; tells what there is, QUIT; ends.")
    given: Iterable[Piece | None] = statements(session.environment)
    for piece in given:
        if piece is None:
            continue
        try:
            session.run(piece)
        except Quit:
            break
        except KeyboardInterrupt:
            print("\nCancelled.")
        except HeadwaterError as error:
            print(error_text(error), file=sys.stderr)
    if running := session.running():
        print(f"Cancelling {running} running {'job' if running == 1 else 'jobs'}: jobs of a client end with it.")
    session.cancel_jobs()
    return 0


def _read(path: str, option: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"headwater sql: {option} {path} cannot be read: {why}") from None


def _settings(given: Sequence[str]) -> dict[str, str]:
    found = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals:
            raise UsageError(f"headwater sql: -D {each}: expected KEY=VALUE")
        found[key] = value
    return found
