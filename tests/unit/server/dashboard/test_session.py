"""The page of a real session server: a program is uploaded, run, operated and remembered, with the mouse alone."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from headwater.checkpoint.savepoint.savepoint import is_savepoint
from tests.unit.server.dashboard.browser import Browser
from tests.unit.server.jobs.real_servers import ServerProcess, Storage


def test_a_job_from_its_upload_to_its_history(
    browser: Browser, screenshots: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_MASTER", "in-process")
    storage = Storage(tmp_path)
    server = ServerProcess(storage.path)
    try:
        with browser.page(f"{server.address}/#/submit") as page:
            page.until_text("Nothing was uploaded yet", selector="main")
            wrong = tmp_path / "notes.exe"
            wrong.write_text("x")
            page.choose_file("input[type=file]", wrong)
            page.until_text("The upload failed", "expected a file that ends with", selector="main")
            page.choose_file("input[type=file]", storage.program)
            page.until_text("0_counts.py is uploaded", "Run …", selector="main")
            page.screenshot(screenshots / "session-submit-light.png")
            page.click("button", saying="Run …")
            page.click("dialog button", saying="Submit")
            page.until_text("The program did not start", "IndexError", selector="dialog")
            page.write("dialog input", f"{storage.out} 100000 500")
            page.click("dialog button", saying="Submit")
            page.until_text("counts", "running", "Source: numbers", selector="main")
            page.until("!document.querySelector('.no-data')")
            page.screenshot(screenshots / "session-job-light.png")

            page.click(".actions button", saying="Rescale")
            page.write("dialog input", "2")
            page.click("dialog form .buttons button", saying="Rescale")
            page.until_text("runs with parallelism 2", selector="dialog .result")
            page.click("dialog button", saying="Done")
            page.click(".actions button", saying="Stop")
            page.write("dialog input", str(tmp_path / "savepoints"))
            page.click("dialog form .buttons button", saying="Stop the job")
            page.until_text("Savepoint completed", selector="dialog .result")
            assert is_savepoint(page.text("dialog .path"))
            page.click("dialog button", saying="Done")
            page.until_text("This job is over (finished)", "Throughput", selector="main")
            assert page.evaluate("[...document.querySelectorAll('.actions button')].every((each) => each.disabled)")
            page.screenshot(screenshots / "session-ended-light.png")
            page.click("[role=tab]", saying="Logs")
            page.until_text("it begins", selector="main")
            page.go("#/job/completed")
            page.until_text("counts", "finished", selector="main")
            page.screenshot(screenshots / "session-completed-light.png")
            assert page.complaints == []
    finally:
        server.end(signal.SIGKILL)
        storage.end_drivers()
