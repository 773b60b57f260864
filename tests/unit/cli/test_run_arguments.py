"""Which words of a command line are ours, and what becomes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.cli.run_arguments import parse_run_arguments
from headwater.cli.usage import UsageError


def parsed(line: str) -> tuple[str, list[str], dict[str, str]]:
    found = parse_run_arguments(line.split())
    return found.program, found.arguments, found.settings.to_dict()


@pytest.mark.parametrize(
    ("line", "arguments", "settings"),
    [
        ("job.py", [], {}),
        ("job.py a b", ["a", "b"], {}),
        ("-p 3 job.py", [], {"parallelism.default": "3"}),
        ("-p3 job.py", [], {"parallelism.default": "3"}),
        ("--parallelism=3 job.py", [], {"parallelism.default": "3"}),
        ("job.py -p 3", [], {"parallelism.default": "3"}),
        ("job.py -p 3 x -p 4", ["x", "-p", "4"], {"parallelism.default": "3"}),
        ("-p 3 job.py --input x", ["--input", "x"], {"parallelism.default": "3"}),
        ("job.py -- -p 3", ["-p", "3"], {}),
        ("job.py --help", ["--help"], {}),
        ("-D a.b=1 -Dc.d=x=y job.py", [], {"a.b": "1", "c.d": "x=y"}),
        ("-D a.b= job.py", [], {"a.b": ""}),
        ("job.py -Da.b=1 -Data", ["-Data"], {"a.b": "1"}),
        ("-m local[3] -c /tmp/c job.py", [], {"headwater.master": "local[3]", "execution.checkpointing.dir": "/tmp/c"}),
        ("-D parallelism.default=2 -p 5 job.py", [], {"parallelism.default": "5"}),
        ("-s /sp job.py", [], {"execution.state-recovery.path": "/sp"}),
        ("--from-savepoint=/job@7 job.py", [], {"execution.state-recovery.path": "/job@7"}),
        ("-n job.py", [], {"execution.state-recovery.ignore-unclaimed-state": "true"}),
        (
            "job.py --from-savepoint /sp --claim --allow-non-restored-state x",
            ["x"],
            {
                "execution.state-recovery.path": "/sp",
                "execution.state-recovery.claim-mode": "CLAIM",
                "execution.state-recovery.ignore-unclaimed-state": "true",
            },
        ),
        ("-cm claim job.py", [], {"execution.state-recovery.claim-mode": "CLAIM"}),
        ("--claimMode no_claim job.py", [], {"execution.state-recovery.claim-mode": "NO_CLAIM"}),
        ("-rm NO_CLAIM job.py", [], {"execution.state-recovery.claim-mode": "NO_CLAIM"}),
        ("job.py -cm x", ["-cm", "x"], {}),
        ("job.py -n 5", ["-n", "5"], {}),
        ("job.py -s salt", ["-s", "salt"], {}),
    ],
)
def test_words(line: str, arguments: list[str], settings: dict[str, str]) -> None:
    assert parsed(line) == ("job.py", arguments, settings)


@pytest.mark.parametrize(("mode", "why"), [("legacy", "Flink 2 has removed it"), ("x", "it is not known")])
def test_a_claim_mode_that_there_is_not(mode: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"-cm {mode}: {why}; expected claim or no_claim"):
        parsed(f"-cm {mode} job.py")


def test_a_module_is_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "jobs"
    package.mkdir()
    (package / "main.py").write_text("")
    (package / "__main__.py").write_text("")
    (tmp_path / "single.py").write_text("")
    monkeypatch.chdir(package)
    for line, program in (
        (f"-pyfs {package} -pym jobs.main", package / "main.py"),
        (f"-pym jobs -pyfs {package} --input x", package / "__main__.py"),
        (f"-pyfs {tmp_path}/single.py --pyModule single", tmp_path / "single.py"),
        ("-pym main", package / "main.py"),
    ):
        assert parsed(line)[0] == str(program), line
    assert parsed(f"-pym jobs -pyfs {package} --input x")[1] == ["--input", "x"]


def test_targets_and_workers_python(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parsed("-pyexec /opt/python job.py")[2] == {"python.executable": "/opt/python"}
    assert parse_run_arguments(["-t", "local", "job.py"]).server is None
    monkeypatch.setenv("HEADWATER_REST_ADDRESS", "flink.example")
    assert parse_run_arguments(["-t", "remote", "-d", "job.py"]).server == "flink.example:8081"
    assert parse_run_arguments(["job.py"]).server is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-t remote job.py", "-t remote: no server is known; set rest.address"),
        ("-t yarn-application job.py", "-t yarn-application: expected local .* or remote"),
        ("-pyarch data.zip job.py", "-pyarch data.zip: archives are not unpacked"),
        ("-pyclientexec python3 job.py", "start headwater with the other one"),
        ("-pym no.such", "-pym no.such: there is no such module"),
        ("-pym a -py b.py", "both -py b.py and -pym a name the program"),
    ],
)
def test_what_cannot_mean_anything_here_says_what_to_do(line: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_run_arguments(line.split())
