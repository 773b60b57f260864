"""A Kinesis server on this machine (moto), made to reshard as Kinesis does, and to refuse what a test wants refused."""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import boto3
from moto.kinesis.models import KinesisBackend, Shard, Stream, kinesis_backends
from moto.kinesis.utils import decompose_shard_iterator
from moto.server import ThreadedMotoServer

REGION = "us-east-1"
ACCOUNT = "123456789012"
_numbers = itertools.count()
_lock = threading.RLock()
_get_records, _put_records = KinesisBackend.get_records, KinesisBackend.put_records
_split_shard, _merge_shards = Stream.split_shard, Stream.merge_shards

refuses: list[Callable[[dict[str, Any]], bool]] = []
"""One for each of the next requests: which records it does not take."""


def _keeping(real: Any) -> Any:
    """moto moves the records of a shard to its children; Kinesis leaves them where they are."""

    def reshard(self: Stream, first: str, second: str) -> None:
        with _lock:
            before = {shard.shard_id: shard.records for shard in self.shards.values()}
            for shard in self.shards.values():
                shard.records = {}
            real(self, first, second)
            for shard_id, records in before.items():
                self.shards[shard_id].records = records

    return reshard


def _ending(self: KinesisBackend, stream_arn: Any, shard_iterator: str, limit: int | None) -> Any:
    """moto never ends a shard; Kinesis gives no further iterator behind the last record of a closed one."""
    with _lock:
        following, records, behind = _get_records(self, stream_arn, shard_iterator, limit)
        name, shard_id, _ = decompose_shard_iterator(following)
        shard = self.describe_stream(None, name).get_shard(shard_id)
        last = int(decompose_shard_iterator(following)[2])
        if not shard.is_open and last >= shard.get_max_sequence_number():
            return None, records, behind
        return following, records, behind


def _refusing(self: KinesisBackend, stream_arn: Any, stream_name: str, records: list[dict[str, Any]]) -> Any:
    with _lock:
        refused = refuses.pop(0) if refuses else lambda record: False
        taken = [record for record in records if not refused(record)]
        answers = iter(_put_records(self, stream_arn, stream_name, taken)["Records"] if taken else ())
        problem = {"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "slow down"}
        all_answers = [problem if refused(record) else next(answers) for record in records]
        return {"FailedRecordCount": len(records) - len(taken), "Records": all_answers}


KinesisBackend.get_records = _ending  # type: ignore[method-assign]
KinesisBackend.put_records = _refusing  # type: ignore[method-assign]
Stream.split_shard = _keeping(_split_shard)  # type: ignore[method-assign]
Stream.merge_shards = _keeping(_merge_shards)  # type: ignore[method-assign]


class KinesisServer:
    """Where it is."""

    def __init__(self, url: str) -> None:
        self.properties = {
            "aws.region": REGION,
            "aws.endpoint": url,
            "aws.credentials.provider.basic.accesskeyid": "nobody",
            "aws.credentials.provider.basic.secretkey": "nothing",
        }
        self.client = self.client_of("kinesis")

    def client_of(self, service: str) -> Any:
        return boto3.client(
            service, endpoint_url=self.properties["aws.endpoint"], region_name=REGION, aws_access_key_id="nobody",
            aws_secret_access_key="nothing",
        )  # fmt: skip


class KinesisStream:
    """A new stream."""

    def __init__(self, server: KinesisServer, shards: int = 1) -> None:
        self.server = server
        self.name = f"stream-{next(_numbers)}"
        self._client = server.client
        self._client.create_stream(StreamName=self.name, ShardCount=shards)

    def put(self, values: list[Any], key: str | None = None) -> None:
        for start in range(0, len(values), 500):
            records = [
                {"Data": str(value).encode(), "PartitionKey": key or f"key-{value}"}
                for value in values[start : start + 500]
            ]
            self._client.put_records(StreamName=self.name, Records=records)

    @property
    def inside(self) -> Stream:
        """What moto has."""
        return kinesis_backends[ACCOUNT][REGION].streams[self.name]

    def shard(self, number: int) -> Shard:
        return self.inside.shards[f"shardId-{number:012d}"]

    def split(self, number: int) -> None:
        shard = self.shard(number)
        middle = str((shard.starting_hash + shard.ending_hash) // 2)
        self._client.split_shard(StreamName=self.name, ShardToSplit=shard.shard_id, NewStartingHashKey=middle)

    def merge(self, first: int, second: int) -> None:
        self._client.merge_shards(
            StreamName=self.name, ShardToMerge=self.shard(first).shard_id,
            AdjacentShardToMerge=self.shard(second).shard_id,
        )  # fmt: skip

    def read(self) -> list[str]:
        """All that is there, shard by shard."""
        found = []
        for shard in self._client.list_shards(StreamName=self.name)["Shards"]:
            where = self._client.get_shard_iterator(
                StreamName=self.name, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )
            answer = self._client.get_records(ShardIterator=where["ShardIterator"])
            found += [record["Data"].decode() for record in answer["Records"]]
        return found


@contextlib.contextmanager
def kinesis_server() -> Iterator[KinesisServer]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield KinesisServer("http://{}:{}".format(*server.get_host_and_port()))
    finally:
        server.stop()
