"""Functions and key selectors of users that do little."""

from __future__ import annotations

from headwater.datastream import FilterFunction, FlatMapFunction, KeySelector, MapFunction


class Identity(MapFunction):
    def map(self, value):
        return value


class Twice(FlatMapFunction):
    def flat_map(self, value):
        return [value, value]


class Keep(FilterFunction):
    def filter(self, value):
        return True


class First(KeySelector):
    def get_key(self, value):
        return value[0]
