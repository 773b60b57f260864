"""Names for side outputs."""

from __future__ import annotations

from headwater.common.errors import TypeMismatchError
from headwater.common.typeinfo import RowTypeInfo, TypeInformation, Types

BAD_TIMESTAMPS_TAG_ID = "headwater.bad-timestamps"
"""The side output of records whose timestamp cannot be used, under `headwater.bad-timestamps: side-output`."""


class OutputTag:
    """A typed name for one side output of an operator: `yield tag, value`, then `stream.get_side_output(tag)`.

    Two tags with one id are the same output. Without `type_info` the records are Python objects; a list of types
    means a row of them.
    """

    __slots__ = ("tag_id", "type_info")

    def __init__(self, tag_id: str, type_info: TypeInformation | list[TypeInformation] | None = None) -> None:
        if not isinstance(tag_id, str) or not tag_id:
            raise ValueError(f"OutputTag: tag_id must be a string that is not empty, found {tag_id!r}")
        self.tag_id = tag_id
        self.type_info: TypeInformation
        if type_info is None:
            self.type_info = Types.PICKLED_BYTE_ARRAY()
        elif isinstance(type_info, list):
            self.type_info = RowTypeInfo(type_info)
        elif isinstance(type_info, TypeInformation):
            self.type_info = type_info
        else:
            raise TypeMismatchError(
                f"OutputTag '{tag_id}': type_info must be None, a list of types or a TypeInformation such as "
                f"Types.STRING(), found {type(type_info).__name__}"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and self.tag_id == other.tag_id

    def __hash__(self) -> int:
        return hash((OutputTag, self.tag_id))

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r}, {self.type_info!r})"


BAD_TIMESTAMPS = OutputTag(BAD_TIMESTAMPS_TAG_ID)
"""Read it with `stream.get_side_output(BAD_TIMESTAMPS)` on the stream that assigns timestamps."""
