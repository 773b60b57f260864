"""Base of readers of messages: what a decoder makes of them, and what it cannot."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from headwater.common.callables import unfit
from headwater.common.connector import SplitReader, TimedBatch
from headwater.common.errors import ConfigurationError, short_repr
from headwater.common.rejected import Rejected, why_rejected
from headwater.common.serialization import DeserializationSchema

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Attributes = dict[str, bytes | str | int | None]


class Message(NamedTuple):
    """One message as a decoder gets it, with what is needed to keep it if the decoder cannot read it."""

    value: Any
    """What the decoder gets."""
    raw: bytes
    where: str
    """For people. No other message that `fetch` returns has the same."""
    timestamp: int | None = None
    attributes: Attributes | None = None


Decode = Callable[[Any], Sequence[Any]]
"""From what a message is to its records. What it raises rejects the message."""


def decoder_of(given: Any, what: str) -> Decode:
    """The decoder that a user means: a function from a message to a record (None: no record)."""
    if found := unfit(given, 1):
        raise ConfigurationError(f"{what}: expected a function of one message, found {found}")
    return _OneRecord(given)


def whole(message: Any) -> Sequence[Any]:
    """Decodes a message as itself."""
    return (message,)


class _OneRecord:
    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, message: Any) -> Sequence[Any]:
        record = self._function(message)
        return () if record is None else (record,)


class OfSchema:
    """Decodes the bytes that `bytes_of` finds in a message."""

    def __init__(self, schema: DeserializationSchema, bytes_of: Callable[[Any], bytes], what: str) -> None:
        if not callable(getattr(schema, "deserialize", None)):
            raise ConfigurationError(
                f"{what}: expected a DeserializationSchema, such as SimpleStringSchema(), found {short_repr(schema)}"
            )
        self._schema = schema
        self._bytes_of = bytes_of

    def __call__(self, message: Any) -> Sequence[Any]:
        several = getattr(self._schema, "deserialize_all", None)
        content = self._bytes_of(message)
        if several is not None:
            made: Sequence[Any] = several(content)
            return made
        record = self._schema.deserialize(content)
        return () if record is None else (record,)


S = TypeVar("S", bound="DataclassInstance")


class DecodingBuilder(Generic[S]):
    """Base of builders of sources. Their settings are a frozen dataclass with a field `decode`."""

    owner: ClassVar[str]
    """The source's name, for errors."""
    bytes_of: ClassVar[Callable[[Any], bytes]]
    """What a `DeserializationSchema` reads of a message."""

    def __init__(self, settings: S) -> None:
        self._settings = settings

    def _with(self, **changes: Any) -> Self:
        self._settings = replace(self._settings, **changes)
        return self

    def set_deserializer(self, function: Callable[[Any], Any]) -> Self:
        """What `function` makes of a message; None: no record. Without one, records are the messages themselves."""
        return self._with(decode=decoder_of(function, f"{self.owner}: set_deserializer"))

    def set_value_only_deserializer(self, schema: DeserializationSchema) -> Self:
        """What the schema makes of a message's content."""
        return self._with(decode=OfSchema(schema, type(self).bytes_of, self.owner))


class DecodingReader(SplitReader):
    """Fetches messages and decodes them. `fetch` moves the position."""

    def __init__(self, decode: Decode, split_id: str) -> None:
        self._decode = decode
        self._split_id = split_id
        self._rejected: list[Rejected] = []

    @abstractmethod
    def fetch(self, most: int) -> list[Message] | None:
        """As `read_batch`, but messages."""

    def read_batch(self, max_records: int) -> list[Any] | None:
        messages = self.fetch(max_records)
        return messages if not messages else self.decoded(messages)

    def decoded(self, messages: list[Message]) -> TimedBatch:
        records: list[Any] = []
        timestamps: list[int | None] = []
        for message in messages:
            try:
                made = self._decode(message.value)
            except Exception as error:
                self._rejected.append(rejected(message, error, self._split_id))
                continue
            records += made
            timestamps += [message.timestamp] * len(made)
        return TimedBatch(records, timestamps)

    def rejected(self) -> list[Rejected]:
        found, self._rejected = self._rejected, []
        return found


def rejected(message: Message, error: Exception, split_id: str) -> Rejected:
    return Rejected(
        message.raw,
        why_rejected(error),
        message.where,
        split_id,
        timestamp_ms=message.timestamp,
        attributes=message.attributes or {},
    )
