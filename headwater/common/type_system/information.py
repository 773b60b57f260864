"""The classes of type information, as in pyflink.common.typeinfo, without a JVM behind them.

They only describe. Programs get them from `typeinfo.Types`; `checker.py` checks values against them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from headwater.common.errors import TypeMismatchError


class TypeInformation:
    """Base of all types. Instances are immutable, comparable, hashable and picklable."""

    def need_conversion(self) -> bool:
        """For PyFlink programs that ask: there is no JVM to convert for."""
        return False

    def _identity(self) -> tuple[Any, ...]:
        """Return what makes two types equal."""
        return (type(self),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeInformation) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


class BasicType(Enum):
    """The indivisible types, with the names that Java gives them."""

    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Char"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"


_PRIMITIVES = (
    BasicType.BOOLEAN,
    BasicType.BYTE,
    BasicType.SHORT,
    BasicType.INT,
    BasicType.LONG,
    BasicType.FLOAT,
    BasicType.DOUBLE,
    BasicType.CHAR,
)


class BasicTypeInfo(TypeInformation):
    """One of `BasicType`."""

    def __init__(self, basic_type: BasicType) -> None:
        self._basic_type = basic_type

    @property
    def basic_type(self) -> BasicType:
        return self._basic_type

    def _identity(self) -> tuple[Any, ...]:
        return BasicTypeInfo, self._basic_type

    def __repr__(self) -> str:
        return self._basic_type.value

    @staticmethod
    def STRING_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BOOLEAN_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def BYTE_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def SHORT_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC_TYPE_INFO() -> BasicTypeInfo:
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT_TYPE_INFO() -> InstantTypeInfo:
        return InstantTypeInfo(BasicType.INSTANT)


class InstantTypeInfo(BasicTypeInfo):
    """A `headwater.common.time.Instant`."""

    def __init__(self, basic_type: BasicType = BasicType.INSTANT) -> None:
        super().__init__(basic_type)


class _SingletonTypeInfo(TypeInformation):
    """A type without parameters: all instances of a class are equal."""

    def __repr__(self) -> str:
        return type(self).__name__


class DateTypeInfo(_SingletonTypeInfo):
    """A `datetime.date`."""


class TimeTypeInfo(_SingletonTypeInfo):
    """A `datetime.time`."""


class TimestampTypeInfo(_SingletonTypeInfo):
    """A `datetime.datetime`."""


class SqlTimeTypeInfo(TypeInformation):
    """Makers of the three SQL time types."""

    @staticmethod
    def DATE() -> DateTypeInfo:
        return DateTypeInfo()

    @staticmethod
    def TIME() -> TimeTypeInfo:
        return TimeTypeInfo()

    @staticmethod
    def TIMESTAMP() -> TimestampTypeInfo:
        return TimestampTypeInfo()


class LocalTimeTypeInfo(TypeInformation):
    """A date, time or datetime without a time zone."""

    class TimeType(Enum):
        LOCAL_DATE = 0
        LOCAL_TIME = 1
        LOCAL_DATE_TIME = 2

    def __init__(self, time_type: TimeType) -> None:
        self._time_type = time_type

    @property
    def time_type(self) -> TimeType:
        return self._time_type

    def _identity(self) -> tuple[Any, ...]:
        return LocalTimeTypeInfo, self._time_type

    def __repr__(self) -> str:
        return f"LocalTimeTypeInfo<{self._time_type.name}>"


class PickledBytesTypeInfo(_SingletonTypeInfo):
    """Any Python object: what a stream without declared type has. Never checked."""

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"


class _ElementTypeInfo(TypeInformation):
    """A type with one parameter, the type of its elements."""

    _element_type: TypeInformation

    @property
    def element_type(self) -> TypeInformation:
        return self._element_type

    def _identity(self) -> tuple[Any, ...]:
        return type(self), self._element_type

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self._element_type!r}>"


class PrimitiveArrayTypeInfo(_ElementTypeInfo):
    """A list of numbers, booleans or characters without None; of BYTE: also bytes."""

    def __init__(self, element_type: TypeInformation) -> None:
        self._element_type = _element_of("PRIMITIVE_ARRAY", element_type, _PRIMITIVES)


class BasicArrayTypeInfo(_ElementTypeInfo):
    """A list of numbers, booleans, characters or strings; None is allowed among them."""

    def __init__(self, element_type: TypeInformation) -> None:
        self._element_type = _element_of("BASIC_ARRAY", element_type, (*_PRIMITIVES, BasicType.STRING))


class ObjectArrayTypeInfo(_ElementTypeInfo):
    """A list of values of any one type; None is allowed among them."""

    def __init__(self, element_type: TypeInformation) -> None:
        self._element_type = _declared("OBJECT_ARRAY", element_type)


class ListTypeInfo(_ElementTypeInfo):
    """A list of values of any one type; None is allowed among them."""

    def __init__(self, element_type: TypeInformation) -> None:
        self._element_type = _declared("LIST", element_type)

    @property
    def elem_type(self) -> TypeInformation:
        return self._element_type


ARRAYS = (ListTypeInfo, BasicArrayTypeInfo, ObjectArrayTypeInfo, PrimitiveArrayTypeInfo)
"""The types of lists."""


class MapTypeInfo(TypeInformation):
    """A dict from one type to another."""

    def __init__(self, key_type_info: TypeInformation, value_type_info: TypeInformation) -> None:
        self._key_type_info = _declared("MAP", key_type_info)
        self._value_type_info = _declared("MAP", value_type_info)

    @property
    def key_type(self) -> TypeInformation:
        return self._key_type_info

    @property
    def value_type(self) -> TypeInformation:
        return self._value_type_info

    def _identity(self) -> tuple[Any, ...]:
        return MapTypeInfo, self._key_type_info, self._value_type_info

    def __repr__(self) -> str:
        return f"MapTypeInfo<{self._key_type_info!r}, {self._value_type_info!r}>"


class TupleTypeInfo(TypeInformation):
    """A tuple with a type per position."""

    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        self._field_types = _all_declared("TUPLE", field_types)

    def get_field_types(self) -> list[TypeInformation]:
        return list(self._field_types)

    def _identity(self) -> tuple[Any, ...]:
        return TupleTypeInfo, self._field_types

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(repr, self._field_types))})"


class RowTypeInfo(TypeInformation):
    """A Row with a type per field; without `field_names` they are f0, f1, ... as in Flink."""

    def __init__(self, field_types: Sequence[TypeInformation], field_names: Sequence[str] | None = None) -> None:
        self._field_types = _all_declared("ROW", field_types)
        self._field_names = None if field_names is None else tuple(field_names)
        if self._field_names is None:
            return
        if len(self._field_names) != len(self._field_types):
            raise TypeMismatchError(
                f"ROW_NAMED: {len(self._field_names)} names for {len(self._field_types)} types; "
                "give each field one name and one type"
            )
        if len(set(self._field_names)) != len(self._field_names):
            raise TypeMismatchError(f"ROW_NAMED: field names must differ, found {list(self._field_names)}")

    @property
    def has_names(self) -> bool:
        """True if the names were given, not made up."""
        return self._field_names is not None

    def get_field_names(self) -> list[str]:
        if self._field_names is None:
            return [f"f{index}" for index in range(len(self._field_types))]
        return list(self._field_names)

    def get_field_types(self) -> list[TypeInformation]:
        return list(self._field_types)

    def _identity(self) -> tuple[Any, ...]:
        """The field types decide, as in PyFlink: names are labels."""
        return RowTypeInfo, self._field_types

    def __repr__(self) -> str:
        if self._field_names is None:
            return f"RowTypeInfo({', '.join(map(repr, self._field_types))})"
        fields = zip(self._field_names, self._field_types, strict=True)
        return f"RowTypeInfo({', '.join(f'{name}: {kind!r}' for name, kind in fields)})"


class ExternalTypeInfo(TypeInformation):
    """A type that came from a table; here the same as the type it wraps."""

    def __init__(self, type_info: TypeInformation) -> None:
        self._type_info = _declared("ExternalTypeInfo", type_info)

    @property
    def wrapped(self) -> TypeInformation:
        return self._type_info

    def _identity(self) -> tuple[Any, ...]:
        return ExternalTypeInfo, self._type_info

    def __repr__(self) -> str:
        return f"ExternalTypeInfo<{self._type_info!r}>"


def _declared(where: str, type_info: TypeInformation) -> TypeInformation:
    if not isinstance(type_info, TypeInformation):
        hint = "; did you forget the parentheses?" if callable(type_info) else ""
        raise TypeMismatchError(
            f"{where}: expected a TypeInformation such as Types.STRING(), found {type_info!r}{hint}"
        )
    return type_info


def _all_declared(where: str, type_infos: Sequence[TypeInformation]) -> tuple[TypeInformation, ...]:
    if isinstance(type_infos, TypeInformation):
        raise TypeMismatchError(f"{where}: expected a list of types, found {type_infos!r}; write [{type_infos!r}]")
    if not isinstance(type_infos, Iterable):
        raise TypeMismatchError(f"{where}: expected a list of types, found {type_infos!r}")
    return tuple(_declared(f"{where} field {index}", type_info) for index, type_info in enumerate(type_infos))


def _element_of(where: str, type_info: TypeInformation, allowed: tuple[BasicType, ...]) -> TypeInformation:
    _declared(where, type_info)
    if not isinstance(type_info, BasicTypeInfo) or type_info.basic_type not in allowed:
        names = ", ".join(basic.name for basic in allowed)
        raise TypeMismatchError(f"{where}: elements must be one of {names}, found {type_info!r}")
    return type_info
