"""What sinks that send a message for each record share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

from headwater.common.connector import ReusableSinkWriter, Sink, SinkWriter, WriterContext
from headwater.common.errors import ConfigurationError, HeadwaterError, UserCodeError, short_repr
from headwater.datastream.connectors.base import DeliveryGuarantee
from headwater.datastream.connectors.spool_writer import SpoolWriter


class MessageSink(Sink):
    """Makes messages of records. They wait in checkpoint storage for their commit, unless it has another writer."""

    owner: ClassVar[str]
    """The sink's name, for errors."""

    @abstractmethod
    def message(self, record: Any) -> Any:
        """Return something that msgpack can hold. Raises SerializationError for a record that is no message.

        May call the user's functions: what else is raised, if not by headwater, is their error.
        """

    def messages(self, values: Sequence[Any]) -> list[Any]:
        made = []
        for value in values:
            try:
                made.append(self.message(value))
            except HeadwaterError:
                raise
            except Exception as error:
                raise UserCodeError.from_exception(error, self.owner, value, -1) from error
        return made

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return SpoolWriter(context, self._batch)

    def _batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> tuple[Any, int, str]:
        messages = self.messages(values)
        return messages, len(messages), ""


class Client(Protocol):
    """A connection."""

    def close(self) -> None: ...


class DirectWriter(ReusableSinkWriter):
    """Sends as records come, over a client of its own: at least once."""

    def __init__(self, client: Client, send: Callable[[Sequence[Any]], None]) -> None:
        """:param send: returns when the server has what is made of the records."""
        self._client = client
        self._send = send

    def begin_epoch(self, context: WriterContext) -> None: ...

    def write_batch(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._send(values)

    def prepare_commit(self) -> list[Any]:
        return []

    def close(self) -> None:
        self._client.close()


def checked_guarantee(given: Any, owner: str) -> DeliveryGuarantee:
    """The guarantee, if it is one of a sink that knows two."""
    if given is DeliveryGuarantee.EXACTLY_ONCE or given is DeliveryGuarantee.AT_LEAST_ONCE:
        return given
    raise ConfigurationError(f"{owner}: expected EXACTLY_ONCE or AT_LEAST_ONCE, found {short_repr(given)}")


def serializer_of(schema: Any, owner: str) -> Callable[[Any], bytes]:
    """The function of a `SerializationSchema`."""
    serialize: Callable[[Any], bytes] | None = getattr(schema, "serialize", None)
    if not callable(serialize):
        raise ConfigurationError(
            f"{owner}: expected a SerializationSchema, such as SimpleStringSchema(), found {short_repr(schema)}"
        )
    return serialize
