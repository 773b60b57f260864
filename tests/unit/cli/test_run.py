"""Programs run as Python would run them; jobs go to an executor that only looks at them."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headwater.cli.main import main
from headwater.common.config.session_defaults import set_session_defaults
from headwater.common.configuration import Configuration
from headwater.common.errors import JobFailedError, UserCodeError
from headwater.compat import pyflink_imports
from headwater.datastream.executor import set_executor
from headwater.graph.plan import JobPlan

HEAD = """
from pyflink.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
"""
JOB = "env.from_collection([1]).map(lambda x: x).print()\nenv.execute()\n"


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """`run(source, *words after the program)`; what a program does to the process is undone."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])

    def run(source: str, *words: str) -> Ended:
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["run", str(path), *words])
        return Ended(code, out.getvalue(), err.getvalue())

    yield run
    pyflink_imports.uninstall()
    set_session_defaults(Configuration())


class Refusing:
    """An executor that fails every job with one error."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.configurations: list[Configuration] = []

    def launch(self, plan: JobPlan, configuration: Configuration, replan: Any = None) -> Any:
        self.configurations.append(configuration)
        raise self.error


@pytest.fixture
def failing() -> Iterator[Callable[[BaseException], Refusing]]:
    def install(error: BaseException) -> Refusing:
        executor = Refusing(error)
        set_executor(executor)
        return executor

    yield install
    set_executor(None)


def test_a_program_is_main_with_its_arguments_and_its_directory(run: Run, tmp_path: Path) -> None:
    ended = run("import sys; print(__name__, __file__ == sys.argv[0], sys.argv[1:], sys.path[0])", "-p", "2", "a", "-b")
    assert ended == (0, f"__main__ True ['a', '-b'] {tmp_path}\n", "")


def test_modules_beside_the_program_are_found_and_may_import_pyflink(run: Run, tmp_path: Path) -> None:
    name = "beside_the_program"
    (tmp_path / f"{name}.py").write_text("from pyflink.datastream import MapFunction\nclass F(MapFunction): pass\n")
    try:
        assert (
            run(f"import {name}; print({name}.F.__mro__[1].__module__)").out == "headwater.operators.functions.plain\n"
        )
    finally:
        sys.modules.pop(name, None)


def test_the_command_line_is_the_base_and_the_program_wins(run: Run) -> None:
    source = """
    from pyflink.common import Configuration
    from pyflink.datastream import StreamExecutionEnvironment
    get = StreamExecutionEnvironment.get_execution_environment
    configuration = Configuration().set_integer("parallelism.default", 5)
    print(get().get_parallelism(), get(configuration).get_parallelism(), get().set_parallelism(6).get_parallelism())
    print(get(configuration).get_max_parallelism())
    """
    assert run(source, "-p", "3", "-D", "pipeline.max-parallelism=64").out == "3 5 6\n64\n"


def test_the_command_line_wins_over_environment_variables(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_PARALLELISM_DEFAULT", "7")
    assert run(HEAD + "print(env.get_parallelism())").out == "7\n"
    assert run(HEAD + "print(env.get_parallelism())", "-p", "2").out == "2\n"


def test_keys_without_effect_are_one_line_each(run: Run) -> None:
    from headwater.common.config.resolution import forget_warnings

    forget_warnings()
    ended = run("", "-D", "taskmanager.numberOfTaskSlots=4", "-D", "parallelism.defalt=1")
    assert ended.code == 0
    assert ended.err.splitlines() == [
        "headwater run: warning: setting 'taskmanager.numberOfTaskSlots' is one of Flink's that has no effect "
        "in headwater",
        "headwater run: warning: unknown setting 'parallelism.defalt' is ignored; did you mean 'parallelism.default'?",
    ]


def test_a_warning_about_a_key_brings_no_others_with_it(tmp_path: Path) -> None:
    """Python's last filters hold when the interpreter ends; then it would name what is open, as Spark's connection."""
    program = tmp_path / "program.py"
    program.write_text("class Kept:\n    file = open(__file__)\n", encoding="utf-8")
    command = [sys.executable, "-m", "headwater", "run", "-D", "rest.path=x", str(program)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stderr.splitlines() == [
        "headwater run: warning: setting 'rest.path' is one of Flink's that has no effect in headwater"
    ]


def test_the_exit_code_of_the_program_is_ours(run: Run) -> None:
    with pytest.raises(SystemExit) as ended:
        run("import sys; sys.exit(7)")
    assert ended.value.code == 7


def test_an_error_of_the_program_looks_as_in_python(run: Run, tmp_path: Path) -> None:
    ended = run("def f():\n    return 1 / 0\n\n\nf()\n")
    assert ended.code == 1
    lines = ended.err.splitlines()
    assert lines[:2] == ["Traceback (most recent call last):", f'  File "{tmp_path}/program.py", line 5, in <module>']
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "headwater/cli" not in ended.err


def test_a_syntax_error_names_the_line(run: Run) -> None:
    ended = run("x = 1\ndef (\n")
    assert ended.code == 1
    assert 'program.py", line 2' in ended.err and "SyntaxError" in ended.err


def test_a_failed_function_shows_its_own_traceback_first(
    run: Run, failing: Callable[[BaseException], Refusing]
) -> None:
    failing(UserCodeError("Map", "42", 3, "Traceback (most recent call last):\nValueError: no\n", "ValueError('no')"))
    ended = run(HEAD + JOB)
    assert ended.code == 1
    assert ended.err == (
        "Traceback (most recent call last):\nValueError: no\n"
        "headwater: job failed: operator 'Map', epoch 3, record 42: ValueError('no')\n"
    )


def test_another_failure_is_one_line_with_the_place(run: Run, failing: Callable[[BaseException], Refusing]) -> None:
    failing(JobFailedError("epoch 3 failed 10 times"))
    assert run(HEAD + JOB) == (1, "", "headwater: program.py:5: epoch 3 failed 10 times\n")


def test_a_bad_plan_is_one_line_with_the_place(run: Run) -> None:
    ended = run(HEAD + "env.set_parallelism(0)\n")
    assert ended.code == 1
    assert ended.err == "headwater: program.py:4: set_parallelism() expects a whole number of at least 1, found 0\n"


def test_a_program_that_forgets_to_execute_is_told(run: Run, failing: Callable[[BaseException], Refusing]) -> None:
    code, out, err = run(HEAD + "def main():\n    env.from_collection([1]).print()\nmain()\n")
    assert code == 0 and not out
    assert err.startswith("headwater: the program has ended, and nothing was written to 'Print")
    assert run(HEAD + "env.from_collection([1])\n").err == ""
    failing(ValueError())
    executed = JOB.replace("env.execute()", "try:\n    env.execute()\nexcept ValueError:\n    pass")
    assert run(HEAD + executed).err == ""


def test_ctrl_c_is_130(run: Run, failing: Callable[[BaseException], Refusing]) -> None:
    failing(KeyboardInterrupt())
    assert run(HEAD + JOB) == (130, "", "headwater: interrupted\n")


def test_what_is_missing_is_named_with_a_reason(run: Run) -> None:
    ended = run("from pyflink.table.module import Module\n")
    assert ended.code == 1
    assert "ModuleNotFoundError: headwater does not have pyflink.table.module (not yet): " in ended.err
    assert "pyflink_imports.py" not in ended.err


def test_settings_reach_the_job(run: Run, failing: Callable[[BaseException], Refusing]) -> None:
    executor = failing(JobFailedError("seen"))
    run(HEAD + JOB, "-p", "2", "-m", "local[2]", "-c", "/tmp/somewhere", "-D", "spark.executor.memory=2g")
    (configuration,) = executor.configurations
    found = configuration.to_dict()
    assert found["parallelism.default"] == "2"
    assert found["headwater.master"] == "local[2]"
    assert found["execution.checkpointing.dir"] == "/tmp/somewhere"
    assert found["spark.executor.memory"] == "2g"


def test_looking_at_the_version_imports_neither_spark_nor_the_runtime() -> None:
    code = (
        "import sys; from headwater.cli.main import main; main(['--version']); "
        "print([m for m in sys.modules if m.startswith(('pyspark', 'headwater.runtime', 'headwater.datastream'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
