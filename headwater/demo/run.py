"""The demo from start to verdict: build the job, watch it, kill one of its slots half way, check what it wrote."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from rich.console import Console
from rich.table import Table

from headwater.common import Configuration, WatermarkStrategy
from headwater.common.config_options import CHECKPOINT_DIRECTORY, PARALLELISM, resolve
from headwater.common.errors import HeadwaterError
from headwater.common.ids import MAX_WATERMARK
from headwater.common.serialization import Encoder
from headwater.common.watermark_strategy import TimestampAssigner
from headwater.datastream import StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.connectors.file_system import FileSink, RollingPolicy
from headwater.demo.card_watch import BOOKS, CardWatch, parse_book
from headwater.demo.payments import Payment, end_of_day_ms, payment
from headwater.demo.proof import Verdict, judge
from headwater.demo.view import View, make_view
from headwater.runtime.job.handle import LocalJobClient
from headwater.runtime.slot.starter import local_host
from headwater.server.job_dashboard import serve_job

_POLL_S = 0.2
CANCEL_S = 30


@dataclass(frozen=True)
class DemoSettings:
    """`rate_per_second` None: as fast as the machine is. `kill` False: an undisturbed run. `count` None: no end."""

    count: int | None = 2_000_000
    rate_per_second: float | None = 60_000
    parallelism: int = 2
    kill: bool = True


class WatchedJob(Protocol):
    """The part of a job client that the demo uses."""

    def progress(self) -> dict[str, Any]: ...

    def get_job_status(self) -> Any: ...

    def get_job_execution_result(self) -> Any: ...

    def cancel(self) -> Any: ...


@dataclass
class Killing:
    """The slot that was killed, and when the job had recovered."""

    pid: int
    stage: int
    partition: int
    epoch: int
    at_s: float
    new_pid: int | None = None
    recovered_at_s: float | None = None


@dataclass
class Watched:
    """What was seen of the job."""

    killing: Killing | None = None
    last: dict[str, Any] = field(default_factory=dict)
    elapsed_s: float = 0.0


class PaymentTime(TimestampAssigner):
    def extract_timestamp(self, value: Payment, record_timestamp: int) -> int:
        return value.time_ms


def run(settings: DemoSettings, console: Console) -> bool:
    """Run the demo and print its verdict; False if the proof fails."""
    count = settings.count
    assert count is not None, "a run without an end has no verdict"
    console.print(
        f"{count:,} card payments; every card has state and timers; epochs are committed exactly once."
        + (" Half way, one slot gets kill -9." if settings.kill else ""),
        highlight=False,
    )
    with tempfile.TemporaryDirectory(prefix="headwater-demo-") as directory:
        output = Path(directory)
        client, configuration = start(settings, output)
        began = time.monotonic()
        try:
            with make_view(console, count) as view:
                serve_job(client, configuration, lambda text: view.say(time.monotonic() - began, text))
                watched = watch(client, settings, output, view)
        except BaseException:
            client.cancel().result(CANCEL_S)  # the directory goes away below: nobody may write to it
            raise
        console.print("Comparing with a plain loop over the same payments …")
        books = [parse_book(line) for line in committed_lines(output / "books")]
        verdict = judge(count, books, committed_lines(output / "alerts"))
    return report(verdict, watched, settings, console)


def start(settings: DemoSettings, output: Path) -> tuple[LocalJobClient, Configuration]:
    """Start the job. Return it with all its settings, those of the environment included."""
    configuration = Configuration()
    configuration.set(CHECKPOINT_DIRECTORY, str(output / "checkpoints"))
    configuration.set(PARALLELISM, settings.parallelism)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)

    payments = env.from_source(
        DataGeneratorSource(payment, settings.count, rate_per_second=settings.rate_per_second),
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(PaymentTime()),
        "payments",
    )
    alerts = (
        payments.key_by(lambda each: each.card)
        .process(CardWatch(end_of_day_ms(settings.count) if settings.count is not None else MAX_WATERMARK - 1))
        .uid("card-watch")
        .name("card watch")
    )
    alerts.sink_to(_file_sink(output / "alerts")).name("alerts").uid("alerts")
    alerts.get_side_output(BOOKS).sink_to(_file_sink(output / "books")).name("books").uid("books")
    return cast(LocalJobClient, env.execute_async("headwater demo")), resolve(configuration)


def _file_sink(directory: Path) -> FileSink:
    return (
        FileSink.for_row_format(str(directory), Encoder.simple_string_encoder())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .build()
    )


def watch(client: WatchedJob, settings: DemoSettings, output: Path, view: View) -> Watched:
    """Show the job until it ends; kill one slot when half of the payments are in. Raises what the job raised."""
    watched = Watched()
    started = time.monotonic()
    result = client.get_job_execution_result()
    while not result.done():
        watched.last = client.progress()
        watched.elapsed_s = time.monotonic() - started
        follow(watched, settings, view)
        view.show(watched.elapsed_s, watched.last, sum(1 for _ in committed_lines(output / "alerts")))
        time.sleep(_POLL_S)
    result.result()
    watched.last = client.progress()
    watched.elapsed_s = time.monotonic() - started
    follow(watched, settings, view)
    if settings.kill and (watched.killing is None or watched.killing.new_pid is None):
        raise HeadwaterError("the job ended before a slot was killed and replaced; run the demo with more payments")
    return watched


def follow(watched: Watched, settings: DemoSettings, view: View) -> None:
    """Kill a slot when half of the payments are in. Note when the job has recovered."""
    progress, killing = watched.last, watched.killing
    if killing is None:
        half_way = settings.count is not None and progress["records_in"] * 2 >= settings.count
        if settings.kill and half_way and (slot := a_local_slot(progress)):
            killing = Killing(slot["pid"], slot["stage"], slot["partition"], progress["epoch"], watched.elapsed_s)
            os.kill(killing.pid, signal.SIGKILL)
            watched.killing = killing
            view.say(
                watched.elapsed_s,
                f"kill -9 {killing.pid}: the slot of stage {killing.stage}, partition {killing.partition}",
            )
        return
    if killing.recovered_at_s is None and progress["epoch"] > killing.epoch:
        new_pid = pid_of(progress, killing.stage, killing.partition)
        if new_pid is not None and new_pid != killing.pid:
            killing.new_pid, killing.recovered_at_s = new_pid, watched.elapsed_s
            view.say(
                watched.elapsed_s,
                f"recovered in {watched.elapsed_s - killing.at_s:.1f} s: slot {new_pid} restored its state"
                f" and epoch {progress['epoch']} is committed",
            )


def a_local_slot(progress: Mapping[str, Any]) -> dict[str, Any] | None:
    """Some slot of this machine: another machine's pids are not ours to kill."""
    return next((slot for slot in progress["slots"] if slot["host"] == local_host()), None)


def pid_of(progress: Mapping[str, Any], stage: int, partition: int) -> int | None:
    return next(
        (slot["pid"] for slot in progress["slots"] if (slot["stage"], slot["partition"]) == (stage, partition)), None
    )


def committed_lines(directory: Path) -> Iterator[str]:
    """The lines of all visible files: what a sink has committed. Hidden files are still pending."""
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not any(part.startswith((".", "_")) for part in path.relative_to(directory).parts):
            yield from path.read_text(encoding="utf-8").splitlines()


def report(verdict: Verdict, watched: Watched, settings: DemoSettings, console: Console) -> bool:
    killing = watched.killing
    table = Table(title="What the job wrote, and what it must be", title_justify="left")
    table.add_column("")
    table.add_column("the job", justify="right")
    table.add_column("a plain loop", justify="right")
    table.add_row("payments counted", f"{verdict.counted:,}", f"{verdict.payments_in:,}")
    table.add_row("sum of amounts", f"{verdict.cents / 100:,.2f}", f"{verdict.expected_cents / 100:,.2f}")
    table.add_row("alerts", f"{verdict.alerts:,}", f"{verdict.expected_alerts:,}")
    table.add_row("alerts that differ", f"{verdict.wrong_alerts:,}", "0")
    console.print(table)
    facts = [f"{watched.last['epoch'] + 1} epochs in {watched.elapsed_s:.0f} s"]
    if settings.rate_per_second:
        facts.append(f"at most {settings.rate_per_second:,.0f} payments per second")
    if killing and killing.recovered_at_s is not None:
        facts.append(
            f"slot {killing.pid} back as {killing.new_pid} after {killing.recovered_at_s - killing.at_s:.1f} s"
        )
    console.print("; ".join(facts), highlight=False, soft_wrap=True)
    style = "bold green" if verdict.holds else "bold red"
    console.print(verdict.line(slots_killed=1 if killing else 0), style=style, highlight=False, soft_wrap=True)
    return verdict.holds
