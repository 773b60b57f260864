"""`make parity`: record what PyFlink does, for tests that compare headwater with it where PyFlink is not installed.

Makes `.bench/flink` (or takes the Python given with --python), lists PyFlink's names and signatures into
`tests/parity/pyflink_api.txt`, its configuration keys into `headwater/common/config/flink_keys.txt`, runs the programs
of `tests/parity/programs` and stores what they print, sorted, in `tests/parity/recorded`. The same for those of
PyFlink's own examples that `tests/parity/flink_examples.py` names. Then `docs/pyflink.md` is made.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.harness.environments import FLINK  # noqa: E402
from tests.parity.flink_examples import EXAMPLES, RECORDED_EXAMPLES  # noqa: E402

PROGRAMS = ROOT / "tests" / "parity" / "programs"
RECORDED = ROOT / "tests" / "parity" / "recorded"
API = ROOT / "tests" / "parity" / "pyflink_api.txt"
KEYS = ROOT / "headwater" / "common" / "flink_keys.txt"
MARK = "=== parity:"
SECONDS_PER_PROGRAM = 180


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", help="names of programs; all if none is given")
    parser.add_argument("--python", type=Path, help="a Python that has PyFlink, instead of .bench/flink")
    parser.add_argument("--only-programs", action="store_true", help="record programs, not names, keys and examples")
    parser.add_argument("--only-examples", action="store_true", help="record PyFlink's own examples, nothing else")
    chosen = parser.parse_args()
    if chosen.python is None:
        FLINK.ensure()
    python = chosen.python or FLINK.python
    everything = not (chosen.only_programs or chosen.only_examples or chosen.programs)
    failed: list[str] = []
    if everything:
        record_names(python)
        record_keys(python)
    if not chosen.only_examples:
        paths = [PROGRAMS / f"{name}.py" for name in chosen.programs] or sorted(PROGRAMS.glob("*.py"))
        failed += record_programs(python, paths, RECORDED)
    if everything or chosen.only_examples:
        examples = package_of(python) / "examples" / "datastream"
        failed += record_programs(python, [examples / f"{name}.py" for name in EXAMPLES], RECORDED_EXAMPLES)
    for name in failed:
        print(f"not recorded: {name}", file=sys.stderr)
    subprocess.run([sys.executable, str(ROOT / "scripts" / "parity_table.py")], check=True)
    return 1 if failed else 0


def record_names(python: Path) -> None:
    script = ROOT / "scripts" / "parity_api.py"
    API.write_bytes(subprocess.run([python, script], check=True, stdout=subprocess.PIPE).stdout)
    print(f"{API.relative_to(ROOT)}: {len(API.read_text(encoding='utf-8').splitlines())} lines")


def record_keys(python: Path) -> None:
    """The keys are constants of Java classes in PyFlink's jars; Java itself reads them."""
    package = package_of(python)
    jars = os.pathsep.join(str(jar) for folder in ("lib", "opt") for jar in sorted((package / folder).glob("*.jar")))
    script = ROOT / "scripts" / "ParityFlinkKeys.java"
    keys = subprocess.run(["java", "-cp", jars, script], check=True, stdout=subprocess.PIPE, text=True).stdout
    KEYS.write_text(keys, encoding="utf-8")
    print(f"{KEYS.relative_to(ROOT)}: {len(keys.splitlines())} keys")


def package_of(python: Path) -> Path:
    home = "import os, pyflink; print(os.path.dirname(pyflink.__file__))"
    return Path(subprocess.run([python, "-c", home], check=True, capture_output=True, text=True).stdout.strip())


def record_programs(python: Path, paths: list[Path], folder: Path) -> list[str]:
    """Run the programs and store what they print. A program that hangs is given up; returns what was not recorded."""
    folder.mkdir(exist_ok=True)
    remaining = list(paths)
    failed: list[str] = []
    while remaining:
        outputs, stuck = run_worker(python, remaining)
        for name, (status, lines) in outputs.items():
            if status == "done":
                (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in sorted(lines)), encoding="utf-8")
            else:
                failed.append(name)
        done = set(outputs) | {stuck}
        if stuck:
            failed.append(stuck)
        elif not outputs:
            raise SystemExit("PyFlink did not run a single program; see the messages above")
        remaining = [path for path in remaining if path.stem not in done]
    return failed


def run_worker(python: Path, paths: list[Path]) -> tuple[dict[str, tuple[str, list[str]]], str]:
    """Run programs until all are done or one takes too long. Returns {name: (status, lines)}, and who took too long."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output.txt"
        with output.open("ab") as file:
            worker = subprocess.Popen(
                [python, ROOT / "scripts" / "parity_flink_worker.py", *paths],
                stdout=file,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        size, changed, stuck = -1, time.monotonic(), ""
        try:
            while worker.poll() is None:
                time.sleep(0.5)
                if output.stat().st_size != size:
                    size, changed = output.stat().st_size, time.monotonic()
                elif time.monotonic() - changed > SECONDS_PER_PROGRAM:
                    stuck = unfinished(output)
                    break
        finally:
            kill_group(worker)
        return read_outputs(output), stuck


def kill_group(worker: subprocess.Popen[bytes]) -> None:
    """The worker's JVM lives in its process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def unfinished(output: Path) -> str:
    """The program that was begun last."""
    begun = [line.split()[-1] for line in output.read_text("utf-8").splitlines() if line.startswith(f"{MARK} begin")]
    return begun[-1] if begun else "the first program"


def read_outputs(output: Path) -> dict[str, tuple[str, list[str]]]:
    found: dict[str, tuple[str, list[str]]] = {}
    lines: list[str] = []
    for line in output.read_text("utf-8").splitlines():
        if not line.startswith(MARK):
            lines.append(line)
            continue
        status, name = line.removeprefix(MARK).split()
        if status != "begin":
            found[name] = (status, lines)
            print(f"{status}: {name} ({len(lines)} lines)", flush=True)
        lines = []
    return found


if __name__ == "__main__":
    sys.exit(main())
