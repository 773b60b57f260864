"""Between DataStreams and tables, both ways, in one job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from headwater.common.errors import SqlError
from headwater.datastream.data_stream import DataStream
from headwater.table.catalog.objects import ResolvedSchema
from headwater.table.plan.context import new_column
from headwater.table.stream.changes import Changes
from headwater.table.stream.connectors.contract import ChangelogMode
from headwater.table.stream.connectors.rows import RowsConverter, RowsEncoder
from headwater.table.stream.operators.border import ToRecordsOperator
from headwater.table.stream.operators.sink import ChangelogSinkOperator
from headwater.table.stream.operators.to_changes import ToChangesOperator
from headwater.table.stream.operators.upsert import UpsertOperator
from headwater.table.stream.physical import ROWTIME, Physical, State, Traits
from headwater.table.stream.planner import StreamPlanner
from headwater.table.stream.planner_sinks import _unique_places, materialized
from headwater.table.types.logical import LogicalType, RawType, RowField, RowType, TypeRoot
from headwater.table.types.type_information import from_type_information

TIMESTAMP_METADATA = "rowtime"
"""The metadata key of a record's timestamp."""


def row_type_of(stream: DataStream) -> RowType:
    """The columns of a stream's records: fields of rows and tuples, or one column f0."""
    found = from_type_information(stream.get_type())
    if isinstance(found, RowType):
        return found
    return RowType(fields=(RowField("f0", found),), nullable=False)


def is_row(stream: DataStream) -> bool:
    return isinstance(from_type_information(stream.get_type()), RowType)


def is_known(type_: LogicalType) -> bool:
    return not isinstance(type_, RawType) and type_.root is not TypeRoot.RAW


def check_known(row_type: RowType) -> None:
    for each in row_type.fields:
        if not is_known(each.type):
            raise SqlError(
                f"the type of '{each.name}' is not known: give the DataStream an output_type such as"
                " Types.ROW_NAMED([...], [...]), or pass a Schema with the columns' types"
            )


@dataclass(frozen=True)
class RecordConverter(RowsConverter):
    """Records of a DataStream. A place of -1 is the record's timestamp."""

    stamps: tuple[int | None, ...] = ()
    """The timestamps of the records that are being converted."""

    def _values(self, records: list[Any], name: str, place: int | None) -> list[Any]:
        return list(self.stamps) if place == -1 else super()._values(records, name, place)

    def convert(self, records: list[Any], timestamps: list[int | None] | None, now_ms: int) -> Changes:
        stamps = tuple(timestamps) if timestamps is not None else (None,) * len(records)
        if -1 in self.places and None in stamps:
            raise SqlError(
                f"table '{self.table}': a record has no timestamp, and the column of the metadata"
                f" '{TIMESTAMP_METADATA}' needs one; call assign_timestamps_and_watermarks() before"
            )
        return RowsConverter.convert(replace(self, stamps=stamps), records, timestamps, now_ms)


def stream_table(
    stream: DataStream, schema: ResolvedSchema, places: Sequence[int | None], mode: ChangelogMode, name: str
) -> Physical:
    """The rows of a stream: physical and metadata columns of `schema`. `places`: where each physical one is."""
    columns = []
    chosen: list[int | None] = []
    given = iter(places)
    types: list[LogicalType] = []
    for each in schema.columns:
        if each.expression is not None:
            continue
        if each.metadata_key is not None:
            if each.metadata_key != TIMESTAMP_METADATA:
                raise SqlError(f"column '{each.name}': a DataStream has the metadata '{TIMESTAMP_METADATA}' only")
            chosen.append(-1)
        else:
            chosen.append(next(given))
        columns.append(new_column(each.name, each.type))
        types.append(each.type)
    converter = RecordConverter(tuple(c.name for c in columns), tuple(types), tuple(chosen), name)
    keys = frozenset({frozenset(c.id for c in columns if c.name in schema.primary_key)} if schema.primary_key else ())
    updating = mode is not ChangelogMode.APPEND
    traits = Traits(
        append_only=not updating,
        keys=keys if updating else frozenset(),
        culprit=f"the changelog stream '{name}'" if updating else "",
        meanings={column.id: f"{name}.{column.name}" for column in columns},
        rows=name,
        bounded=False,
    )
    made = Physical(
        "DataStreamScan",
        name,
        tuple(columns),
        factory=partial(ToChangesOperator, converter, tuple(columns), name),
        traits=traits,
        stream=stream._transformation,
    )
    if mode is not ChangelogMode.UPSERT:
        return made
    if not schema.primary_key:
        raise SqlError("a stream of upserts needs a schema with a primary key: Schema.new_builder()….primary_key(…)")
    key = tuple(place for place, column in enumerate(columns) if column.name in schema.primary_key)
    return Physical(
        "ChangelogNormalize",
        f"key=[{', '.join(schema.primary_key)}]",
        made.columns,
        (replace(made, traits=replace(traits, keys=frozenset())),),
        partial(UpsertOperator, made.columns, key),
        (key,),
        traits,
        State("the last row of each primary key"),
    )


def records(planner: StreamPlanner, input: Physical, changelog: bool, upsert_key: tuple[str, ...] = ()) -> Physical:
    """The operator that makes Rows of a table's changes. `upsert_key`: columns whose rows replace each other."""
    traits = input.traits
    names, types = tuple(c.name for c in input.columns), tuple(c.type for c in input.columns)
    encoder = RowsEncoder(names, types)
    if traits.append_only:
        times = [place for place, column in enumerate(input.columns) if traits.times.get(column.id) == ROWTIME]
        if len(times) > 1:
            raise SqlError(
                f"the table has {len(times)} event times ({', '.join(names[place] for place in times)}), a record has"
                " one timestamp; CAST all but one to TIMESTAMP"
            )
        factory: Any = partial(ToRecordsOperator, input.columns, encoder, times[0] if times else None)
        return Physical("ToDataStream", "", input.columns, (input,), factory, traits=traits)
    if not changelog:
        raise SqlError(
            f"to_data_stream() takes a table of rows that are only added, and {traits.culprit} updates them; use"
            " to_changelog_stream()"
        )
    if upsert_key:
        chosen = tuple(names.index(each) for each in upsert_key)
        input = materialized(planner, input, chosen, "ToChangelogStream")
        places: tuple[int, ...] | None = chosen
    else:
        places = _unique_places(input)
    upsert = bool(upsert_key)
    factory = partial(ChangelogSinkOperator, input.columns, encoder, places, upsert, table="ToChangelogStream")
    keys = ((),) if places is None else (places,)
    return Physical(
        "ToChangelogStream",
        "",
        input.columns,
        (input,),
        factory,
        keys,
        traits,
        uid=planner.uid("ToChangelogStream", traits.rows),
        parallelism=1 if places is None else None,
    )
