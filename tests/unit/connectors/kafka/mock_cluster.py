"""librdkafka's own mock of a cluster, through ctypes: for faults that a broker of one node cannot have.

It has no transactions worth the name, so only reading and at-least-once output are tried with it.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import confluent_kafka

_POINTER, _INT, _TEXT, _INT32, _INT64 = (
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_int32,
    ctypes.c_int64,
)
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "rd_kafka_conf_new": (_POINTER, []),
    "rd_kafka_new": (_POINTER, [_INT, _POINTER, _TEXT, ctypes.c_size_t]),
    "rd_kafka_destroy": (None, [_POINTER]),
    "rd_kafka_mock_cluster_new": (_POINTER, [_POINTER, _INT]),
    "rd_kafka_mock_cluster_destroy": (None, [_POINTER]),
    "rd_kafka_mock_cluster_bootstraps": (_TEXT, [_POINTER]),
    "rd_kafka_mock_topic_create": (_INT, [_POINTER, _TEXT, _INT, _INT]),
    "rd_kafka_mock_partition_set_leader": (_INT, [_POINTER, _TEXT, _INT32, _INT32]),
    "rd_kafka_mock_broker_set_down": (_INT, [_POINTER, _INT32]),
    "rd_kafka_mock_broker_set_up": (_INT, [_POINTER, _INT32]),
    "rd_kafka_mock_broker_set_rtt": (_INT, [_POINTER, _INT32, _INT]),
    "rd_kafka_mock_push_request_errors_array": (None, [_POINTER, ctypes.c_int16, ctypes.c_size_t, _POINTER]),
}


def _library() -> Any:
    (path,) = (Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs").glob("librdkafka*")
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class MockCluster:
    """Brokers 1 to n, reachable by TCP at `bootstrap_servers`."""

    def __init__(self, brokers: int, topics: dict[str, int]) -> None:
        self._lib = _library()
        error = ctypes.create_string_buffer(256)
        self._client = self._lib.rd_kafka_new(0, self._lib.rd_kafka_conf_new(), error, len(error))
        assert self._client, error.value
        self._cluster = self._lib.rd_kafka_mock_cluster_new(self._client, brokers)
        self.bootstrap_servers = self._lib.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()
        for name, partitions in topics.items():
            assert self._lib.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, brokers) == 0

    def __enter__(self) -> MockCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._lib.rd_kafka_mock_cluster_destroy(self._cluster)
        self._lib.rd_kafka_destroy(self._client)

    def set_leader(self, topic: str, partition: int, broker: int) -> None:
        self._lib.rd_kafka_mock_partition_set_leader(self._cluster, topic.encode(), partition, broker)

    def set_down(self, broker: int) -> None:
        self._lib.rd_kafka_mock_broker_set_down(self._cluster, broker)

    def set_up(self, broker: int) -> None:
        self._lib.rd_kafka_mock_broker_set_up(self._cluster, broker)

    def slow_down(self, broker: int, milliseconds: int) -> None:
        self._lib.rd_kafka_mock_broker_set_rtt(self._cluster, broker, milliseconds)

    def fail_requests(self, api: int, *errors: int) -> None:
        """Answer the next requests of this kind with these errors."""
        codes = (ctypes.c_int * len(errors))(*errors)
        self._lib.rd_kafka_mock_push_request_errors_array(self._cluster, api, len(errors), codes)
