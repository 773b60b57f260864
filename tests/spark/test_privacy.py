"""What other users of the machine can see and reach of a job's Spark: neither its secrets nor its sockets."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECRET = r"hush = \x"

PROGRAM = """
import json, os, sys
from pathlib import Path
import psutil
from pyspark import SparkContext
from headwater.common import Configuration
from headwater.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(json.loads(sys.argv[1])))
env.from_collection(range(10)).map(lambda number: number + 1).key_by(lambda number: number % 3).reduce(max).print()
env.execute()
processes = psutil.Process().children(recursive=True)
print(json.dumps({
    "commands": [process.as_dict(["cmdline"])["cmdline"] or [] for process in processes],
    "secret": SparkContext._active_spark_context._conf.get("spark.hadoop.fs.s3a.secret.key"),
    "listening": [line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines() if ".sock" in line],
}))
"""


@pytest.fixture
def temporary() -> Iterator[Path]:
    directory = tempfile.mkdtemp(prefix="hw", dir="/tmp")  # a socket's path must be short
    yield Path(directory)
    shutil.rmtree(directory, ignore_errors=True)  # a fork server that ends removes its socket at this moment


@pytest.mark.timeout(120)
@pytest.mark.parametrize("submit", [None, "--conf spark.x=y pyspark-shell"], ids=["direct", "spark-submit"])
def test_neither_secrets_nor_sockets_are_for_others(temporary: Path, submit: str | None) -> None:
    environ = os.environ | {"XDG_STATE_HOME": str(temporary), "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)}
    environ.pop("PYSPARK_SUBMIT_ARGS", None)
    environ["JDK_JAVA_OPTIONS"] = f"-Djava.io.tmpdir={temporary}"
    if submit is not None:
        environ["PYSPARK_SUBMIT_ARGS"] = submit
    settings = {"headwater.master": "local[2]", "spark.hadoop.fs.s3a.secret.key": SECRET}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(settings)],
        env=environ,
        umask=0o002,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    facts = json.loads(ended.stdout.splitlines()[-1])
    assert facts["secret"] == SECRET
    java = [command for command in facts["commands"] if command and command[0].endswith("java")]
    assert len(java) == 1 and "org.apache.spark.deploy.SparkSubmit" in java[0]
    assert not [word for command in facts["commands"] for word in command if "hush" in word]
    ours = [Path(path) for path in facts["listening"] if path.startswith(str(temporary))]
    spark = {path.parent for path in ours if path.name.startswith(".")}
    assert len(spark) == 1 and spark.pop().name.startswith("py-")
    assert {path.parent.parent.name for path in ours} <= {f"headwater-{os.geteuid()}", temporary.name}
    own = temporary / f"headwater-{os.geteuid()}"
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert not [path for path in own.iterdir() if path.name.startswith("py-")], "the sockets' directory stayed behind"
