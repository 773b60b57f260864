"""Operators on RocksDB read the state of a batch at once, where not all of it is in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.common.errors import InvalidKeyError, UserCodeError
from headwater.operators.base import OperatorContext
from headwater.operators.functions.plain import KeyedProcessFunction
from headwater.operators.process import KeyedProcessOperator
from headwater.state.descriptors import ValueStateDescriptor
from headwater.state.rocksdb import store as rocksdb_store
from headwater.state.rocksdb.backend import RocksDBKeyedStateBackend
from headwater.state.rocksdb.options import RocksDBOptions


class Count(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value()


class Collected:
    def __init__(self) -> None:
        self.values: list[Any] = []

    def emit(self, values: list[Any], timestamps: Any) -> None:
        self.values += values


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RocksDBKeyedStateBackend]:
    monkeypatch.setattr(rocksdb_store, "_MIN_CACHED", 10)
    backend = RocksDBKeyedStateBackend("op", 4, range(4), RocksDBOptions(8 << 20, tmp_path))
    monkeypatch.setattr(backend.memory, "_object_bytes", 0)
    yield backend
    backend.close()


def operator_on(backend: RocksDBKeyedStateBackend) -> tuple[KeyedProcessOperator, Collected]:
    operator, output = KeyedProcessOperator(lambda value: value, Count()), Collected()
    operator.setup(OperatorContext("op", "count", 0, 1, 4, keyed_backend=backend), output)  # type: ignore[arg-type]
    operator.open()
    return operator, output


def run(operator: KeyedProcessOperator, backend: RocksDBKeyedStateBackend, values: list[Any]) -> None:
    backend.begin_epoch()
    operator.read_ahead(values)
    operator.process_batch(list(values), None)
    backend.commit_epoch()


def test_what_is_not_in_memory_is_read_at_once(backend: RocksDBKeyedStateBackend) -> None:
    operator, output = operator_on(backend)
    run(operator, backend, list(range(40)))
    run(operator, backend, list(range(40, 80)))  # what was there before is not in memory any more
    assert backend.reads_ahead
    reads: list[Any] = []
    get = backend.database.get

    def counted(asked: Any) -> Any:
        reads.append(asked)
        return get(asked)

    backend.database.get = counted
    output.values.clear()
    run(operator, backend, list(range(40)))
    assert output.values == [(key, 2) for key in range(40)]
    assert all(isinstance(asked, list) for asked in reads), "a value was read by itself"


def test_nothing_is_read_ahead_while_all_is_in_memory(backend: RocksDBKeyedStateBackend) -> None:
    operator, _ = operator_on(backend)
    run(operator, backend, [1, 2, 3])
    assert not backend.reads_ahead


@pytest.mark.parametrize(("record", "error"), [(float("nan"), InvalidKeyError), (None, UserCodeError)])
def test_a_bad_record_is_named_where_it_is_processed(
    backend: RocksDBKeyedStateBackend, record: Any, error: type[Exception]
) -> None:
    operator, _ = operator_on(backend)
    run(operator, backend, list(range(40)))
    if error is UserCodeError:
        operator.key_of = lambda value: value + 1
    with pytest.raises(error, match="count"):
        run(operator, backend, [1, record, 2])
