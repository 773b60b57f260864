"""Patterns for stores mean the same files as patterns of local paths."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headwater.datastream.connectors.file_access import find_files
from headwater.datastream.connectors.path_pattern import directory_of, matcher

FILES = ("a.txt", "b.csv", "x/a.txt", "x/y/a.txt", "x/y/b[1].txt", "x1/c.txt", "x2/c.txt", "a.b+c/d^.txt")


@pytest.mark.parametrize(
    "pattern",
    ["*.txt", "*", "x*/c.txt", "x[12]/c.txt", "x[!1]/c.txt", "x[1-2]", "**", "**/*.txt", "x/**/a.txt", "?.csv",
     "x/y/b[[]1].txt", "a.b+?/*", "a.b+c/d[\\^].txt", "x/**", "none*"],
)  # fmt: skip
def test_as_of_local_paths(tmp_path: Path, pattern: str) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    local = {os.path.relpath(file.path, tmp_path) for file in find_files(f"{tmp_path}/{pattern}", must_exist=False)}
    is_meant = matcher(f"s3://b/{pattern}")
    assert {name for name in FILES if is_meant(f"s3://b/{name}")} == local


def test_what_is_listed() -> None:
    assert directory_of("s3://b/in/2026-*/x") == "s3://b/in"
    assert directory_of("s3://b/in/x") == "s3://b/in/x"
    assert directory_of("s3://b/*") == "s3://b"
