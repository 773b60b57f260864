"""Starts the driver's JVM for PySpark, without the detours of `spark-submit`.

`bin/spark-submit` is a shell script that starts one JVM to compute the command line of another, which then prints a
warning about a module that only Spark's ML needs. Starting the second JVM directly saves a second or two, and keeps the
terminal quiet. PySpark connects to it as to any existing gateway.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.serializers import UTF8Deserializer, read_int

from headwater.common.errors import ConfigurationError
from headwater.runtime.spark import class_archive
from headwater.runtime.spark.settings_file import options_for_spark_submit

START_SECONDS = 120

# The options of Spark's own launcher (org.apache.spark.launcher.JavaModuleOptions), without the incubator module.
_MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in (
            "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util",
            "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs",
            "sun.security.action", "sun.util.calendar",
        )
    ),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--enable-native-access=ALL-UNNAMED",
)  # fmt: skip


def can_start_directly(master: str, confs: Mapping[str, str]) -> bool:
    """Return True if the job needs nothing of spark-submit but a JVM: no packages, class paths or deploy modes."""
    special = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath", "spark.submit.deployMode")
    return (
        master.startswith("local")
        and "PYSPARK_GATEWAY_PORT" not in os.environ
        and "PYSPARK_SUBMIT_ARGS" not in os.environ
        and not os.environ.get("SPARK_CONF_DIR")
        and not any(key in confs for key in special)
    )


def class_path(spark_home: str | Path) -> str:
    """Return the class path of the driver's JVM."""
    return f"{spark_home}/conf/:{spark_home}/jars/*"


def start_gateway(java: str, confs: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the JVM, and put its address into environment variables, for PySpark. The JVM ends with this process."""
    home = Path(_find_spark_home())
    directory = tempfile.mkdtemp(prefix="headwater-gateway-")
    connection_file = Path(directory) / "connection"
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_ENV_LOADED": "1",
        "SPARK_SCALA_VERSION": "2.13",  # as in load-spark-env.sh; executors of a local-cluster need it
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection_file),
    }
    command = [
        java,
        *confs["spark.driver.extraJavaOptions"].split(),
        *_MODULE_OPTIONS,
        *_archive_options(java, home, confs),
        f"-Xmx{confs['spark.driver.memory']}",
        "-cp",
        class_path(home),
        "org.apache.spark.deploy.SparkSubmit",
        *options_for_spark_submit(confs, directory),
        "pyspark-shell",
    ]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,  # the gateway ends when this pipe breaks
            env=environment,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # Ctrl-C must not end the JVM
        )
        deadline = time.monotonic() + START_SECONDS
        while not connection_file.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        if not connection_file.exists():
            process.kill()
            raise ConfigurationError(
                f"Spark's JVM ({java}) did not start; run it by hand to see why: {' '.join(command[:1])} -version"
            )
        with connection_file.open("rb") as file:
            os.environ["PYSPARK_GATEWAY_PORT"] = str(read_int(file))
            os.environ["PYSPARK_GATEWAY_SECRET"] = UTF8Deserializer().loads(file)
        return process
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def start_with_spark_submit(confs: Mapping[str, str]) -> None:
    """Let PySpark start the JVM, with all that spark-submit does. By itself it would put `confs` on a command line."""
    given = os.environ.get("PYSPARK_SUBMIT_ARGS")
    directory = tempfile.mkdtemp(prefix="headwater-gateway-")
    try:
        options = shlex.join(options_for_spark_submit(confs, directory))
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"{options} {given or 'pyspark-shell'}"
        SparkContext._ensure_initialized()
    finally:
        os.environ.pop("PYSPARK_SUBMIT_ARGS", None)
        if given is not None:
            os.environ["PYSPARK_SUBMIT_ARGS"] = given
        shutil.rmtree(directory, ignore_errors=True)


def _archive_options(java: str, home: Path, confs: Mapping[str, str]) -> tuple[str, ...]:
    """Use the class archive, unless the settings name another one."""
    if "Archive" in confs["spark.driver.extraJavaOptions"]:
        return ()
    return class_archive.jvm_options(class_archive.find(java, home))


def forget_address() -> None:
    """Remove the JVM's address from the environment. PySpark is connected, and child processes do not need it."""
    os.environ.pop("PYSPARK_GATEWAY_PORT", None)
    os.environ.pop("PYSPARK_GATEWAY_SECRET", None)
