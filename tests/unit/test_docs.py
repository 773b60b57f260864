"""Documents tell the truth: links lead somewhere, named files exist, the settings table is current."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path
    for path in (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/*.md"),
        *ROOT.glob("benchmarks/*.md"),
    )
)

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
NAMED_FILE = re.compile(r"`((?:headwater|tests|docs|examples|scripts|benchmarks)/[\w./-]+)`")
MAKE_TARGET = re.compile(r"`make ([a-z-]+)`")
LAYER_COLUMN = 17
"""Width of the column with the names of layers in the architecture's list of them."""
NAMED_IN_CODE = re.compile(r"`((?!program)[\w/]+\.py)`")
FOLDERS = ("headwater", "tests", "scripts", "benchmarks")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def identity(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def broken_links(text: str, folder: Path) -> list[str]:
    targets = (target for target in LINK.findall(FENCED.sub("", text)) if "://" not in target and target[0] != "#")
    return [target for target in targets if not (folder / target.split("#")[0]).exists()]


def missing_files(text: str) -> list[str]:
    return [name for name in NAMED_FILE.findall(text) if not (ROOT / name).exists()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=identity)
def test_links_lead_somewhere(document: Path) -> None:
    assert broken_links(document.read_text(encoding="utf-8"), document.parent) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=identity)
def test_named_files_exist(document: Path) -> None:
    assert missing_files(document.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=identity)
def test_named_make_targets_exist(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(MAKE_TARGET.findall(document.read_text(encoding="utf-8"))) <= targets


def test_the_checks_can_fail() -> None:
    assert broken_links("see [here](no/such/file.md#part)", ROOT) == ["no/such/file.md#part"]
    assert broken_links("see [here](README.md), [there](https://example.org), [below](#below)", ROOT) == []
    assert missing_files("in `headwater/no_such_file.py`") == ["headwater/no_such_file.py"]


def test_the_architecture_walks_through_the_code() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert len(set(LINK.findall(text))) > 20


def test_the_layers_of_the_architecture_are_folders_of_the_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    block = text[text.index("## Layers") :].split("```")[1]
    layers = [name for line in block.splitlines() for name in line[:LAYER_COLUMN].split()]
    folders = {path.parent.name for path in (ROOT / "headwater").glob("*/__init__.py")}
    assert sorted(layers) == sorted(folders)


@pytest.mark.parametrize("module", sorted((ROOT / "headwater").rglob("*.py")), ids=identity)
def test_files_that_comments_name_exist(module: Path) -> None:
    for name in NAMED_IN_CODE.findall(module.read_text(encoding="utf-8")):
        found = (ROOT / name).exists() or any(any((ROOT / folder).rglob(name)) for folder in FOLDERS)
        assert found, f"there is no file {name}"


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in sorted(folder.glob("[0-9]*.md")) if path.name not in listed] == []


def test_every_example_is_listed() -> None:
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in sorted((ROOT / "examples").glob("*.py")) if path.name not in listed] == []


def test_every_make_target_has_a_description() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    shown = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in re.findall(r"^([a-z-]+):.*##", makefile, re.MULTILINE):
        assert f"make {target} " in shown


@pytest.mark.parametrize("name", ["generate_configuration_docs.py", "generate_function_docs.py"])
def test_a_page_made_from_code_is_current(name: str) -> None:
    script = ROOT / "scripts" / name
    ended = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
