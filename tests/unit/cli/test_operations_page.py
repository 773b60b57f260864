"""docs/operations.md: its commands exist, with the options that it types."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from headwater.cli.main import VERBS, main

PAGE = Path(__file__).resolve().parents[3] / "docs" / "operations.md"


def commands() -> list[list[str]]:
    """The words after `$ headwater`, lines that go on joined."""
    text = PAGE.read_text(encoding="utf-8").replace("\\\n", " ")
    return [shlex.split(line) for line in re.findall(r"^ *\$ headwater (.*)$", text, re.MULTILINE)]


def options_of(verb: list[str], capsys: pytest.CaptureFixture[str]) -> set[str]:
    with pytest.raises(SystemExit):
        main([*verb, "--help"])
    return set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", capsys.readouterr().out))


def test_the_page_shows_every_command_for_jobs() -> None:
    assert {words[0] for words in commands()} == set(VERBS) - {"config", "demo", "sql"}


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_the_options_exist(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    verb = words[:2] if words[0] == "savepoint" else words[:1]
    known = options_of(verb, capsys)
    assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_the_programs_exist(words: list[str]) -> None:
    programs = [word for word in words if word.endswith(".py")]
    assert [word for word in programs if not (PAGE.parents[1] / word).is_file()] == []
