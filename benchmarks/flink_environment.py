"""The PyFlink that headwater is compared with: a local mini cluster, Python in process mode, defaults."""

from __future__ import annotations

import os
import sys

# The JVM that builds the job asks this Python where PyFlink is; set before the gateway starts.
os.environ["PYFLINK_CLIENT_EXECUTABLE"] = sys.executable

from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors import Sink
from pyflink.java_gateway import get_gateway


def flink_environment(parallelism: int, settings: dict[str, str] | None = None) -> StreamExecutionEnvironment:
    """An environment with `settings` on top of the defaults."""
    configuration = Configuration()
    own = {"python.executable": sys.executable, "python.client.executable": sys.executable}
    for name, value in (own | (settings or {})).items():
        configuration.set_string(name, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    return env


def larger_bundles(size: int) -> dict[str, str]:
    """Settings for bundles of up to `size` records, and a state cache as large; none for 0, which is the default."""
    if not size:
        return {}
    return {"python.fn-execution.bundle.size": str(size), "python.state.cache-size": str(size)}


def discarding_sink() -> Sink:
    """Flink's own sink that drops everything, in the JVM."""
    return Sink(get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink())
