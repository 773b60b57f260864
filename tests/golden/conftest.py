"""Golden jobs share the Spark of the run, and leave no slot behind."""

from __future__ import annotations

from tests.spark.conftest import no_slots_left_behind, run_job

__all__ = ["no_slots_left_behind", "run_job"]
