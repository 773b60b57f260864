"""Watermark alignment: a split that is far ahead of the slowest one of its group waits. Pure decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headwater.common.ids import MIN_WATERMARK
from headwater.graph.plan import JobPlan, SourceSpec
from headwater.operators.timestamps import TimestampsAndWatermarksOperator
from headwater.time.watermark_keys import at_output


@dataclass(frozen=True)
class SourceAlignment:
    """How the splits of a source are aligned (`WatermarkStrategy.with_watermark_alignment`)."""

    group: str
    max_drift_ms: int
    key: str
    """Of a split's watermark in its acknowledgement."""

    def watermark(self, watermarks: Mapping[str, int]) -> int:
        """The watermark that the source has emitted for a split."""
        return watermarks.get(self.key, MIN_WATERMARK)


def alignment_of(plan: JobPlan, source: SourceSpec) -> SourceAlignment | None:
    """Return the alignment that the source's own watermark strategy asks for."""
    for operator in plan.stages[0].operators if plan.stages else ():
        if any(each.chained and each.upstream == source.id for each in operator.inputs):
            made = operator.factory()
            alignment = made.strategy.alignment if isinstance(made, TimestampsAndWatermarksOperator) else None
            if alignment is not None:
                return SourceAlignment(alignment.group, alignment.max_drift_ms, at_output(operator.uid))
    return None


def limits(slowest: Iterable[tuple[SourceAlignment | None, int | None]]) -> dict[str, int]:
    """Return {group: the watermark that no split of it may be beyond}, from each source's slowest split.

    The smallest drift that a source of the group asks for counts for all of them. A group in which every split is idle,
    or has ended, has no limit.
    """
    found: dict[str, tuple[int, int]] = {}  # {group: (slowest watermark, drift)}
    for alignment, watermark in slowest:
        if alignment is not None and watermark is not None:
            before = found.get(alignment.group, (watermark, alignment.max_drift_ms))
            found[alignment.group] = (min(before[0], watermark), min(before[1], alignment.max_drift_ms))
    return {group: max(watermark, MIN_WATERMARK) + drift for group, (watermark, drift) in found.items()}
