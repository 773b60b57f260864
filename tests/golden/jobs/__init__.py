"""All golden jobs, by name."""

from tests.golden.jobs.batches import BATCHES
from tests.golden.jobs.broadcast_rules import BROADCAST_RULES
from tests.golden.jobs.buffer_join import BUFFER_JOIN
from tests.golden.jobs.dedupe_with_ttl import DEDUPE_WITH_TTL
from tests.golden.jobs.fraud_alert import FRAUD_ALERT
from tests.golden.jobs.golden_job import GoldenJob
from tests.golden.jobs.interval_join import INTERVAL_JOIN
from tests.golden.jobs.pattern import PATTERN
from tests.golden.jobs.sensor_averages import SENSOR_AVERAGES
from tests.golden.jobs.sessionised_clicks import SESSIONISED_CLICKS
from tests.golden.jobs.top_n import TOP_N
from tests.golden.jobs.two_stages import TWO_STAGES
from tests.golden.jobs.unanswered_calls import UNANSWERED_CALLS
from tests.golden.jobs.union_and_side_outputs import UNION_AND_SIDE_OUTPUTS
from tests.golden.jobs.window_join import WINDOW_JOIN
from tests.golden.jobs.windows import WINDOWS
from tests.golden.jobs.word_count import WORD_COUNT

__all__ = ["JOBS", "GoldenJob"]

JOBS: dict[str, GoldenJob] = {
    job.name: job
    for job in (
        WORD_COUNT,
        SENSOR_AVERAGES,
        FRAUD_ALERT,
        SESSIONISED_CLICKS,
        DEDUPE_WITH_TTL,
        TOP_N,
        TWO_STAGES,
        UNION_AND_SIDE_OUTPUTS,
        BUFFER_JOIN,
        BATCHES,
        INTERVAL_JOIN,
        WINDOW_JOIN,
        BROADCAST_RULES,
        WINDOWS,
        UNANSWERED_CALLS,
        PATTERN,
    )
}
