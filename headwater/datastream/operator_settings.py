"""Settings of the operator behind a stream or a sink: name, uid, parallelism, chaining."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any, Self

from headwater.common.errors import PlanError, TypeMismatchError
from headwater.datastream.no_effect import warn_no_effect
from headwater.graph.transformation import ChainingStrategy, OperatorTransformation, PhysicalTransformation


class OperatorSettings(ABC):
    """Setters that return the stream itself, so that they can follow the method that added the operator."""

    @abstractmethod
    def _settings_of(self, method: str) -> PhysicalTransformation:
        """The node that settings go to; raises PlanError, naming `method`, if there is none."""

    def get_name(self) -> str:
        """The operator's name, as it stands in logs, errors and the plan."""
        return self._settings_of("get_name").name

    def name(self, name: str) -> Self:
        """Name the operator. The name is part of a generated uid; it need not be unique."""
        self._settings_of("name").name = _text("name", name)
        return self

    def uid(self, uid: str) -> Self:
        """Set the identity of the operator's state, by which a changed job finds it again. Unique in the job."""
        self._settings_of("uid").uid = _text("uid", uid)
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Set the identity of the operator's state to this hash, whatever `uid` says: 32 hexadecimal digits."""
        if not isinstance(uid_hash, str) or not re.fullmatch("[0-9A-Fa-f]{32}", uid_hash):
            raise TypeMismatchError(f"set_uid_hash() expects 32 hexadecimal digits, found {uid_hash!r}")
        self._settings_of("set_uid_hash").uid_hash = uid_hash
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Run the operator in this many partitions. Next to an operator with another number, records are rebalanced."""
        node = self._settings_of("set_parallelism")
        positive("set_parallelism", parallelism)
        if node.parallelism_fixed and parallelism != node.parallelism:
            raise PlanError(
                f"'{node.name}' ({node.kind}) runs with parallelism {node.parallelism} only, found {parallelism}; "
                f"call rebalance() behind it to spread its records"
            )
        node.parallelism = parallelism
        return self

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Declare the number of key groups. All operators of a job share one number: it must be the environment's."""
        self._settings_of("set_max_parallelism").max_parallelism = positive("set_max_parallelism", max_parallelism)
        return self

    def force_non_parallel(self) -> Self:
        """Run the operator in one partition, for good."""
        node = self._settings_of("force_non_parallel")
        node.parallelism, node.parallelism_fixed = 1, True
        return self

    def set_description(self, description: str) -> Self:
        """A longer text than the name, for the execution plan."""
        self._settings_of("set_description").description = _text("set_description", description)
        return self

    def start_new_chain(self) -> Self:
        """Do not call this operator directly from the one before: records go through a shuffle to a new stage."""
        self._chain("start_new_chain", ChainingStrategy.HEAD)
        return self

    def disable_chaining(self) -> Self:
        """Keep this operator apart from the one before and from those after it: each step costs a shuffle."""
        self._chain("disable_chaining", ChainingStrategy.NEVER)
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Accepted for PyFlink's sake; no effect."""
        self._settings_of("set_buffer_timeout")
        warn_no_effect("set_buffer_timeout", "records wait for the end of an epoch; set headwater.epoch.duration")
        return self

    def slot_sharing_group(self, slot_sharing_group: Any) -> Self:
        """Accepted for PyFlink's sake; no effect."""
        self._settings_of("slot_sharing_group")
        warn_no_effect("slot_sharing_group", "each partition of a stage has a slot, and Spark places them")
        return self

    def _chain(self, method: str, strategy: ChainingStrategy) -> None:
        node = self._settings_of(method)
        if not isinstance(node, OperatorTransformation):
            raise PlanError(f"{method}() on source '{node.name}': call it on the operator behind the source")
        node.chaining = strategy


def positive(method: str, number: int, argument: str = "") -> int:
    """Return `number` if it is a whole number of at least 1. `argument` names it in the error, if the method has
    several."""
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        expected = f"{argument}, " if argument else ""
        raise TypeMismatchError(f"{method}() expects {expected}a whole number of at least 1, found {number!r}")
    return number


def _text(method: str, text: str) -> str:
    if not isinstance(text, str) or not text:
        raise TypeMismatchError(f"{method}() expects a string that is not empty, found {text!r}")
    return text
