"""The SQL client in a real terminal: typing, completion, a query that Ctrl-C ends, and the client that goes on."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

DEADLINE_SECONDS = 90


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, arguments: list[str], environment: dict[str, str]) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            arguments, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True, close_fds=True
        )
        os.close(slave)
        self.text = ""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, pattern: str) -> str:
        """Read until the pattern is there; return what came up to its end, and forget it."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while (found := re.search(pattern, self.text)) is None:
            ready, _, _ = select.select([self._master], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"no {pattern!r} in {DEADLINE_SECONDS} s; the terminal shows:\n{self.text}"
            try:
                got = os.read(self._master, 65536).decode(errors="replace")
            except OSError:  # the other end is closed
                got = ""
            assert got, f"the program ended before {pattern!r}; the terminal shows:\n{self.text}"
            self.text += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", got)
        before, self.text = self.text[: found.end()], self.text[found.end() :]
        return before

    def read_to_the_end(self) -> None:
        while select.select([self._master], [], [], DEADLINE_SECONDS)[0]:
            try:
                if not os.read(self._master, 65536):
                    return
            except OSError:  # the other end is closed
                return

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._master)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    environment = {**os.environ, "TERM": "xterm", "XDG_STATE_HOME": str(tmp_path), "COLUMNS": "100", "LINES": "30"}
    environment["PROMPT_TOOLKIT_NO_CPR"] = "1"  # nobody here answers where the cursor is
    made = Terminal([sys.executable, "-m", "headwater", "sql"], environment)
    yield made
    made.end()


def test_a_query_ends_with_ctrl_c_and_the_client_goes_on(terminal: Terminal, tmp_path: Path) -> None:
    terminal.wait_for(r"headwater SQL>")
    terminal.type("CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '5',\r")
    terminal.type("'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '1000000');\r")
    terminal.wait_for(r"Execute statement succeeded")
    terminal.type("SELECT a FROM t;\r")
    terminal.wait_for(r"\+I \|\s+3 \|")
    terminal.process.send_signal(signal.SIGINT)
    terminal.wait_for(r"Query terminated")
    terminal.type("SHOW TABLEZ;\r")
    terminal.wait_for(r"\[ERROR\][\s\S]*TABLES[\s\S]*headwater SQL>")
    terminal.type("QUIT;\r")
    terminal.wait_for(r"QUIT;")
    terminal.read_to_the_end()
    assert terminal.process.wait(timeout=DEADLINE_SECONDS) == 0
    assert "SELECT a FROM t;" in (tmp_path / "headwater" / "sql-history").read_text()
