"""Where refused records go: a sink for one operator, or files for all operators of a job."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, TypeGuard

from headwater.common.connector import Sink, Source
from headwater.common.dead_letter import DeadLetter
from headwater.common.errors import PlanError, SerializationError, TypeMismatchError, short_repr
from headwater.common.rejected import REJECTED_TAG_ID
from headwater.common.serialization import Encoder
from headwater.datastream.connectors.bucket_assigner import BucketAssigner
from headwater.datastream.connectors.file_sink import FileSink
from headwater.datastream.connectors.part_files import RollingPolicy
from headwater.graph.expand import reach_upstream
from headwater.graph.transformation import (
    OperatorTransformation,
    PhysicalTransformation,
    SideOutputTransformation,
    SourceTransformation,
    Transformation,
)
from headwater.operators.dead_letters import DeadLetterSinkOperator

KIND = "dead letters"


def letter_sink(given: Sink | str) -> Sink:
    """The sink for letters that `with_dead_letters` was given: itself, or files of JSON lines below a directory."""
    if isinstance(given, str) and given:
        files = FileSink.for_row_format(given, Encoder(_letter_line))
        files.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        return files.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()
    if isinstance(given, Sink):
        return given
    hint = "; did you forget build()?" if hasattr(given, "build") else ""
    raise TypeMismatchError(f"with_dead_letters() expects a Sink or a directory, found {short_repr(given)}{hint}")


def dead_letters_of(node: PhysicalTransformation, sink: Sink) -> OperatorTransformation:
    """What takes the records that `node` refuses. From now on its source, if it is one, hands out bad records."""
    if isinstance(node, SourceTransformation) and isinstance(node.source, Source):
        node.source = node.source.rejecting()
    refused = SideOutputTransformation(name=f"Refused by {node.name}", upstream=node, tag_id=REJECTED_TAG_ID)
    return OperatorTransformation(
        name=f"Dead Letters of {node.name}",
        kind=KIND,
        upstreams=(refused,),
        factory=partial(DeadLetterSinkOperator, sink, node.name, node.uid or node.name),
        function=sink,
        sink=sink,
        parallelism_of_input=True,
    )


def with_dead_letters_for_all(
    operators: Iterable[OperatorTransformation], directory: str
) -> list[OperatorTransformation]:
    """`operators`, and dead letters for all nodes that have none yet."""
    known = list(operators)
    sink = letter_sink(directory)
    reached = reach_upstream(known)
    served = {node.upstream.id for node in reached if _takes_refused(node)}
    wanted = [
        node
        for node in sorted(reached, key=lambda node: node.id)
        if isinstance(node, PhysicalTransformation) and node.kind != KIND and node.id not in served
    ]
    return known + [dead_letters_of(node, sink) for node in wanted]


def refuse_twice(operators: Iterable[OperatorTransformation], node: PhysicalTransformation) -> None:
    """Raise if `node` has dead letters already: a record would be in two places, and none would know."""
    if any(_takes_refused(each) and each.upstream is node for each in reach_upstream(operators)):
        raise PlanError(f"with_dead_letters() twice for '{node.name}'; call it once")


def _takes_refused(node: Transformation) -> TypeGuard[SideOutputTransformation]:
    return isinstance(node, SideOutputTransformation) and node.tag_id == REJECTED_TAG_ID


def _letter_line(letter: Any) -> bytes:
    if not isinstance(letter, DeadLetter):
        raise SerializationError(f"expected a DeadLetter, found {short_repr(letter)}")
    return letter.to_json() + b"\n"
