"""Which words of a command line are ours, and what becomes of them."""

from __future__ import annotations

import pytest

from headwater.cli.run_arguments import parse_run_arguments


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
        ("job.py -n 5", ["-n", "5"], {}),
        ("job.py -s salt", ["-s", "salt"], {}),
    ],
)
def test_words(line: str, arguments: list[str], settings: dict[str, str]) -> None:
    assert parsed(line) == ("job.py", arguments, settings)
