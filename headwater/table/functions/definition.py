"""What a function of SQL is: its name, its types, and how each engine computes it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, TypeAlias

import pyarrow as pa

from headwater.common.errors import FunctionTypeError
from headwater.table.functions.aggregation import AggregateRecipe
from headwater.table.functions.arguments import repeated, spark_cast, to_parameter
from headwater.table.functions.frame import Frame
from headwater.table.types.arrow import to_arrow
from headwater.table.types.logical import LogicalType
from headwater.table.types.spark import spark_type

__all__ = [
    "Binding",
    "BoundArgument",
    "Column",
    "FunctionDefinition",
    "FunctionKind",
    "FunctionTypeError",
    "Signature",
    "SparkUdf",
]

Column: TypeAlias = pa.Array | pa.Scalar
"""What a kernel gets for an argument: a scalar for a literal, else an array with one value per row of the frame."""


class FunctionKind(Enum):
    SCALAR = "scalar"
    AGGREGATE = "aggregate"
    TABLE = "table"


@dataclass(frozen=True)
class BoundArgument:
    """An argument's type, and its value if it is a literal: a Python value, or the type itself of `CAST(x AS type)`.

    Words of the syntax (HOUR, BOTH, NULL ON ERROR) are literals of type CHAR.
    """

    type: LogicalType
    literal: Any = None


@dataclass(frozen=True)
class SparkUdf:
    """A function to register with Spark before a query that has its name: an Arrow UDF, array in, array out."""

    name: str
    result: str
    function: Callable[..., pa.Array]


@dataclass(frozen=True)
class Signature:
    """The types of a call: what it gives, and what each argument is cast to before it is computed."""

    result: LogicalType
    arguments: tuple[LogicalType, ...]


Bind = Callable[[Sequence[BoundArgument]], Signature]
Kernel = Callable[[Sequence[Column], "Binding", Frame], Column]
SparkText = Callable[[Sequence[str], "Binding"], str | None]
"""Gives None for a call that Spark cannot compute with Flink's result."""


SparkAggregateText = Callable[[Sequence[str], "Binding", str, str], str]


@dataclass(frozen=True)
class FunctionDefinition:
    """A function. Everything about it is here; nothing else in headwater knows functions by name."""

    name: str
    family: str
    bind_types: Bind
    syntax: str
    description: str
    kind: FunctionKind = FunctionKind.SCALAR
    compute: Kernel | None = None
    """The vectorised kernel of a scalar function. It gets arguments that have their parameters' types."""
    spark_text: SparkText | None = None
    """Spark's expression; without one, Spark runs the kernel as an Arrow UDF."""
    deterministic: bool = True
    """False: two calls with the same arguments differ (RAND, CURRENT_TIMESTAMP)."""
    note: str = ""
    """Where Flink, Spark and the kernel do not agree."""
    aliases: tuple[str, ...] = ()
    text: Callable[[Sequence[str]], str] | None = None
    """How a call is written, if not as `NAME(a, b)`: gets the arguments as text (words without quotes)."""
    recipe: AggregateRecipe | None = None
    """Of an aggregate: how operators compute it."""
    spark_aggregate_text: SparkAggregateText | None = None
    """Of an aggregate: Spark's text from arguments, binding, `DISTINCT ` or nothing, and a suffix."""

    def __reduce__(self) -> tuple[Any, ...]:
        """A function of the system is pickled as its name; one of the user as it is."""
        if _of_the_system(self.name) is self:
            return _of_the_system, (self.name,)
        return FunctionDefinition, tuple(getattr(self, each.name) for each in fields(self))

    def bind(self, arguments: Sequence[BoundArgument]) -> Binding:
        """Return the call with its types. FunctionTypeError if the function does not take these arguments."""
        signature = self.bind_types(arguments)
        return Binding(self, tuple(arguments), signature.result, signature.arguments)

    def spark(self, arguments: Sequence[str], binding: Binding) -> str:
        """Return Spark's expression for a call whose arguments are these expressions of `binding.arguments`' types.

        For a Spark session in ANSI mode (Spark's default) whose time zone is the session's.
        """
        return binding.spark(arguments)

    def kernel(self, arrays: Sequence[Column], binding: Binding, frame: Frame) -> pa.Array:
        """Compute the call for the rows of a frame."""
        return binding.kernel(arrays, frame)

    def sql(self, arguments: Sequence[str]) -> str:
        """How a call is written in Flink's SQL."""
        return f"{self.name}({', '.join(arguments)})" if self.text is None else self.text(arguments)


def _of_the_system(name: str) -> FunctionDefinition | None:
    from headwater.table.functions.registry import lookup
    from headwater.table.plan.window_functions import WINDOW_FUNCTIONS

    return WINDOW_FUNCTIONS.get(name) or lookup(name)


@dataclass(frozen=True)
class Binding:
    """A call of a function whose types are known."""

    function: FunctionDefinition
    arguments: tuple[BoundArgument, ...]
    result_type: LogicalType
    arg_types: tuple[LogicalType, ...]
    memory: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What the kernel prepared from literals: a compiled pattern, a set of values."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Binding, (self.function, self.arguments, self.result_type, self.arg_types)  # not what was prepared

    def literal(self, at: int, default: Any = None) -> Any:
        """The literal at that place, or `default` if there is no such argument."""
        return self.arguments[at].literal if at < len(self.arguments) else default

    def kernel(self, arrays: Sequence[Column], frame: Frame) -> pa.Array:
        """Compute the call. `arrays` have the arguments' own types; they are cast to the parameters'."""
        if self.function.compute is None:
            raise TypeError(f"{self.function.name} is no scalar function")
        columns = [
            to_parameter(column, argument.type, parameter, frame)
            for column, argument, parameter in zip(arrays, self.arguments, self.arg_types, strict=True)
        ]
        found = self.function.compute(columns, self, frame)
        wanted = to_arrow(self.result_type)
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        if isinstance(found, pa.Scalar):
            found = repeated(found, frame.rows)
        return found if found.type == wanted else found.cast(wanted)

    def spark(self, arguments: Sequence[str]) -> str:
        """Return Spark's expression. It has the result's type. The text of a type argument is empty."""
        texts = [
            spark_cast(text, argument.type, parameter) if text else text
            for text, argument, parameter in zip(arguments, self.arguments, self.arg_types, strict=True)
        ]
        native = None if self.function.spark_text is None else self.function.spark_text(texts, self)
        return native or f"{self.udf_name()}({', '.join(text for text in texts if text)})"

    def spark_aggregate(self, arguments: Sequence[str], distinct: bool = False, suffix: str = "") -> str:
        """Return Spark's expression for an aggregate. It has the result's type.

        `suffix`, such as `FILTER (WHERE ...)` or `OVER (...)`, stands behind each aggregate function of Spark in it.
        The arguments have the types of `arg_types`.
        """
        if self.function.spark_aggregate_text is None:
            raise TypeError(f"{self.function.name} is no aggregate")
        behind = f" {suffix}" if suffix else ""
        return self.function.spark_aggregate_text(arguments, self, "DISTINCT " if distinct else "", behind)

    def udf_name(self) -> str:
        """A name for this call's Arrow UDF: the same for the same function, types and literals."""
        meaning = repr((self.function.name, self.arguments, self.arg_types))
        word = "".join(letter if letter.isalnum() else "_" for letter in self.function.name.lower())
        return f"headwater_{word}_{hashlib.sha256(meaning.encode()).hexdigest()[:12]}"

    def spark_udf(self, zone: str) -> SparkUdf | None:
        """Return what must be registered with Spark for `spark`'s text, or None if Spark has all it needs."""
        if self.function.kind is FunctionKind.AGGREGATE:
            return SparkUdf(self.udf_name(), spark_type(self.result_type), _ArrowAggregate(self))
        text = self.spark(["x"] * len(self.arguments))
        if not text.startswith(self.udf_name()):
            return None
        return SparkUdf(self.udf_name(), spark_type(self.result_type), _ArrowUdf(self, zone))


class _ArrowUdf:
    """Runs a binding's kernel on Spark's columns. Spark pickles it into its workers."""

    def __init__(self, binding: Binding, zone: str) -> None:
        self._binding = binding
        self._zone = zone

    def __call__(self, *arrays: pa.Array) -> pa.Array:
        frame = Frame(rows=len(arrays[0]) if arrays else 0, zone=self._zone)
        given = iter(arrays)
        columns: list[Column] = []
        for argument, parameter in zip(self._binding.arguments, self._binding.arg_types, strict=True):
            if isinstance(argument.literal, LogicalType):
                columns.append(pa.scalar(None))
                continue
            array = next(given)
            kind = to_arrow(parameter)
            columns.append(array.cast(kind) if argument.literal is None else pa.scalar(argument.literal, kind))
        function = self._binding.function
        assert function.compute is not None
        found = function.compute(columns, self._binding, frame)
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        if isinstance(found, pa.Scalar):
            found = repeated(found, frame.rows)
        return _for_spark(found.cast(to_arrow(self._binding.result_type)))


class _ArrowAggregate:
    """Runs an aggregate on groups that Spark has collected: lists of structs with the arguments."""

    def __init__(self, binding: Binding) -> None:
        self._binding = binding

    def __call__(self, groups: pa.Array) -> pa.Array:
        recipe = self._binding.function.recipe
        assert recipe is not None
        offsets = groups.offsets.to_numpy().astype("int64")
        fields = groups.values.slice(offsets[0], offsets[-1] - offsets[0]).flatten()
        arrays = [each.cast(to_arrow(kind)) for each, kind in zip(fields, self._binding.arg_types, strict=True)]
        found = recipe.gather(arrays, offsets - offsets[0], self._binding)
        return _for_spark(found.cast(to_arrow(self._binding.result_type)))


def _for_spark(array: pa.Array) -> pa.Array:
    """Spark has no TIME: it gets the milliseconds."""
    return array.cast(pa.int32()) if pa.types.is_time32(array.type) else array
