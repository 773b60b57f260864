from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from headwater.common.machine.directories import remove_directory


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "made"
    for name in ("a/b/one", "c/two", "three", "LAST"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(name)
    return made


def test_nothing_is_left(directory: Path) -> None:
    remove_directory(directory, last="LAST")
    assert not directory.exists()


def test_links_are_not_followed(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("")
    (directory / "link").symlink_to(tmp_path / "precious")
    remove_directory(directory, last="LAST")
    assert (tmp_path / "precious" / "file").exists()


@pytest.mark.parametrize("step", range(3))
def test_what_was_interrupted_can_be_finished(directory: Path, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    left = step

    def then_fail(path: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(5, "Input/output error", path)

    def rmtree(path: str) -> None:
        then_fail(path)
        shutil.rmtree(path)

    def unlink(path: str) -> None:
        then_fail(path)
        os.unlink(path)

    monkeypatch.setattr("headwater.common.machine.directories.shutil", SimpleNamespace(rmtree=rmtree))
    monkeypatch.setattr("headwater.common.machine.directories.os", SimpleNamespace(scandir=os.scandir, unlink=unlink))
    with pytest.raises(OSError, match="Input/output"):
        remove_directory(directory, last="LAST")
    assert (directory / "LAST").exists()
    monkeypatch.undo()
    remove_directory(directory, last="LAST")
    assert not directory.exists()
