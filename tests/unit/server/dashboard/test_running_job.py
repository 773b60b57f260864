"""The page on the real server, in front of a job that runs: what it shows, and what it says when things go away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.runtime.job.handle import LocalJobClient
from tests.unit.server.dashboard.browser import Browser
from tests.unit.server.dashboard.payments_job import HOT_CARD, start_payments, start_silent
from tests.unit.server.dashboard.recorded_server import STATE, STATE_PAGE, STATE_VALUE, WHY, live
from tests.unit.server.rest_server import end, eventually, running, serving


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("payments")


@pytest.fixture(scope="module")
def job(folder: Path) -> Iterator[LocalJobClient]:
    client = start_payments(folder)
    running(client)
    yield client
    end(client)


def test_a_running_job_is_found_and_drawn(folder: Path, job: LocalJobClient, browser: Browser) -> None:
    with serving(folder) as rest, browser.page(f"http://127.0.0.1:{rest.port}/") as page:
        page.until_text("card payments", "running", selector="main")
        page.click("a", saying="card payments")
        page.until_text("Source: payments", "card watch", "revenue per shop", "HASH", "Vertices", selector="main")
        assert page.evaluate("document.querySelectorAll('.node').length") == len(
            rest.get(f"/jobs/{job.get_job_id()}")["vertices"]
        )
        assert page.complaints == []


TABS = {
    "overview": ["k/s", "end to end", "Hot key", "42", "Vertices"],
    "exceptions": ["No exceptions"],
    "timeline": ["revenue per shop -> Sink: revenue", "running"],
    "checkpoints": ["Latest completed checkpoint"],
    "checkpoints/history": ["Acknowledged", "2/2"],
    "checkpoints/summary": ["End to end duration", "p99"],
    "dataskew": ["skew", "Most frequent keys", "42"],
    "watermarks": ["2026-01-01", "Behind the clock", "Waits for", "of Source: payments"],
    "flamegraph": ["card watch", "samples until", "root"],
    "state": ["card watch", "book", "Sizes", "KB", "Hot keys", "42"],
    "configuration": ["Job parallelism", "execution.checkpointing.dir"],
    "logs": ["There is no log"],
}
"""{tab: what must be there}. The job runs in the tests' own process, which has no log file."""


@pytest.mark.parametrize("tab", TABS)
def test_each_tab_of_a_running_job(
    folder: Path, job: LocalJobClient, browser: Browser, screenshots: Path, tab: str
) -> None:
    route = f"#/job/running/{job.get_job_id()}/{tab}"
    with serving(folder) as rest, browser.page(f"http://127.0.0.1:{rest.port}/{route}") as page:
        page.until_text(*TABS[tab], selector="main")
        if tab == "overview":
            page.until("!document.querySelector('.no-data')")
        name = tab.replace("/", "-")
        page.screenshot(screenshots / f"live-{name}-light.png")
        page.prefer(dark=True)
        page.screenshot(screenshots / f"live-{name}-dark.png")
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        assert page.complaints == []


def test_made_up_figures_have_the_names_of_real_ones(folder: Path, job: LocalJobClient) -> None:
    """The page's other tests look at made-up figures. What a job does not tell must not be drawn there."""
    with serving(folder) as rest:
        told = eventually("a hot key", lambda: _with_findings(rest.get(f"/jobs/{job.get_job_id()}/live")))
        assert not list(unknown_names(live(), told))
        state = f"/jobs/{job.get_job_id()}/state"
        assert not list(unknown_names(STATE, rest.get(state)))
        assert not list(unknown_names(STATE_PAGE, rest.get(f"{state}/card-watch/book?limit=1")))
        value = rest.get(f"{state}/card-watch/book/{HOT_CARD}")
        assert not list(unknown_names({**STATE_VALUE, "value": None}, value))
        causes = rest.get(f"/jobs/{job.get_job_id()}/why")
        assert not list(unknown_names(WHY, causes))


def test_a_job_that_gives_nothing_out_says_why_by_itself(folder: Path, browser: Browser, screenshots: Path) -> None:
    client = start_silent(folder)
    try:
        route = f"#/job/running/{running(client)}/overview"
        with serving(folder) as rest, browser.page(f"http://127.0.0.1:{rest.port}/{route}") as page:
            page.until_text("only negative ones", "none has passed", selector=".why")
            page.screenshot(screenshots / "live-why-light.png")
            assert page.complaints == []
    finally:
        end(client)


def test_a_job_that_gives_something_out_is_asked_with_the_keyboard(
    folder: Path, job: LocalJobClient, browser: Browser
) -> None:
    route = f"#/job/running/{job.get_job_id()}/overview"
    with serving(folder) as rest, browser.page(f"http://127.0.0.1:{rest.port}/{route}") as page:
        page.until("document.querySelector('.why-question button')")
        page.evaluate("document.querySelector('.why-question button').focus()")
        page.press("Enter")
        page.until_text("output flows", selector=".why")


def test_a_key_of_a_running_job_is_looked_up_and_its_keys_are_browsed(
    folder: Path, job: LocalJobClient, browser: Browser, screenshots: Path
) -> None:
    route = f"#/job/running/{job.get_job_id()}/state"
    with serving(folder) as rest, browser.page(f"http://127.0.0.1:{rest.port}/{route}") as page:
        page.click(".state-item", saying="book")
        page.write(".lookup input", str(HOT_CARD))
        page.press("Enter")
        page.until_text("As of epoch", f"{HOT_CARD}", selector=".state-lookup")
        page.screenshot(screenshots / "live-state-key-light.png")
        page.write(".lookup input", "[")
        page.press("Enter")
        page.until_text("The state did not answer", selector=".state-lookup")
        page.write(".lookup input", "-17")
        page.press("Enter")
        page.until_text("Not found", selector=".state-lookup")
        page.click("button", saying="Browse keys")
        page.until_text("Next 25", selector=".state-lookup")
        first = page.text(".state-lookup tbody")
        page.click("button", saying="Next 25")
        page.until(f"document.querySelector('.state-lookup tbody').innerText !== {json.dumps(first)}")
        page.screenshot(screenshots / "live-state-keys-light.png")
        page.click(".state-item", saying="window-panes")
        page.click("button", saying="Browse keys")
        page.until("document.querySelectorAll('.state-lookup tbody tr').length > 1")
        page.screenshot(screenshots / "live-state-window-light.png")
        assert page.complaints == []


def _with_findings(told: dict[str, Any]) -> dict[str, Any] | None:
    hot = [vertex for vertex in told["vertices"].values() if vertex["hotKeys"]]
    # One vertex stands for all: the made-up ones are all alike.
    return told | {"vertices": {"any": hot[0]}} if hot and told["findings"] else None


def unknown_names(made_up: Any, real: Any, where: str = "") -> Iterator[str]:
    """Yield what the made-up value has and the real one lacks. Ids of vertices stand for each other."""
    if isinstance(made_up, dict):
        for name, value in made_up.items():
            known = name if name in real else "any"
            if known in real:
                yield from unknown_names(value, real[known], f"{where}/{name}")
            else:
                yield f"{where}/{name}"
    elif isinstance(made_up, list) and made_up and real:
        yield from unknown_names(made_up[0], real[0], f"{where}[]")


def test_the_page_asks_for_the_token_and_keeps_it_for_this_tab(
    folder: Path, job: LocalJobClient, browser: Browser, screenshots: Path
) -> None:
    with (
        serving(folder, **{"headwater.server.token": "open-sesame-42"}) as rest,
        browser.page(f"http://127.0.0.1:{rest.port}/") as page,
    ):
        page.until_text("wants a token", selector="dialog")
        assert "card payments" not in page.text()
        page.screenshot(screenshots / "token-light.png")
        page.write("dialog input", "wrong")
        page.press("Enter")
        page.until_text("refused the token", selector="dialog")
        page.write("dialog input", "open-sesame-42")
        page.press("Enter")
        page.until_text("card payments", selector="main")
        page.until("!document.querySelector('dialog')")
        assert page.evaluate("JSON.stringify(localStorage)") == "{}"
        assert "open-sesame" not in page.evaluate("location.href + document.cookie")
        page.reload()
        page.until_text("card payments", selector="main")


def test_a_server_that_goes_away_is_named_and_the_last_facts_stay(
    folder: Path, job: LocalJobClient, browser: Browser, screenshots: Path
) -> None:
    with serving(folder) as rest:
        shown = browser.page(f"http://127.0.0.1:{rest.port}/")
        page = shown.__enter__()
        page.until_text("card payments", selector="main")
    try:
        page.until_text("The server does not answer", "card payments", selector="main")
        page.screenshot(screenshots / "server-gone-light.png")
        with serving(folder, **{"rest.port": str(rest.port)}):
            page.until("!document.querySelector('.banner')")
    finally:
        shown.__exit__(None, None, None)


def test_a_job_that_ends_while_one_looks_is_said_to_be_gone(folder: Path, browser: Browser, screenshots: Path) -> None:
    client = start_payments(folder, "short")
    job_id = running(client)
    with serving(folder) as rest, browser.page(f"http://127.0.0.1:{rest.port}/#/job/running/{job_id}/overview") as page:
        page.until_text("short", "running", selector="main")
        end(client)
        page.until_text("The server does not know job", "Completed jobs", selector="main")
        page.screenshot(screenshots / "job-gone-light.png")
        assert page.complaints == []
