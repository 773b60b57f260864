"""Where the peers live: one virtual environment each under `.bench/`, made on first need."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
BENCH_DIR = PROJECT / ".bench"


@dataclass(frozen=True)
class Environment:
    """A Python to run programs with. Without requirements it is the project's own."""

    name: str
    requirements: tuple[str, ...] = ()

    @property
    def python(self) -> Path:
        if not self.requirements:
            return Path(sys.executable)
        return BENCH_DIR / self.name / "bin" / "python"

    def ensure(self) -> None:
        """Make the environment if it is not there, or was made for other requirements."""
        if not self.requirements:
            return
        home = self.python.parents[1]
        wanted = "\n".join(self.requirements)
        mark = home / "requirements.installed"
        if mark.exists() and mark.read_text(encoding="utf-8") == wanted:
            return
        print(f"installing {', '.join(self.requirements)} into {home.relative_to(PROJECT)}", flush=True)
        shutil.rmtree(home, ignore_errors=True)
        if uv := shutil.which("uv"):
            _run([uv, "venv", "--quiet", "--python", sys.executable, str(home)])
            _run([uv, "pip", "install", "--quiet", "--python", str(self.python), *self.requirements])
        else:
            _run([sys.executable, "-m", "venv", str(home)])
            _run([str(self.python), "-m", "pip", "install", "--quiet", *self.requirements])
        mark.write_text(wanted, encoding="utf-8")


PROJECT_ENVIRONMENT = Environment("project")
FLINK = Environment("flink", ("apache-flink==2.3.0", "setuptools<81"))
BYTEWAX = Environment("bytewax", ("bytewax==0.21.1",))


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
