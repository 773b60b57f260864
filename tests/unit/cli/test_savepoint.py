"""`headwater savepoint`, and the example of docs/evolution.md from its first version to its second."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "evolve_state"


def python(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own: a program's classes are those of its `__main__`."""
    return subprocess.run(
        [sys.executable, "-m", *map(str, words)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def run_job(job: Path, program: Path, orders: Path) -> list[str]:
    ended = python("tests.unit.cli.run_in_process", job, program, orders)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def rows(text: str) -> list[list[str]]:
    """The cells of the table; a column begins where two spaces end the one before."""
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines() if "  " in line]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A job's directory after version 1 has run, and its input."""
    base = tmp_path_factory.mktemp("orders")
    job, orders = base / "job", base / "in"
    orders.mkdir()
    (orders / "1.txt").write_text("ann,tea,3\nbob,cake,4\nann,milk,5\n")
    assert run_job(job, EXAMPLE / "orders_v1.py", orders) == [
        "ann: 1 orders, 3 in all; before this one: nothing",
        "bob: 1 orders, 4 in all; before this one: nothing",
        "ann: 2 orders, 8 in all; before this one: tea for 3",
    ]
    return job, orders


def test_the_example_goes_on_with_the_state_of_its_first_version(places: tuple[Path, Path], tmp_path: Path) -> None:
    job, orders = places
    diff = python("headwater", "savepoint", "diff", job, EXAMPLE / "orders_v2.py", orders)
    assert (diff.returncode, diff.stderr) == (0, "")
    assert rows(diff.stdout)[1:] == [
        ["accounts", "account", "migrated",
         "Account: 'total' from int to float, 'level' is new, another order of fields"],
        ["accounts", "last order", "migrated", "from version 1 to 2"],
        ["orders", "positions", "same"],
    ]  # fmt: skip

    copied = tmp_path / "job"
    subprocess.run(["cp", "-r", job, copied], check=True)
    (orders / "2.txt").write_text("ann,pie,2.5\nbob,tea,6.25\n")
    assert run_job(copied, EXAMPLE / "orders_v2.py", orders) == [
        "ann (gold): 3 orders, 10.50 in all; before: Order(item='milk', price=5.0)",
        "bob (gold): 2 orders, 10.25 in all; before: Order(item='cake', price=4.0)",
    ]
    (orders / "3.txt").write_text("ann,tea,1\n")  # from a chain of snapshots in both forms
    assert run_job(copied, EXAMPLE / "orders_v2.py", orders) == [
        "ann (gold): 4 orders, 11.50 in all; before: Order(item='pie', price=2.5)"
    ]

    back = python("headwater", "savepoint", "diff", copied, EXAMPLE / "orders_v1.py", orders)
    assert back.returncode == 1
    assert "field 'total' of Account was 'float' and is 'int'." in back.stdout
    assert back.stdout.endswith("1 same, 2 incompatible; the job would refuse to start\n")


def test_a_program_that_does_not_fit_is_refused_before_anything_is_written(
    places: tuple[Path, Path], tmp_path: Path
) -> None:
    job, orders = places
    program = tmp_path / "wrong.py"
    text = (EXAMPLE / "orders_v1.py").read_text().replace("    total: int\n", "    total: str\n")
    program.write_text(text)
    before = sorted((path, path.stat().st_mtime_ns) for path in job.rglob("*") if path.is_file())
    ended = python("tests.unit.cli.run_in_process", job, program, orders)
    assert ended.returncode != 0
    assert "state 'account' of operator '" in ended.stderr  # its name, and then its uid
    assert "(accounts) cannot be restored: field 'total' of Account was 'int' and is 'str'." in ended.stderr
    assert sorted((path, path.stat().st_mtime_ns) for path in job.rglob("*") if path.is_file()) == before


def test_a_renamed_operator_is_found_with_the_mapping_that_its_start_will_have(
    places: tuple[Path, Path], tmp_path: Path
) -> None:
    job, orders = places
    program = tmp_path / "renamed.py"
    program.write_text((EXAMPLE / "orders_v1.py").read_text().replace('uid("accounts")', 'uid("customers")'))

    def diff(*options: str) -> tuple[int, str]:
        ended = python("headwater", "savepoint", "diff", job, *options, program, orders)
        return ended.returncode, ended.stdout + ended.stderr

    code, told = diff()
    assert code == 1
    assert [row[:3] for row in rows(told)[1:3]] == [["accounts", "account", "lost"], ["accounts", "last order", "lost"]]
    assert "headwater.state-recovery.uid-mapping=old:new" in told
    code, told = diff("-Dheadwater.state-recovery.uid-mapping=accounts:customers")
    assert (code, [row[:3] for row in rows(told)[1:]]) == (
        0,
        [["customers", "account", "same"], ["customers", "last order", "same"], ["orders", "positions", "same"]],
    )
    code, told = diff("-Dheadwater.state-recovery.uid-mapping=accuonts:customers")
    assert code == 1 and "has no uid 'accuonts'" in told and "did you mean 'accounts'?" in told


def test_inspect_needs_no_program(places: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", "inspect", str(places[0])]) == 0
    out = capsys.readouterr().out
    assert out.startswith("checkpoint of job 'orders per customer'")
    assert [row[:6] for row in rows(out)[1:]] == [
        ["accounts", "KEYED PROCESS", "account", "value", "1", "2"],
        ["accounts", "KEYED PROCESS", "last order", "value", "1", "2"],
    ]


def test_list_shows_what_a_job_retains(places: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", "list", str(places[0])]) == 0
    listed = rows(capsys.readouterr().out)
    assert listed[0][:3] == ["PATH", "JOB", "EPOCH"]
    assert listed[-1][0].endswith(".manifest") and listed[-1][1] == "orders per customer"


def test_dispose_refuses_a_jobs_directory(places: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", "dispose", str(places[0])]) == 1
    assert "only a savepoint can be disposed of" in capsys.readouterr().err
    assert (places[0] / "manifests").is_dir()


def test_savepoints_are_listed_and_disposed_of(
    places: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from headwater.checkpoint.savepoint.savepoint import open_savepoint, write_savepoint

    opened = open_savepoint(places[0])
    write_savepoint(opened.layout, opened.manifest, tmp_path / "sp-1")
    assert main(["savepoint", "list", str(tmp_path)]) == 0
    assert rows(capsys.readouterr().out)[1][:2] == [str(tmp_path / "sp-1"), "orders per customer"]
    assert main(["savepoint", "dispose", str(tmp_path / "sp-1")]) == 0
    assert not (tmp_path / "sp-1").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["difff"], 2, "unknown command 'difff'; did you mean 'diff'?"),
        (["diff", "/nowhere"], 2, "no program given"),
        (["diff", "/nowhere", "x.py"], 1, "/nowhere does not exist; expected a savepoint's directory"),
        (["inspect"], 2, "the following arguments are required: SAVEPOINT"),
        (["list", "/nowhere"], 1, "/nowhere does not exist; expected a directory with savepoints"),
        (["list", "/dev"], 1, "/dev has neither savepoints nor checkpoints; expected a directory with savepoints"),
    ],
)
def test_bad_words(words: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["savepoint", *words]) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "message"),
    [("x = 1", "ended without a call of execute()"), ("1 / 0", "ZeroDivisionError")],
    ids=["no job", "raises"],
)
def test_programs_without_a_plan(places: tuple[Path, Path], tmp_path: Path, source: str, message: str) -> None:
    (tmp_path / "program.py").write_text(source)
    ended = python("headwater", "savepoint", "diff", places[0], tmp_path / "program.py")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert message in ended.stderr
