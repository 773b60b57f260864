"""What `explain` may tell besides the plan."""

from __future__ import annotations

from enum import Enum


class ExplainDetail(Enum):
    ESTIMATED_COST = "ESTIMATED_COST"
    CHANGELOG_MODE = "CHANGELOG_MODE"
    JSON_EXECUTION_PLAN = "JSON_EXECUTION_PLAN"
    PLAN_ADVICE = "PLAN_ADVICE"
