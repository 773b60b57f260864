"""The program in README.md: from the command to its first line, and how long it takes to say that it is finished.

Cold, it finds neither a class archive nor any bytecode; the system's page cache is as it is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from benchmarks.workload import arguments, report
from headwater.common.machine.java import require_java
from headwater.runtime.spark import class_archive, session

ROOT = Path(__file__).resolve().parents[2]
NO_ARCHIVE = f"spark.driver.extraJavaOptions={session.jvm_options('off')} -Dbenchmark.without=Archive"


def first_line_s(command: list[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        seconds = time.perf_counter() - started
        process.stdout.read()
    if process.returncode:
        raise SystemExit(f"the README's program ended with {process.returncode}")
    return seconds


def main() -> None:
    cold = arguments(cold="false").cold == "true"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program = re.search(r"^```python\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    assert program is not None
    Path("count.py").write_text(program[1], encoding="utf-8")
    if not cold and class_archive.find(require_java(), Path(_find_spark_home())) is None:
        subprocess.run([sys.executable, "-m", "headwater.runtime.spark.write_class_archive"], check=True)
    with tempfile.TemporaryDirectory() as no_bytecode:
        environment = os.environ | ({"PYTHONPYCACHEPREFIX": no_bytecode} if cold else {})
        command = [sys.executable, "-m", "headwater", "run", "-c", "count-state"]
        command += ["-D", NO_ARCHIVE, "count.py"] if cold else ["count.py"]
        first = first_line_s(command, environment)
        started = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        report(first_line_s=first, again_s=time.perf_counter() - started)


if __name__ == "__main__":
    main()
