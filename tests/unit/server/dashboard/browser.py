"""A headless Chromium, driven by its DevTools protocol over a pipe: a few hundred lines fewer than a driver's client.

What a person does is sent as real input events: a click goes to what is visible at that place, a key to what has the
focus.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

WIDTH, HEIGHT = 1280, 900
PATIENCE_S = 20.0

FLAGS = (
    "--headless",
    "--no-sandbox",  # in a container there is no user namespace to build one in; it sees only our own pages
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--no-first-run",
    "--no-proxy-server",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)

KEYS = {"Escape": 27, "Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowLeft": 37}


class BrowserError(AssertionError):
    """The browser could not do it, or the page did not become what was expected."""


class Browser:
    """One browser process; `page()` gives a page with cookies and storage of its own."""

    def __init__(self, executable: str, profile: Path) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to descriptor 4.
        script = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        arguments = [executable, *FLAGS, f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", script, *arguments],
            pass_fds=(to_browser, from_browser),
            env={**os.environ, "LC_ALL": "en_US.UTF-8", "LANGUAGE": "en_US"},  # POSIX is no language of a browser
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._ids = itertools.count(1)
        self._answers: dict[int, SimpleQueue[dict[str, Any]]] = {}
        self._pages: dict[str, Page] = {}
        threading.Thread(target=self._listen, name="browser", daemon=True).start()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)

    def _listen(self) -> None:
        with os.fdopen(self._read, "rb") as stream:
            rest = b""
            while part := stream.raw.read(1 << 16):  # type: ignore[attr-defined]
                *messages, rest = (rest + part).split(b"\0")
                for message in messages:
                    self._receive(json.loads(message))

    def _receive(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answers.pop(message["id"]).put(message)
        elif page := self._pages.get(message.get("sessionId", "")):
            page.notice(message["method"], message["params"])

    def command(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        number = next(self._ids)
        answer: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._answers[number] = answer
        message = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        try:
            found = answer.get(timeout=PATIENCE_S * 3)
        except Empty:
            raise BrowserError(f"{method} has no answer (exit code of the browser: {self._process.poll()})") from None
        if "error" in found:
            raise BrowserError(f"{method}: {found['error']['message']}")
        result: dict[str, Any] = found["result"]
        return result

    @contextmanager
    def page(self, url: str, *, dark: bool = False) -> Iterator[Page]:
        context = self.command("Target.createBrowserContext")["browserContextId"]
        target = self.command("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session)
        try:
            page.open(url, dark=dark)
            yield page
        finally:
            del self._pages[session]
            self.command("Target.disposeBrowserContext", browserContextId=context)


class Page:
    """One page. `complaints` are uncaught errors, console errors, and violations of the content security policy."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.complaints: list[str] = []

    def _do(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.command(method, self._session, **parameters)

    def notice(self, method: str, event: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "assert"):
            self.complaints.append(" ".join(str(each.get("value", each.get("description"))) for each in event["args"]))
        elif (
            method == "Log.entryAdded" and event["entry"]["level"] == "error" and event["entry"]["source"] != "network"
        ):
            self.complaints.append(event["entry"]["text"])  # "network": an answer 4xx, which pages handle

    def open(self, url: str, *, dark: bool = False) -> None:
        for domain in ("Page", "Runtime", "Log"):
            self._do(f"{domain}.enable")
        self._do("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)
        self.prefer(dark=dark)
        self._do("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && document.querySelector('main')")

    def reload(self) -> None:
        """Load the page anew; return when the old one is gone."""
        self.evaluate("window.beforeReload = true")
        self._do("Page.reload")
        self.until("!window.beforeReload && document.readyState === 'complete'")

    def prefer(self, *, dark: bool) -> None:
        """Let the system prefer dark or light colours, and no motion: a screenshot must not depend on its moment."""
        features = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
        named = [{"name": name, "value": value} for name, value in features.items()]
        self._do("Emulation.setEmulatedMedia", features=named)

    def evaluate(self, expression: str) -> Any:
        found = self._do("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise BrowserError(f"{expression}: {found['exceptionDetails']['exception'].get('description')}")
        return found["result"].get("value")

    def until(self, expression: str, patience_s: float = PATIENCE_S) -> Any:
        """Wait until the expression is true, and return its value."""
        deadline = time.monotonic() + patience_s
        while True:
            try:
                if value := self.evaluate(f"((found) => (found instanceof Node ? true : found))({expression})"):
                    return value
            except BrowserError as error:
                if "context" not in str(error) and "navigated" not in str(error):  # the page is being replaced
                    raise
            if time.monotonic() > deadline:
                raise BrowserError(
                    f"not within {patience_s:g} s: {expression}\nthe page says:\n{self.text()}\n{self.complaints}"
                )
            time.sleep(0.03)

    def text(self, selector: str = "body") -> str:
        """What a person reads there; empty if there is no such element."""
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def until_text(self, *wanted: str, selector: str = "body") -> str:
        """Wait until all texts are visible. Upper and lower case are one: styles change them."""
        quoted = json.dumps([each.lower() for each in wanted])
        inner = f"(document.querySelector({json.dumps(selector)})?.innerText ?? '').toLowerCase()"
        self.until(f"{quoted}.every((each) => {inner}.includes(each))")
        return self.text(selector)

    def click(self, selector: str, *, saying: str = "") -> None:
        """Click the element as a person does: when it stands still, and nothing else lies above it."""
        found = self.until(
            f"""(async () => {{
              const all = [...document.querySelectorAll({json.dumps(selector)})];
              const element = all.find((each) => each.innerText.includes({json.dumps(saying)}) && !each.disabled);
              if (!element) return null;
              element.scrollIntoView({{ block: "center", behavior: "instant" }});
              const before = element.getBoundingClientRect();
              await new Promise((resolve) => setTimeout(resolve, 50));
              const box = element.getBoundingClientRect();
              if (box.x !== before.x || box.y !== before.y) return null;
              const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
              const hit = document.elementFromPoint(x, y);
              return hit && (element.contains(hit) || hit.contains(element)) ? {{ x, y }} : null;
            }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._do("Input.dispatchMouseEvent", type=kind, x=found["x"], y=found["y"], button="left", clickCount=1)

    def write(self, selector: str, text: str) -> None:
        """Replace what is in a field."""
        self.click(selector)
        self.evaluate(f"document.querySelector({json.dumps(selector)}).select()")
        self._do("Input.insertText", text=text)

    def choose_file(self, selector: str, path: Path) -> None:
        """Put a file into a field for one."""
        found = self._do("Runtime.evaluate", expression=f"document.querySelector({json.dumps(selector)})")
        self._do("DOM.setFileInputFiles", files=[str(path)], objectId=found["result"]["objectId"])

    def press(self, key: str) -> None:
        code = KEYS[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self._do("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def go(self, route: str) -> None:
        self.evaluate(f"location.hash = {json.dumps(route)}")

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        height = self.evaluate("document.documentElement.scrollHeight") if whole else HEIGHT
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": max(HEIGHT, min(height, 2400)), "scale": 1}
        shot = self._do("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=whole)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(shot["data"]))
