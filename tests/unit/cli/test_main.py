"""The command line without a job: verbs, versions, settings, wrong usage."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headwater import __version__
from headwater.cli.main import VERBS, main
from headwater.common.config_options import OPTIONS


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith(f"headwater {__version__} (Python 3.")


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "headwater", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("headwater ")


def test_help_is_help_and_no_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert main([]) == 2
    assert capsys.readouterr().out == shown
    for verb in ("run", "config", "demo"):
        assert f"\n  {verb} " in shown


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["rnu", "x.py"], "headwater: unknown command 'rnu'; did you mean 'run'?"),
        (["confg"], "headwater: unknown command 'confg'; did you mean 'config'?"),
        (["--vresion"], "headwater: unknown option '--vresion'; did you mean '--version'?"),
        (["zzz"], "headwater: unknown command 'zzz'; see headwater --help"),
        (["job.py"], "headwater: unknown command 'job.py'; did you mean 'headwater run job.py'?"),
        (["run"], "headwater run: no program given; see headwater run --help"),
        (
            ["run", "--paralelism", "2", "x.py"],
            "headwater run: unknown option '--paralelism'; did you mean '--parallelism'?",
        ),
        (
            ["run", "-D", "nonsense", "x.py"],
            "headwater run: -D nonsense: expected key=value, for example -D parallelism.default=2",
        ),
        (
            ["savepoint", "diff", "anywhere", "-D", "nonsense", "x.py"],
            "headwater savepoint diff: -D nonsense: expected key=value, for example -D parallelism.default=2",
        ),
        (
            ["shadow", "--from", "anywhere", "-D", "nonsense", "x.py"],
            "headwater shadow: -D nonsense: expected key=value, for example -D parallelism.default=2",
        ),
        (["run", "-p"], "headwater run: no program given; see headwater run --help"),
        (["run", "no/such.py"], "headwater run: cannot read program 'no/such.py': No such file or directory"),
        (["run", "-p", "many", "x.py"], "headwater run: parallelism.default: expected a whole number, found 'many'"),
        (
            ["run", "-Dexecution.runtime-mode=FAST", "x.py"],
            "headwater run: execution.runtime-mode: expected one of STREAMING, BATCH, AUTOMATIC, found 'FAST'",
        ),
        (
            ["config", "paralelism"],
            "headwater config: no setting has 'paralelism' in its key; did you mean 'parallelism.default'?",
        ),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(given: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(given) == 2
    assert capsys.readouterr().err == f"{said}\n"


@pytest.mark.parametrize("given", [["info", "--help"], ["help", "info"]])
def test_help_of_a_command_is_about_that_command(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith("usage: headwater info [options] program.py") and "plan of its job" in shown


def test_help_of_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    for option in ("-p", "-D", "-m", "-c", "pyflink", "exit codes"):
        assert option in shown


def test_config_lists_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config"]) == 0
    shown = capsys.readouterr().out
    for option in OPTIONS:
        assert f"{option.key}\n" in shown
        assert option.environment_variable in shown
    assert "default: 1 s" in shown
    assert "type: duration" in shown


def test_config_of_one_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "fixed-delay"]) == 0
    shown = capsys.readouterr().out
    keys = [line for line in shown.splitlines() if line and not line.startswith(" ")]
    assert keys == ["restart-strategy.fixed-delay.attempts", "restart-strategy.fixed-delay.delay"]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main([verb, "--help"])
    except SystemExit as exit:
        code = int(exit.code or 0)
    assert code == 0
    assert "usage: " in capsys.readouterr().out
