"""A user's own bytes for a type, as in pyflink.common.serializer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from io import BytesIO
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Writes and reads one type. Two serializers are equal if their class and attributes are."""

    @abstractmethod
    def serialize(self, element: T, stream: BytesIO) -> None: ...

    @abstractmethod
    def deserialize(self, stream: BytesIO) -> T: ...

    def __eq__(self, other: Any) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
