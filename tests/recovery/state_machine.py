"""Machines that must follow legal transitions: an event that is lost, doubled or out of order shows as an illegal one.

``python -m tests.recovery.state_machine SETTINGS`` runs or resumes the job, as `tests.recovery.driver` does.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import Any

from headwater.common import Encoder, WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.file_system import FileSink, RollingPolicy
from headwater.datastream.state import ValueStateDescriptor
from headwater.runtime.slot import full_snapshot
from tests.recovery import engines_used
from tests.recovery.driver import run

RATE = "RECOVERY_TEST_RATE"
"""Environment variable: events per second. Without it, as fast as can be."""
MACHINES = 20_000
STATES = ("off", "starting", "running", "draining", "stopped")
"""Each leads to the next only, and the last to the first."""


def event(index: int) -> tuple[int, str]:
    """Event `index`: the machines take turns, each goes through the states from one of its own."""
    machine, step = index % MACHINES, index // MACHINES
    return machine, STATES[(machine + step) % len(STATES)]


class CheckTransitions(KeyedProcessFunction):
    """One line per event: the machine, how many events it has seen, and whether this one was legal."""

    def open(self, runtime_context: RuntimeContext) -> None:
        full_snapshot.MAX_DELTAS = 10  # in the slot: full snapshots are written while things die
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def process_element(self, value: tuple[int, str], ctx: KeyedProcessFunction.Context) -> Any:
        machine, state = value
        count, last = self.seen.value() or (0, None)
        legal = last is None or STATES[(STATES.index(last) + 1) % len(STATES)] == state
        self.seen.update((count + 1, state))
        yield f"{machine} {count + 1} {'legal' if legal else f'ILLEGAL {last} -> {state}'}"


def build(env: StreamExecutionEnvironment, records: int, output: str) -> None:
    engines_used.install()
    # One split: the order of a machine's events is then the source's.
    rate = float(os.environ[RATE]) if RATE in os.environ else None
    events = DataGeneratorSource(event, records, rate_per_second=rate)
    source = env.from_source(events, WatermarkStrategy.no_watermarks(), "events")
    checked = source.set_parallelism(1).key_by(lambda each: each[0]).process(CheckTransitions()).uid("transitions")
    checked.sink_to(
        FileSink.for_row_format(output, Encoder.simple_string_encoder())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .build()
    )


def expected(records: int) -> Counter[str]:
    return Counter(f"{index % MACHINES} {index // MACHINES + 1} legal" for index in range(records))


if __name__ == "__main__":
    run(sys.argv[1], "machines", build)
