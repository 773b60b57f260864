"""The dashboard's files: complete, from this server only, kept by browsers for as long as they stay the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headwater.server.dashboard import page_files as module
from headwater.server.dashboard.page_files import ASK_EACH_TIME, FOR_EVER, PageFile, page_files
from tests.unit.server.rest_server import Rest, serving

PAGE = Path(module.__file__).parent / "page"
FILES = {file.path: file for file in page_files()}
VERSION = page_files()[1].path.split("/")[2]


def own_scripts() -> list[PageFile]:
    return [file for file in page_files() if file.path.endswith(".js") and "/vendor/" not in file.path]


def test_every_import_names_a_file_that_is_served() -> None:
    imports = 0
    for file in FILES.values():
        for name in (
            re.findall(r'(?:from|import)\s*"([^"]+)"', file.content.decode()) if file.path.endswith("js") else ()
        ):
            target = Path(file.path).parent / name
            parts: list[str] = []
            for part in target.parts:
                parts = parts[:-1] if part == ".." else [*parts, part]
            assert "/".join(parts).replace("//", "/") in FILES, f"{file.path} imports {name}"
            imports += 1
    assert imports > 50


def test_index_names_files_that_are_served() -> None:
    named = re.findall(r'(?:src|href)="(dashboard/[^"]+)"', FILES["/"].content.decode())
    assert len(named) == 8
    assert all(f"/{each}" in FILES for each in named)


@pytest.mark.parametrize("forbidden", ["http://", "https://", "eval(", "new Function", "innerHTML", "document.write"])
def test_our_scripts_ask_no_other_host_and_run_no_text(forbidden: str) -> None:
    assert [file.path for file in own_scripts() if forbidden in file.content.decode()] == []


def test_vendored_files_have_versions_and_licences() -> None:
    readme = (PAGE / "vendor" / "README.md").read_text(encoding="utf-8")
    for file in (PAGE / "vendor").iterdir():
        assert file.name == "README.md" or f"`{file.name}`" in readme
    assert sum(file.stat().st_size for file in (PAGE / "vendor").iterdir()) < 100_000


def test_the_version_follows_the_content(monkeypatch: pytest.MonkeyPatch) -> None:
    read = module._read
    monkeypatch.setattr(module, "_read", lambda *place: [(name, text + b" ") for name, text in read(*place)])
    changed = module.page_files.__wrapped__()
    assert changed[1].path.split("/")[2] != VERSION
    assert changed[1].path.split("/")[2] in changed[0].content.decode()


def test_the_server_gives_the_page_without_a_token_and_nothing_else(tmp_path: Path) -> None:
    with serving(tmp_path, **{"headwater.server.token": "secret-of-the-server"}) as server:
        rest = Rest(server.port)
        index = rest.ask("GET", "/")
        assert (index.status, index.headers["cache-control"]) == (200, ASK_EACH_TIME)
        assert "default-src 'none'" in index.headers["content-security-policy"]
        assert "unsafe" not in index.headers["content-security-policy"]
        assert rest.ask("GET", "/index.html").raw == index.raw

        script = rest.ask("GET", f"/dashboard/{VERSION}/main.js")
        assert (script.status, script.headers["cache-control"]) == (200, FOR_EVER)
        assert script.headers["content-type"] == "text/javascript; charset=utf-8"

        assert rest.ask("GET", "/jobs/overview").status == 401
        for path in ("/dashboard/0000000000000000/main.js", f"/dashboard/{VERSION}/../page_files.py", "/dashboard/"):
            assert rest.ask("GET", path).status == 401
            assert rest.ask("GET", path, token="secret-of-the-server").status == 404
