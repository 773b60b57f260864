"""Metrics, with the names of pyflink.metrics."""

from headwater.metrics.in_process import Measured, PlainMetricGroup, Snapshot, add_delta, add_measured, merge_snapshots
from headwater.metrics.metricbase import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = [
    "Counter",
    "Distribution",
    "Measured",
    "Meter",
    "Metric",
    "MetricGroup",
    "PlainMetricGroup",
    "Snapshot",
    "add_delta",
    "add_measured",
    "merge_snapshots",
]
