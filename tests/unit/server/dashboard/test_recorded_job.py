"""Every page and tab in a real browser, in front of what Flink's own REST answered: drawn, and without a complaint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.unit.server.dashboard.browser import Browser, Page
from tests.unit.server.dashboard.recorded_server import (
    BIG_KEY,
    BIG_VALUE,
    COUNT,
    FAILED,
    RUNNING,
    SOURCE,
    RecordedServer,
    recorded_server,
)

JOB = f"#/job/running/{RUNNING}"

# {name: (route, texts that must be there)}
VIEWS = {
    "overview": ("#/overview", ["Available task slots", "rest-running", "rest-failed", "9.91 k/s"]),
    "running": ("#/job/running", ["Running Jobs", "rest-running"]),
    "completed": ("#/job/completed", ["rest-finished", "canceled", "failed"]),
    "job": (f"{JOB}/overview", ["Source: numbers", "9.00 k/s", "HASH", "94 %", "Throughput", "9.0 times", "Vertices"]),
    "exceptions": (f"#/job/completed/{FAILED}/exceptions", ["Root exception", "number 500 is not welcome"]),
    "no-exceptions": (f"{JOB}/exceptions", ["No exceptions"]),
    "timeline": (f"{JOB}/timeline", ["count -> discard: Writer", "running 6.5 s"]),
    "checkpoints": (f"{JOB}/checkpoints", ["Latest completed checkpoint", "chk-3", "No savepoint was taken"]),
    "checkpoints-history": (f"{JOB}/checkpoints/history", ["Acknowledged", "4/4", "16 ms"]),
    "checkpoints-summary": (f"{JOB}/checkpoints/summary", ["End to end duration", "p99", "KB"]),
    "checkpoints-configuration": (f"{JOB}/checkpoints/configuration", ["exactly once", "2.0 s"]),
    "data-skew": (f"{JOB}/dataskew", ["skew 80 %", "skew 0 %", "9,000", "user-42"]),
    "watermarks": (f"{JOB}/watermarks", ["00:00:00.601", "5.0 s", "3", "Waits for", "split 0 of numbers"]),
    "state": (f"{JOB}/state", ["book", "40.0 k keys · ~3.81 MB", "TTL", "4.89 MB", "Hot keys", "user-42", "31 %"]),
    "configuration": (f"{JOB}/configuration", ["Restart with fixed delay", "Job parallelism"]),
    "logs": (f"{JOB}/logs", ["epoch 59 took 23 ms", "60 lines"]),
    "task-managers": ("#/task-manager", ["localhost:35491", "2 of 4", "23.5 GB"]),
    "job-manager": ("#/job-manager", ["jobmanager.rpc.address"]),
    "submit": ("#/submit", ["Choose a program", "Nothing was uploaded yet"]),
    "nowhere": ("#/nowhere", ["There is no page at this address"]),
    "unknown-job": (f"#/job/running/{'f' * 32}/overview", ["does not know job"]),
}


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, RecordedServer]]:
    with recorded_server() as found:
        yield found


@pytest.fixture
def page(browser: Browser, served: tuple[str, RecordedServer]) -> Iterator[Page]:
    served[1].silent = False
    served[1].done.clear()
    with browser.page(served[0]) as page:
        yield page
        assert page.complaints == []


@pytest.mark.parametrize("view", VIEWS)
def test_view(page: Page, view: str, screenshots: Path) -> None:
    route, texts = VIEWS[view]
    page.go(route)
    page.until_text(*texts, selector="main")
    page.screenshot(screenshots / f"{view}-light.png")
    light = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.prefer(dark=True)
    page.until(f"getComputedStyle(document.documentElement).backgroundColor !== {light!r}")
    page.screenshot(screenshots / f"{view}-dark.png")
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow == 0, "the page is wider than 1280 px"


def test_the_theme_can_be_switched_and_stays(page: Page) -> None:
    page.click("[aria-label='Dark colours']")
    page.until("document.documentElement.dataset.theme === 'dark'")
    page.reload()
    page.until("document.querySelector('nav') && document.documentElement.dataset.theme === 'dark'")
    page.click("[aria-label='Auto colours']")
    page.until("!document.documentElement.dataset.theme")


def test_a_vertex_opens_beside_the_graph_and_escape_closes_it(page: Page, screenshots: Path) -> None:
    page.go(f"{JOB}/overview")
    page.click(f"[data-vertex='{COUNT}']")
    page.until_text("Parallelism", "localhost", "running", selector=".drawer")
    page.click(".drawer .tab", saying="Metrics")
    page.until_text("busyTimeMsPerSecond", "940", selector=".drawer")
    page.click(".drawer .tab", saying="Accumulators")
    page.until_text("seen", "886", selector=".drawer")
    page.click(".drawer .tab", saying="SubTasks")
    page.until_text("localhost", selector=".drawer")
    page.screenshot(screenshots / "vertex-light.png")
    page.press("Escape")
    page.until("!document.querySelector('.drawer')")


def test_the_graph_zooms_and_fits_by_buttons(page: Page) -> None:
    transform = "document.querySelector('.canvas')?.style.transform"
    page.go(f"{JOB}/overview")
    page.until_text("9.00 k/s", selector=".graph")  # figures came: nothing below moves the frame any more
    page.click("[aria-label='Fit the graph into its frame']")
    fitted = page.evaluate(transform)
    page.click("[aria-label='Zoom in']")
    page.until(f"{transform} !== {fitted!r}")
    page.click("[aria-label='Fit the graph into its frame']")
    page.until(f"{transform} === {fitted!r}")


def test_why_there_is_no_output(page: Page, served: tuple[str, RecordedServer], screenshots: Path) -> None:
    page.go(f"{JOB}/overview")
    page.click("button", saying="Why is there no output?")
    page.until_text("Watermark stuck", "channel 2 is silent", "with_idleness", selector=".why")
    page.screenshot(screenshots / "why-light.png")
    page.click(".why [aria-label='Close']")
    page.until("!document.querySelector('.why')")
    served[1].silent = True  # the page notices by itself
    page.until_text("channel 2 is silent", selector=".why")


def test_a_key_is_looked_up_and_keys_are_browsed(page: Page) -> None:
    page.go(f"{JOB}/state")
    page.write(".lookup input", "7")
    page.press("Enter")
    page.until_text('"payments": 12', "812", selector=".state-lookup")
    page.write(".lookup input", "8")
    page.click("button", saying="Look up")
    page.until_text("Not found", selector=".state-lookup")
    page.click("button", saying="Browse keys")
    page.until_text("[1,2]", selector=".state-lookup")


def test_numbers_in_state_are_shown_with_all_their_digits(page: Page) -> None:
    key, value = msgspec.json.encode(BIG_KEY).decode(), msgspec.json.encode(BIG_VALUE).decode()
    page.go(f"{JOB}/state")
    page.click(".state-item", saying="recent")
    page.write(".lookup input", key)
    page.press("Enter")
    page.until_text("As of epoch", "812", selector=".state-lookup")
    assert page.evaluate("document.querySelector('pre.value').innerText.replace(/\\s/g, '')") == value.replace(" ", "")
    assert key in page.text(".state-lookup .card-body").split()
    page.click("button", saying="Browse keys")
    page.until_text(key, value, selector=".state-lookup tbody")


def test_a_checkpoint_unfolds_to_its_partitions(page: Page, screenshots: Path) -> None:
    page.go(f"{JOB}/checkpoints/history")
    page.click("[aria-label='Details of 3']")
    page.until_text("count -> discard: Writer", "4.95 KB", selector="tr.detail")
    page.click(f"[aria-label='Details of {SOURCE}']")
    page.until_text("Partition", "Sync", selector="tr.detail tr.detail")
    page.screenshot(screenshots / "checkpoint-light.png")


@pytest.mark.parametrize(
    ("button", "confirm", "result", "sent"),
    [
        ("Savepoint", "Take savepoint", "/savepoints/sp-1", ("POST", "/savepoints")),
        ("Stop", "Stop the job", "The job is stopped", ("POST", "/stop")),
        ("Rescale", "Rescale", "parallelism 3", ("PATCH", "/rescaling?parallelism=3")),
        ("Cancel", "Cancel the job", "being cancelled", ("PATCH", "?mode=cancel")),
    ],
)
def test_a_button_asks_first_and_says_what_came_of_it(
    page: Page, served: tuple[str, RecordedServer], button: str, confirm: str, result: str, sent: tuple[str, str]
) -> None:
    page.go(f"{JOB}/overview")
    page.click(".actions button", saying=button)
    page.until("document.querySelector('dialog[open]')")
    assert page.evaluate("document.querySelector('dialog').contains(document.activeElement)")
    page.press("Escape")
    page.until("!document.querySelector('dialog')")
    assert served[1].done == []

    page.click(".actions button", saying=button)
    if button == "Rescale":
        page.write("dialog input", "3")
    page.click("dialog form .buttons button", saying=confirm)
    page.until_text(result, selector="dialog .result")
    assert [(method, url) for method, url, _ in served[1].done] == [(sent[0], f"/jobs/{RUNNING}{sent[1]}")]


def test_tabs_are_reached_by_keyboard(page: Page) -> None:
    page.go(f"{JOB}/overview")
    page.until("document.querySelector('[role=tab][aria-selected=true]')")
    page.evaluate("document.querySelector('[role=tab][aria-selected=true]').focus()")
    page.press("ArrowRight")
    page.until_text("No exceptions", selector="main")
    assert page.evaluate("document.activeElement.innerText") == "Exceptions"
    page.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != ""
