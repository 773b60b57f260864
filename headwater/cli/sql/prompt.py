"""Reads statements from a person: several lines, history, completion of keywords and names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from headwater.cli.sql.script import Piece, pieces
from headwater.cli.usage import UsageError
from headwater.table.functions.registry import all_functions
from headwater.table.parser.keywords import RESERVED
from headwater.table.table_environment import TableEnvironment

_COMMANDS = ("HELP", "QUIT", "EXIT", "CLEAR", "SHOW JOBS", "STOP JOB")


def history_file() -> Path:
    """Where the lines that a person typed are kept."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "headwater" / "sql-history"


def words_of(environment: TableEnvironment) -> list[str]:
    """What can be completed: keywords, functions, and the names of tables and their columns."""
    names: set[str] = set(environment.list_tables()) | set(environment.list_temporary_tables())
    columns: set[str] = set()
    for name in names:
        try:
            columns.update(each.name for each in environment.from_path(f"`{name}`").get_schema().fields)
        except Exception:  # a view whose table is gone completes to nothing
            continue
    functions = {each.name for each in all_functions() if each.name.isidentifier()}
    return sorted(set(RESERVED) | functions | names | columns | set(environment.list_catalogs()) | set(_COMMANDS))


def statements(environment: TableEnvironment) -> Iterator[Piece | None]:
    """The statements that a person types, until end of file. None: Ctrl-C at the prompt, which forgets the line."""
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import Completer, Completion
        from prompt_toolkit.document import Document
        from prompt_toolkit.history import FileHistory
        from prompt_toolkit.key_binding import KeyBindings
        from prompt_toolkit.lexers import PygmentsLexer
        from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]
    except ImportError as error:
        raise UsageError(
            f"headwater sql: the prompt needs '{error.name}'; pip install 'headwater[sql]', or pipe statements in"
        ) from None

    class Words(Completer):
        def get_completions(self, document: Document, complete_event: Any) -> Iterable[Completion]:
            begun = document.get_word_before_cursor(WORD=False)
            if not begun:
                return
            for word in words_of(environment):
                if word.upper().startswith(begun.upper()) and word != begun:
                    yield Completion(word.lower() if begun.islower() and word.isupper() else word, -len(begun))

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: Any) -> None:
        text = event.current_buffer.text
        if not text.strip() or (pieces(text)[0] and not pieces(text)[1]) or _is_command(text):
            event.current_buffer.validate_and_handle()
        else:
            event.current_buffer.insert_text("\n")

    path = history_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    prompt: Any = PromptSession(
        history=FileHistory(str(path)),
        completer=Words(),
        complete_while_typing=False,
        key_bindings=keys,
        lexer=PygmentsLexer(SqlLexer),
        multiline=True,
        prompt_continuation=lambda width, number, wrapped: "> ".rjust(width),
    )
    while True:
        try:
            text = prompt.prompt("headwater SQL> ")
        except KeyboardInterrupt:
            yield None
            continue
        except EOFError:
            return
        if _is_command(text):
            yield Piece(text.strip())
            continue
        yield from pieces(text)[0]


def _is_command(text: str) -> bool:
    return text.strip().rstrip(";").upper() in ("QUIT", "EXIT", "HELP", "CLEAR")
