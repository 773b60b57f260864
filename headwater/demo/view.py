"""What the demo shows while the job runs: a live panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK

_BARS = " ▁▂▃▄▅▆▇█"
_HISTORY = 60
_SECONDS_BETWEEN_LINES = 2.0
_STARTING = "Spark starts, and the first epoch runs …"


class View(Protocol):
    """Where the demo tells what happens. `show` comes several times per second, `say` once per event."""

    def __enter__(self) -> View: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, elapsed_s: float, progress: Mapping[str, Any], alerts: int) -> None: ...

    def say(self, elapsed_s: float, text: str) -> None: ...


def make_view(console: Console, total: int) -> View:
    return LiveView(console, total) if console.is_terminal else LineView(console, total)


class LineView:
    """One line every two seconds, for logs and pipes."""

    def __init__(self, console: Console, total: int) -> None:
        self._console, self._total = console, total
        self._next_line_s = 0.0

    def __enter__(self) -> LineView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def show(self, elapsed_s: float, progress: Mapping[str, Any], alerts: int) -> None:
        if elapsed_s < self._next_line_s:
            return
        self._next_line_s = elapsed_s + _SECONDS_BETWEEN_LINES
        if progress["epoch"] < 0:
            self._print(elapsed_s, _STARTING)
            return
        facts = ", ".join(f"{name} {value}" for name, value in facts_of(progress, alerts, self._total))
        self._print(elapsed_s, facts)

    def say(self, elapsed_s: float, text: str) -> None:
        self._print(elapsed_s, text)

    def _print(self, elapsed_s: float, text: str) -> None:
        self._console.print(f"{elapsed_s:5.1f} s  {text}", highlight=False, soft_wrap=True)


class LiveView:
    """A panel that is drawn anew in place: progress, the facts, the speed of the last epochs, what happened."""

    def __init__(self, console: Console, total: int) -> None:
        self._total = total
        self._speeds: deque[float] = deque(maxlen=_HISTORY)
        self._last_epoch: int | None = None
        self._events: list[str] = []
        self._live = Live(Panel(Text(_STARTING)), console=console, refresh_per_second=8)

    def __enter__(self) -> LiveView:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, elapsed_s: float, progress: Mapping[str, Any], alerts: int) -> None:
        if progress["epoch"] < 0:
            return
        if progress["epoch"] != self._last_epoch:
            self._last_epoch = progress["epoch"]
            self._speeds.append(float(progress["records_per_second"]))
        self._live.update(self._panel(elapsed_s, progress, alerts))

    def say(self, elapsed_s: float, text: str) -> None:
        self._events.append(f"{elapsed_s:5.1f} s  {text}")

    def _panel(self, elapsed_s: float, progress: Mapping[str, Any], alerts: int) -> Panel:
        facts = Table.grid(padding=(0, 2))
        facts.add_column(style="dim")
        facts.add_column()
        for name, value in facts_of(progress, alerts, self._total):
            facts.add_row(name, value)
        facts.add_row("speed", Text(sparkline(list(self._speeds)), style="green"))
        bar = ProgressBar(total=self._total, completed=progress["records_in"])
        events = [Text(each, style="yellow") for each in self._events]
        return Panel(Group(bar, facts, *events), title=f"headwater demo · {elapsed_s:.0f} s", title_align="left")


def facts_of(progress: Mapping[str, Any], alerts: int, total: int) -> list[tuple[str, str]]:
    return [
        ("payments", f"{progress['records_in']:,} of {total:,}"),
        ("records/s", f"{progress['records_per_second']:,.0f}"),
        ("watermark", time_of(progress["watermark"])),
        ("state", f"{progress['state_entries']:,} entries"),
        ("epoch", f"{progress['epoch']} ({progress['epoch_ms']:,.0f} ms)"),
        ("restarts", f"{progress['restarts']}"),
        ("alerts", f"{alerts:,}"),
    ]


def time_of(watermark: int | None) -> str:
    """Event time as people read it; the ends of time by name."""
    if watermark is None or watermark == MIN_WATERMARK:
        return "none yet"
    if watermark == MAX_WATERMARK:
        return "end of input"
    return datetime.fromtimestamp(watermark / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def sparkline(values: list[float]) -> str:
    highest = max(values, default=0.0)
    if highest <= 0:
        return ""
    return "".join(_BARS[round(max(value, 0.0) / highest * (len(_BARS) - 1))] for value in values)
