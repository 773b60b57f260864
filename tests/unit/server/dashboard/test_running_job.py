"""The page on the real server, in front of a job that runs: what it shows, and what it says when things go away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.runtime.job.handle import LocalJobClient
from tests.unit.server.dashboard.browser import Browser
from tests.unit.server.dashboard.payments_job import start_payments
from tests.unit.server.rest_server import end, running, serving


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("payments")


@pytest.fixture(scope="module")
def job(folder: Path) -> Iterator[LocalJobClient]:
    client = start_payments(folder)
    running(client)
    yield client
    end(client)


def test_a_running_job_is_found_and_drawn(
    folder: Path, job: LocalJobClient, browser: Browser, screenshots: Path
) -> None:
    with serving(folder) as rest, browser.page(f"http://127.0.0.1:{rest.port}/") as page:
        page.until_text("card payments", "running", selector="main")
        page.click("a", saying="card payments")
        page.until_text("Source: payments", "card watch", "revenue per shop", "HASH", "Vertices", selector="main")
        assert page.evaluate("document.querySelectorAll('.node').length") == len(
            rest.get(f"/jobs/{job.get_job_id()}")["vertices"]
        )
        page.screenshot(screenshots / "running-job-light.png")
        for tab, text in (
            ("Exceptions", "No exceptions"),
            ("TimeLine", "running"),
            ("Configuration", "Job parallelism"),
        ):
            page.click("[role=tab]", saying=tab)
            page.until_text(text, selector=".tab-panel")
            page.screenshot(screenshots / f"running-{tab.lower()}-light.png")
        assert page.complaints == []


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
