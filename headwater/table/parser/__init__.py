"""Flink's SQL: from text to syntax trees and back. Knows nothing of tables or types."""
