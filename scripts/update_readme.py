"""Runs the program in README.md on Spark and writes what it printed below it.

python scripts/update_readme.py
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"

PROGRAM = re.compile(r"^```python\n(?P<program>.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^(?P<line>\.venv/bin/headwater run .*count\.py)$", re.MULTILINE)
OUTPUT = re.compile(
    r"(?P<begin><!-- output: begin .*?-->\n)(?:```\n(?P<lines>.*?)```\n)?(?P<end><!-- output: end -->)", re.DOTALL
)


def program(readme: str) -> str:
    """The first Python block."""
    found = PROGRAM.search(readme)
    if found is None:
        raise SystemExit("README.md has no ```python block")
    return found["program"]


def command(readme: str) -> list[str]:
    """The words of the line that runs the program."""
    found = COMMAND.search(readme)
    if found is None:
        raise SystemExit("README.md has no line that runs the program: '.venv/bin/headwater run ... count.py'")
    return shlex.split(found["line"])


def shown_output(readme: str) -> list[str]:
    """The lines that the README says the program prints; none if they were not filled in yet."""
    found = OUTPUT.search(readme)
    if found is None:
        raise SystemExit("README.md has lost its 'output: begin' and 'output: end' comments")
    return (found["lines"] or "").splitlines()


def start(text: str, directory: Path) -> subprocess.Popen[str]:
    """The program, started with the README's own command; in a session of its own."""
    (directory / "count.py").write_text(text, encoding="utf-8")
    _, *arguments = command(README.read_text(encoding="utf-8"))
    return subprocess.Popen(
        [sys.executable, "-m", "headwater", *arguments],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run(text: str, directory: Path) -> list[str]:
    """What the program prints from start to end."""
    process = start(text, directory)
    printed, complaints = process.communicate()
    if process.returncode:
        raise SystemExit(f"the program in README.md failed:\n{complaints}")
    return printed.splitlines()


def main() -> None:
    readme = README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as directory:
        lines = run(program(readme), Path(directory))
    block = "```\n" + "".join(f"{line}\n" for line in lines) + "```\n"
    README.write_text(OUTPUT.sub(lambda found: found["begin"] + block + found["end"], readme), encoding="utf-8")


if __name__ == "__main__":
    main()
