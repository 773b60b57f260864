"""The cases of this folder, with their sizes and promises."""

from __future__ import annotations

from benchmarks.case import GROWTH, HEADWATER, PARALLELISM, RESIDENT, SHUFFLE, Case, Contender, Target, paired
from benchmarks.harness.cpu import KINDS
from benchmarks.harness.process import Program

FOLDER = "benchmarks.engines"
CPU_PER_TASK_BEFORE_MS = 21.0
"""What a task with next to nothing to do cost before anything was done about it: most of it in the JVM."""


def engine_cases() -> tuple[Case, ...]:
    return (_growth(), _idle(), _throughput())


def engine_targets() -> tuple[Target, ...]:
    return (
        Target(
            "growth",
            "resident: longer epochs for each slot more, ms",
            lambda look: look("growth", RESIDENT, "ms_per_slot"),
            2.0,
            at_least=False,
        ),
        Target(
            "growth",
            f"shuffle: CPU per task at parallelism {GROWTH[-1]}, ms",
            lambda look: look("growth", SHUFFLE, "cpu_per_task_ms"),
            CPU_PER_TASK_BEFORE_MS / 2,
            at_least=False,
            shown_as="{:.1f}",
        ),
        Target(
            "idle",
            "an idle job, all processes, % of one core",
            lambda look: look("idle", HEADWATER, "percent"),
            2.0,
            at_least=False,
            shown_as="{:.1f}",
        ),
        Target(
            "engines",
            "keyed count: choosing the engine / shuffle only",
            lambda look: paired(look, "engines", HEADWATER, SHUFFLE),
            0.97,
            at_least=True,
        ),
    )


def _growth() -> Case:
    def run(contender: str, engine: str, warm: int, epochs: int) -> Contender:
        program = Program(f"{FOLDER}.growth", {"engine": engine, "warm": warm, "epochs": epochs}, timeout_s=300)
        return Contender(contender, program, quick=(("warm", 1), ("epochs", 2), ("largest", 2)), peer=False)

    return Case(
        "growth",
        "A small epoch through two keyed stages, by parallelism",
        f"ms_{GROWTH[0]}",
        f"ms at {GROWTH[0]}",
        (run(RESIDENT, "resident", 30, 150), run(SHUFFLE, "shuffle", 5, 16)),
        columns=(
            *((f"ms_{parallelism}", f"ms at {parallelism}") for parallelism in GROWTH[1:]),
            ("ms_per_slot", "ms more per slot"),
            *((f"cpu_ms_{parallelism}", f"CPU ms at {parallelism}") for parallelism in GROWTH),
            *((f"cpu_{kind}_ms", f"of it, {kind}") for kind in KINDS),
            ("cpu_per_task_ms", "CPU ms per task"),
        ),
    )


def _idle() -> Case:
    def run(contender: str, engine: str) -> Contender:
        program = Program(f"{FOLDER}.idle", {"engine": engine, "parallelism": PARALLELISM}, timeout_s=120)
        return Contender(contender, program, quick=(("busy", 0.5), ("settle", 0.5), ("measured", 1.0)), peer=False)

    return Case(
        "idle",
        "A job whose source is silent: CPU of all its processes over 30 s",
        "percent",
        "% of one core",
        (run(HEADWATER, "auto"),),
        columns=(
            *((kind, f"%, {kind}") for kind in KINDS),
            ("epochs_per_second", "epochs/s"),
        ),
    )


def _throughput() -> Case:
    def run(contender: str, engine: str) -> Contender:
        sizes = {"keys": 1000, "records": 4_000_000, "parallelism": PARALLELISM}
        program = Program("benchmarks.keyed_count.headwater_job", {**sizes, "interval": "10 s", "engine": engine})
        return Contender(contender, program, repeats=5, quick=(("records", 400_000),), peer=False)

    return Case(
        "engines",
        "Keyed count-and-sum, 1,000 keys: the engine chosen per epoch, and shuffle only, in turn",
        "rate",
        "records/s",
        (run(HEADWATER, "auto"), run(SHUFFLE, "shuffle")),
        columns=(("records", "records"), ("seconds", "seconds")),
    )
