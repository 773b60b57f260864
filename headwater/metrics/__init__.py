"""Metrics, with the names of pyflink.metrics."""

from headwater.metrics.in_process import PlainMetricGroup, Snapshot, merge_snapshots
from headwater.metrics.metricbase import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = [
    "Counter",
    "Distribution",
    "Meter",
    "Metric",
    "MetricGroup",
    "PlainMetricGroup",
    "Snapshot",
    "merge_snapshots",
]
