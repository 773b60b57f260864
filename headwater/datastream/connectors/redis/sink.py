"""Commands that go to Redis, exactly once: with a mark, in one script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from headwater.common.callables import unfit
from headwater.common.connector import Committer, SinkWriter, WriterContext
from headwater.common.errors import ConfigurationError, HeadwaterError, SerializationError, short_repr
from headwater.common.secrets import without_passwords
from headwater.datastream.connectors.base import DeliveryGuarantee
from headwater.datastream.connectors.library import library
from headwater.datastream.connectors.marked_committer import NUMBER_BITS, MarkedCommitter
from headwater.datastream.connectors.message_sink import DirectWriter, MessageSink, checked_guarantee
from headwater.datastream.connectors.redis.client import RedisClient, checked_url
from headwater.datastream.connectors.spool_committer import NothingToCommit

MOST_ARGUMENTS: Final = 4000
"""Of one command: a script cannot pass on many more."""
SCRIPT_COMMANDS: Final = 1000
"""In one script: the server does nothing else meanwhile."""

_SCRIPT: Final = """
local mark = redis.call('HGET', KEYS[1], 'mark')
if mark and tonumber(mark) >= tonumber(ARGV[1]) then return {0} end
if tonumber(mark or '-1') < tonumber(ARGV[2]) then return {-1, mark or '-1'} end
local done = tonumber(redis.call('HGET', KEYS[1], 'done') or '0')
local number, at = 0, 3
while at <= #ARGV do
  local size = tonumber(ARGV[at])
  number = number + 1
  if number > done then
    local answer = redis.pcall(unpack(ARGV, at + 1, at + size))
    if type(answer) == 'table' and answer.err then
      redis.call('HSET', KEYS[1], 'done', number - 1)
      return {number, answer.err}
    end
  end
  at = at + size + 1
end
redis.call('HSET', KEYS[1], 'mark', ARGV[1])
redis.call('HDEL', KEYS[1], 'done')
return {0}
"""
"""Its arguments are the mark, the mark that it follows, then for each command how many words it has, and these.

A script is not rolled back: if a command fails, those before it have been executed. So it notes how many."""

Command = list[bytes]


class RedisSink(MessageSink):
    """Executes a command, or several, for each record.

    EXACTLY_ONCE (the default): the commands of a checkpoint are executed when it is durable, each once, in the order of
    the records of each partition. AT_LEAST_ONCE: as records come; after a failure some are executed again, so commands
    should be idempotent (SET, HSET, SADD).
    """

    owner = "RedisSink"

    def __init__(self, url: str, command: Callable[[Any], Any], guarantee: DeliveryGuarantee) -> None:
        self.url = url
        self.command = command
        self.guarantee = guarantee

    @staticmethod
    def builder() -> RedisSinkBuilder:
        return RedisSinkBuilder()

    def __repr__(self) -> str:
        return f"RedisSink({without_passwords(self.url)}, {self.guarantee.name})"

    def create_writer(self, context: WriterContext) -> SinkWriter:
        if self.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            return super().create_writer(context)
        client = RedisClient("RedisSink", self.url)
        return DirectWriter(client, lambda values: _execute(client, self.messages(values)))

    def create_committer(self) -> Committer:
        if self.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            return RedisCommitter(self.url)
        return NothingToCommit(RedisClient("RedisSink", self.url).ping)

    def message(self, record: Any) -> list[Command]:
        made = self.command(record)
        if made is None:
            return []
        several = isinstance(made, list) and made and isinstance(made[0], list | tuple)
        return [_command(each, record) for each in (made if several else (made,))]

    def messages(self, values: Sequence[Any]) -> list[Command]:
        return [command for some in super().messages(values) for command in some]


def _command(given: Any, record: Any) -> Command:
    if isinstance(given, list | tuple) and 0 < len(given) <= MOST_ARGUMENTS and isinstance(given[0], str):
        arguments = [_argument(each) for each in given]
        if None not in arguments:
            return arguments  # type: ignore[return-value]
    raise SerializationError(
        f"RedisSink: the command for record {short_repr(record)} is {short_repr(given)}; expected a tuple such as "
        f"('HSET', key, field, value) of at most {MOST_ARGUMENTS} str, bytes, int or float, or a list of such tuples"
    )


def _argument(value: Any) -> bytes | None:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value).encode()
    return None


class RedisCommitter(MarkedCommitter):
    """Runs scripts. The mark is a hash in the same database, so that it is stored, and lost, with the output."""

    def __init__(self, url: str) -> None:
        super().__init__("RedisSink")
        self._client = RedisClient(self.owner, url)
        self._script: Any = None

    def check(self) -> None:
        self._client.ping()

    def batches(self, committables: list[Any]) -> Any:
        for batch in super().batches(committables):
            for start in range(0, len(batch), SCRIPT_COMMANDS):
                yield batch[start : start + SCRIPT_COMMANDS]

    def read_mark(self, name: str) -> int | None:
        found = self._client.call("cannot read the sink's mark", "HGET", name, "mark")
        return None if found is None else int(found)

    def deliver(self, name: str, batch: list[Any], mark: int, after: int) -> int | None:
        if self._script is None:
            self._script = self._client.client.register_script(_SCRIPT)
        words = [word for command in batch for word in (len(command), *command)]
        try:
            number, *problem = self._script(keys=[name], args=[mark, after, *words])
        except library("redis", "Redis", "redis").RedisError as error:
            raise self._client.failed("cannot write", error) from None
        if number < 0:
            return int(problem[0])
        if number:
            text = problem[0].decode(errors="replace")
            raise HeadwaterError(
                f"{self.owner}: Redis {self._client.shown} refuses {short_repr(batch[number - 1])}: {text}. The "
                "commands before it are done; correct the data in Redis and start the job again"
            )
        return None

    def lost(self, name: str, found: int, expected: int) -> HeadwaterError:
        has = f"has the mark {found}" if found >= 0 else "has none"
        return HeadwaterError(
            f"{self.owner}: Redis {self._client.shown} had the mark {expected} in the hash '{name}' and now {has}: it "
            "lost writes, in a restart (appendfsync, an older dump) or a failover, and with them output of the epochs "
            f"{max(found, 0) >> NUMBER_BITS} to {(expected >> NUMBER_BITS) - 1}. To have it again, restore Redis or "
            "start the job from a savepoint made before, in a new checkpoint directory; to go on without it: "
            f"HSET {name} mark {expected}, and start the job again"
        )

    def close(self) -> None:
        self._client.close()


def _execute(client: RedisClient, commands: Sequence[Command]) -> None:
    pipeline = client.client.pipeline(transaction=False)
    for command in commands:
        pipeline.execute_command(*command)
    try:
        pipeline.execute()
    except library("redis", "Redis", "redis").RedisError as error:
        raise client.failed("cannot write", error) from None


class RedisSinkBuilder:
    """Collects the settings of a `RedisSink`."""

    def __init__(self) -> None:
        self._url = ""
        self._command: Callable[[Any], Any] | None = None
        self._guarantee = DeliveryGuarantee.EXACTLY_ONCE

    def set_url(self, url: str) -> RedisSinkBuilder:
        """redis://user:${env:PASSWORD}@host:6379/0, rediss://..., or unix:///path."""
        self._url = checked_url(url, "RedisSink: set_url")
        return self

    def set_command(self, command: Callable[[Any], Any]) -> RedisSinkBuilder:
        """A function from a record to a command, ("HSET", key, field, value), a list of commands, or None for none."""
        if found := unfit(command, 1):
            raise ConfigurationError(f"RedisSink: set_command: expected a function of a record, found {found}")
        self._command = command
        return self

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> RedisSinkBuilder:
        self._guarantee = checked_guarantee(delivery_guarantee, "RedisSink")
        return self

    def build(self) -> RedisSink:
        library("redis", "Redis", "redis")
        if self._command is None:
            raise ConfigurationError("RedisSink: no command; call set_command(lambda record: ('SET', key, value))")
        return RedisSink(checked_url(self._url, "RedisSink: set_url"), self._command, self._guarantee)
