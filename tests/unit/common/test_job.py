"""The small things a program holds of a job: id, status, result, future, client, restart strategies, tags."""

from __future__ import annotations

import asyncio
import pickle
import threading
from concurrent.futures import CancelledError
from datetime import timedelta
from typing import Any

import pytest

from headwater.common.completable_future import CompletableFuture
from headwater.common.config_options import FAILURE_RATE_INTERVAL, resolve
from headwater.common.configuration import Configuration
from headwater.common.errors import ConfigurationError, HeadwaterError, TypeMismatchError
from headwater.common.execution_config import ExecutionConfig
from headwater.common.job_client import JobClient
from headwater.common.job_execution_result import JobExecutionResult
from headwater.common.job_id import JobID
from headwater.common.job_status import JobStatus
from headwater.common.output_tag import BAD_TIMESTAMPS, OutputTag
from headwater.common.restart_strategy import RestartStrategies
from headwater.common.typeinfo import Types


def test_a_job_id_is_a_value() -> None:
    assert len(str(JobID.generate())) == 32
    assert JobID.generate() != JobID.generate()
    assert JobID("a") == JobID("a")


def test_terminal_states() -> None:
    terminal = {status for status in JobStatus if status.is_globally_terminal_state()}
    assert terminal == {JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED}
    assert {status for status in JobStatus if status.is_terminal_state()} == terminal | {JobStatus.SUSPENDED}


def test_a_result_tells_runtime_and_accumulators() -> None:
    result = JobExecutionResult(JobID("j"), 1234, {"records": 10})
    assert result.get_net_runtime() == 1234
    assert result.get_accumulator_result("records") == 10
    assert result.get_accumulator_result("other") is None
    assert "Job Runtime: 1234 ms" in str(result)
    assert "- records: 10" in str(result)


def test_a_future_completes_between_threads() -> None:
    future: CompletableFuture[int] = CompletableFuture()
    assert not future.done()
    assert future.exception() is None
    threading.Timer(0, future.set_result, [5]).start()
    assert future.result(timeout=10) == 5
    assert future.get() == 5
    assert str(future) == "CompletableFuture[completed]"


def test_a_future_fails_and_is_cancelled() -> None:
    failed = CompletableFuture.failed(ValueError("x"))
    assert isinstance(failed.exception(), ValueError)
    with pytest.raises(ValueError, match="x"):
        failed.result()
    cancelled: CompletableFuture[int] = CompletableFuture()
    assert cancelled.cancel()
    assert cancelled.cancelled()
    assert isinstance(cancelled.exception(), CancelledError)
    with pytest.raises(TimeoutError):
        CompletableFuture[int]().result(timeout=0)


def test_a_future_can_be_awaited_and_called_back() -> None:
    async def wait() -> int:
        return await CompletableFuture.completed(3)

    assert asyncio.run(wait()) == 3
    seen: list[Any] = []
    future: CompletableFuture[int] = CompletableFuture()
    future.add_done_callback(lambda done: seen.append(done.result()))
    future.set_result(9)
    assert seen == [9]


def test_a_client_without_savepoints_says_so() -> None:
    class Client(JobClient):
        get_job_id = get_job_status = cancel = get_job_execution_result = get_accumulators = None  # type: ignore[assignment]

    with pytest.raises(HeadwaterError, match="cannot make savepoints"):
        Client().stop_with_savepoint(True)
    with pytest.raises(HeadwaterError, match="cannot make savepoints"):
        Client().trigger_savepoint("/x")


def test_restart_strategies_are_settings() -> None:
    configuration = Configuration()
    strategy = RestartStrategies.fixed_delay_restart(4, timedelta(seconds=2))
    strategy.apply(configuration)
    assert configuration.to_dict() == {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "4",
        "restart-strategy.fixed-delay.delay": "2000",
    }
    assert strategy == RestartStrategies.fixed_delay_restart(4, 2000)
    RestartStrategies.no_restart().apply(configuration)
    assert resolve(configuration, {}).get_string("restart-strategy.type", "") == "none"
    RestartStrategies.failure_rate_restart(3, timedelta(minutes=5), 100).apply(configuration)
    resolved = resolve(configuration, {})
    assert resolved.get_string("restart-strategy.type", "") == "failure-rate"
    assert resolved.get(FAILURE_RATE_INTERVAL) == 300_000
    with pytest.raises(ConfigurationError, match="failure_rate"):
        RestartStrategies.failure_rate_restart(0, 2, 3)
    with pytest.raises(ConfigurationError, match="restart_attempts"):
        RestartStrategies.fixed_delay_restart(-1, 5)


def test_execution_config_is_a_view() -> None:
    configuration = Configuration()
    config = ExecutionConfig(configuration).set_parallelism(3).set_max_parallelism(64)
    config.set_global_job_parameters({"city": "Bern", "year": "1"})
    config.set_global_job_parameters({"city": "Basel"})
    assert (config.get_parallelism(), config.get_max_parallelism()) == (3, 64)
    assert config.get_global_job_parameters() == {"city": "Basel"}
    assert configuration.get_integer("parallelism.default", 0) == 3
    with pytest.raises(ConfigurationError, match=r"parallelism\.default: expected at least 1, found 0"):
        config.set_parallelism(0)


def test_output_tags() -> None:
    tag = OutputTag("late", Types.STRING())
    assert pickle.loads(pickle.dumps(tag)) == tag == OutputTag("late")
    assert hash(tag) == hash(OutputTag("late"))
    assert OutputTag("r", [Types.INT()]).type_info == Types.ROW([Types.INT()])
    assert OutputTag("u").type_info == Types.PICKLED_BYTE_ARRAY()
    assert BAD_TIMESTAMPS.tag_id == "headwater.bad-timestamps"
    for wrong in ("", None, 5):
        with pytest.raises(ValueError, match="tag_id"):
            OutputTag(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeMismatchError, match="type_info"):
        OutputTag("x", str)  # type: ignore[arg-type]
