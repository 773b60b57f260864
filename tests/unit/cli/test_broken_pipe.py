"""`headwater ... | head` ends without a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def run_with_a_reader_that_left(*arguments: str) -> subprocess.CompletedProcess[str]:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(
            [sys.executable, "-m", "headwater", *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writer)


@pytest.mark.parametrize("verb", ["config", "--help", "--version", "list"])
def test_a_verb_leaves_quietly(verb: str) -> None:
    ended = run_with_a_reader_that_left(verb)
    assert ended.stderr == ""
    assert ended.returncode == 141


def test_so_does_a_program(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("for _ in range(100_000):\n    print('a line')\n")
    ended = run_with_a_reader_that_left("run", str(program))
    assert ended.stderr == ""
    assert ended.returncode == 141


def test_a_broken_pipe_of_the_programs_own_is_shown(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise BrokenPipeError('a socket of mine')\n")
    ended = subprocess.run(
        [sys.executable, "-m", "headwater", "run", str(program)], capture_output=True, text=True, check=False
    )
    assert "BrokenPipeError: a socket of mine" in ended.stderr
    assert ended.returncode == 1
