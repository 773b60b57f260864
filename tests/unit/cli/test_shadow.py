"""`headwater shadow` as far as it goes without a job: words, forks, and programs that do not get there."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.checkpoint.manifest import Manifest
from headwater.checkpoint.paths import CheckpointLayout
from headwater.checkpoint.store import ManifestStore
from headwater.cli.main import main

Out = pytest.CaptureFixture[str]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job's directory with a checkpoint of epoch 4, and one of epoch 5, with which the input ended."""
    layout = CheckpointLayout(tmp_path / "job")
    layout.create()
    store = ManifestStore(layout)
    store.take_over("numbers")
    for epoch, finished in ((4, False), (5, True)):
        store.write(Manifest("job", "numbers", epoch, 1, 0, 0, "", 128, finished=finished))
    return tmp_path / "job"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: --from"),
        (["--from", "x"], "no program given"),
        (["--from", "x", "--epochs", "0", "p.py"], "--epochs: expected a whole number above 0, found '0'"),
        (["--from", "x", "--epochs", "3", "--records=9", "p.py"], "not allowed with argument --epochs"),
        (["--from", "x", "--duration", "soon", "p.py"], "--duration 'soon': expected a time such as 30s"),
        (["--from", "x", "--work-dir", "/nowhere", "p.py"], "--work-dir /nowhere is not a directory"),
        (["--from", "x", "--agains", "p.py"], "unknown option '--agains'"),
    ],
)
def test_bad_words(words: list[str], message: str, capsys: Out) -> None:
    assert main(["shadow", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fork", "message"),
    [
        ("nowhere", "does not exist; expected a savepoint's directory"),
        ("job@7", "epoch 7"),
        ("job", "the input of the job had ended by then; there is nothing left to run"),
    ],
)
def test_bad_forks(fork: str, message: str, job: Path, capsys: Out) -> None:
    assert main(["shadow", "--from", str(job.parent / fork), "program.py"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("headwater shadow: ") and message in told


@pytest.mark.parametrize(
    ("source", "message"),
    [("x = 1", "ended without a call of execute()"), ("1 / 0", "ZeroDivisionError"), (None, "cannot read program")],
    ids=["no job", "raises", "missing"],
)
def test_programs_that_do_not_run(
    source: str | None, message: str, job: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.py"
    if source is not None:
        program.write_text(source)
    assert main(["shadow", "--from", f"{job}@4", str(program)]) == 1
    told = capfd.readouterr()
    assert message in told.err
    assert told.err.endswith(f"headwater shadow: {program} did not run to the end; see above\n")
    assert told.out == ""
