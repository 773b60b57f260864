"""A record that a job refused, as it is kept: the error, the operator, where it came from, the record itself."""

from __future__ import annotations

import base64
import hashlib
import pickle
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from headwater.common.errors import SerializationError, short_repr
from headwater.common.rejected import Rejected
from headwater.common.serialization import DeserializationSchema

SOURCE = "source"
FUNCTION = "function"
KEY = "key"
SINK = "sink"
REPLAYED = "replayed"


@dataclass(frozen=True)
class DeadLetter:
    """One refused record. Two letters are the same one if their `id` is."""

    id: str
    """Made of job, operator, epoch, its time and place (`letter_id`): a replayed epoch gives the same. A job that
    begins anew in its directory has the id that it had, and counts its epochs from the beginning."""
    job_id: str
    operator: str
    operator_uid: str
    stage: str
    """What refused it: "source" (a format), "function", "key" (a key selector behind the operator) or "sink".

    "replayed": this is no refused record. It says that the letter `replaces` was put through again, without an error.
    """
    error: str
    where: str
    """Where it was found: a file and line, or topic, partition and offset; for a function the epoch and partition."""
    raw: bytes | None
    """The bytes as they came from outside, if the source knows them; else the record, pickled."""
    record: str
    """The record for people: its repr, cut."""
    epoch: int
    rejected_at_ms: int
    """Processing time of the epoch."""
    timestamp_ms: int | None = None
    attributes: dict[str, bytes | str | int | None] = field(default_factory=dict)
    """What else the source knows about it: key, headers ..."""
    input_index: int = 0
    """Which input of the operator it came from."""
    consumer_uid: str = ""
    """Of a "key" letter: the operator that the record was on its way to."""
    replaces: str = ""
    """The id of the letter that was put through again and became this one."""

    @staticmethod
    def of_source(rejected: Rejected, operator: str, uid: str, job_id: str, epoch: int, now_ms: int) -> DeadLetter:
        return DeadLetter(
            id=letter_id(job_id, uid, epoch, now_ms, rejected.where, rejected.replaces),
            job_id=job_id,
            operator=operator,
            operator_uid=uid,
            stage=SOURCE,
            error=rejected.error,
            where=rejected.where,
            raw=rejected.raw,
            record=short_repr(rejected.raw),
            epoch=epoch,
            rejected_at_ms=now_ms,
            timestamp_ms=rejected.timestamp_ms,
            attributes=dict(rejected.attributes),
            replaces=rejected.replaces,
        )

    def as_rejected(self, error: str = "") -> Rejected:
        """What a source rejected, as its reader handed it over: to be read again, or (with `error`) rejected again."""
        return Rejected(
            self.raw,
            error or self.error,
            self.where,
            timestamp_ms=self.timestamp_ms,
            attributes=dict(self.attributes),
            replaces=self.id,
        )

    def replayed(self, job_id: str, epoch: int, now_ms: int) -> DeadLetter:
        """The mark that this letter is done. It travels as letters do, so it counts when its epoch is committed."""
        return DeadLetter(
            id=letter_id(job_id, self.id, REPLAYED, epoch),
            job_id=job_id,
            operator=self.operator,
            operator_uid=self.operator_uid,
            stage=REPLAYED,
            error="",
            where=f"epoch {epoch}",
            raw=None,
            record=self.record,
            epoch=epoch,
            rejected_at_ms=now_ms,
            replaces=self.id,
        )

    def value(self) -> Any:
        """The record that a function, key selector or sink refused. Unpickles it: read only letters that you trust.

        Of what a source refused there are bytes only: `raw`.
        """
        if self.stage == SOURCE or self.raw is None:
            raise SerializationError(f"dead letter {self.id} has no record, only bytes: read `raw`")
        return pickle.loads(self.raw)

    def to_json(self) -> bytes:
        """One line without its end. Bytes are in base64."""
        content = asdict(self)
        content["raw"] = _packed(self.raw)
        content["attributes"] = {name: _packed(value) for name, value in self.attributes.items()}
        return msgspec.json.encode(content)

    @staticmethod
    def from_json(line: bytes) -> DeadLetter:
        try:
            content = msgspec.json.decode(line)
            content["raw"] = _unpacked(content["raw"])
            content["attributes"] = {name: _unpacked(value) for name, value in content["attributes"].items()}
            return DeadLetter(**content)
        except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise SerializationError(f"{short_repr(line, 200)} is no dead letter: {error}") from None


def letter_id(*place: object) -> str:
    """A short text for this place; another one for every other place."""
    return hashlib.blake2b("\x1f".join(map(str, place)).encode(), digest_size=8).hexdigest()


class DeadLetterSchema(DeserializationSchema):
    """Reads letters back, each from one line: `StreamFormat.schema_lines_format(DeadLetterSchema())`."""

    def deserialize(self, message: bytes) -> DeadLetter:
        return DeadLetter.from_json(message)


def _packed(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _unpacked(value: Any) -> Any:
    return base64.b64decode(value["base64"], validate=True) if isinstance(value, dict) else value
