"""The planner's result, for the runtime: a line of stages, each a small graph of operators.

The plan is data. It is pickled (cloudpickle) once per job and read by the driver, the Python workers and the slots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from headwater.common.configuration import Configuration
from headwater.common.connector import Sink
from headwater.common.execution_config import ExecutionConfig
from headwater.operators.base import Operator


class Exchange(Enum):
    """How an edge chooses the target partition of a record."""

    FORWARD = "forward"  # partition i -> partition i (rebalance where the parallelism differs)
    HASH = "hash"  # by the key group of `key_selector(record)`
    REBALANCE = "rebalance"
    SHUFFLE = "shuffle"  # pseudo-random, but the same on replay
    RESCALE = "rescale"
    BROADCAST = "broadcast"
    GLOBAL = "global"
    CUSTOM = "custom"  # `partitioner(key_selector(record), parallelism)`
    SPLIT = "split"  # a record is many rows: `splitter(record, max_parallelism, parallelism)` cuts it by partition


Splitter = Callable[[Any, int, int], list[tuple[int, Any]]]
"""(record, max parallelism, parallelism): the parts of the record, each with its target partition."""


@dataclass(frozen=True)
class InputSpec:
    """One input of an operator.

    `upstream` is the id of an operator or source. With `chained` the upstream operator is in the same stage and calls
    this one directly; otherwise the records travel as chunks through `exchange` from `upstream`'s stage to this one.
    """

    upstream: int
    input_index: int = 0
    side_tag: str | None = None
    exchange: Exchange = Exchange.FORWARD
    chained: bool = True
    key_selector: Callable[[Any], Any] | None = None
    partitioner: Callable[[Any, int], int] | None = None
    splitter: Splitter | None = None


@dataclass(frozen=True)
class OperatorSpec:
    """One operator of the job. `factory` makes a fresh, not yet set up operator; it is called in every partition."""

    id: int
    uid: str
    name: str
    factory: Callable[[], Operator]
    inputs: tuple[InputSpec, ...]
    parallelism: int
    stage: int
    keyed: bool = False
    needs_slot: bool = False
    """It has keyed state, timers or operator state, so it must run in a slot, in a stage > 0."""
    sink: Sink | None = None
    """Set for sink operators. The driver makes the committer from it."""


@dataclass(frozen=True)
class SourceSpec:
    """One source of the job; always in stage 0. `source` is a `common.connector.Source` or a `DataFrameSource`."""

    id: int
    uid: str
    name: str
    source: Any
    parallelism: int


@dataclass(frozen=True)
class StageSpec:
    """The operators between two shuffles, in topological order. `parallelism` is the largest of its operators'."""

    index: int
    parallelism: int
    operators: tuple[OperatorSpec, ...]

    @property
    def needs_slot(self) -> bool:
        return any(operator.needs_slot for operator in self.operators)


@dataclass(frozen=True)
class JobPlan:
    """The whole job. `stages[0]` holds the operators chained to the sources (it may be empty)."""

    name: str
    max_parallelism: int
    sources: tuple[SourceSpec, ...]
    stages: tuple[StageSpec, ...]
    batch_mode: bool = False
    needs_ticks: bool = False
    """There are processing-time timers or idleness, so epochs must run even without data."""
    settings: Configuration = field(default_factory=Configuration)
    """The job's configuration, resolved, for operators and the runtime."""

    @property
    def job_parameters(self) -> dict[str, str]:
        """What functions read from their RuntimeContext."""
        return ExecutionConfig(self.settings).get_global_job_parameters()

    def operator(self, operator_id: int) -> OperatorSpec:
        for stage in self.stages:
            for operator in stage.operators:
                if operator.id == operator_id:
                    return operator
        raise KeyError(operator_id)

    def with_names(self, text: str) -> str:
        """Return `text` with the operators' uids, which the state layer uses, replaced by the program's names."""
        for stage in self.stages:
            for operator in stage.operators:
                if operator.name != operator.uid:
                    text = text.replace(f"operator '{operator.uid}'", f"operator '{operator.name}' ({operator.uid})")
        return text
