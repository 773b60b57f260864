"""The read side, version 1: likes, followers and a ranking, as state that is queried in place.

    headwater run -c network/v1 examples/social_network/read_side_v1.py network/log

Its mistake: a like that comes twice counts twice. Phones send again what they are not sure of, so that happens.
Version 2 is beside it; README.md tells how it takes over.
"""

import sys

from headwater.common import Duration, WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.file_system import FileSource, StreamFormat
from headwater.datastream.connectors.function_sink import DiscardSink
from headwater.datastream.state import MapStateDescriptor, ValueStateDescriptor


class Likes(KeyedProcessFunction):
    """Per post."""

    def open(self, runtime_context: RuntimeContext):
        self.likes = runtime_context.get_state(ValueStateDescriptor("likes"))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        likes = (self.likes.value() or 0) + (1 if value["event"] == "Liked" else -1)
        self.likes.update(likes)
        yield value["post"], likes


class Followers(KeyedProcessFunction):
    """Per user. The last thing that somebody did counts, in whatever order the events come."""

    def open(self, runtime_context: RuntimeContext):
        self.latest = runtime_context.get_map_state(MapStateDescriptor("latest"))
        self.followers = runtime_context.get_state(ValueStateDescriptor("followers"))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        known = self.latest.get(value["user"])
        if known is None or known[0] < value["at"]:
            self.latest.put(value["user"], (value["at"], value["event"] == "Followed"))
            self.followers.update(sorted(user for user, (_, follows) in self.latest.items() if follows))
        return []


class Ranking(KeyedProcessFunction):
    """Of all posts: the ten with the most likes. Tells when they change."""

    def open(self, runtime_context: RuntimeContext):
        self.likes = runtime_context.get_map_state(MapStateDescriptor("likes"))
        self.top = runtime_context.get_state(ValueStateDescriptor("top"))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        post, likes = value
        rises = likes >= (self.likes.get(post) or 0)
        self.likes.put(post, likes)
        if rises:
            top = [entry for entry in self.top.value() or [] if entry[0] != post] + [[post, likes]]
        else:  # any other post may move up
            top = [[other, count] for other, count in self.likes.items()]
        before = self.top.value()
        top = sorted(top, key=lambda entry: (-entry[1], entry[0]))[:10]
        if top != before:
            self.top.update(top)
            yield top


class Position(KeyedProcessFunction):
    """How many events of the log are part of what is shown."""

    def open(self, runtime_context: RuntimeContext):
        self.events = runtime_context.get_state(ValueStateDescriptor("events"))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        self.events.update((self.events.value() or 0) + 1)
        return []


def main(log):
    env = StreamExecutionEnvironment.get_execution_environment()
    source = (
        FileSource.for_record_stream_format(StreamFormat.json_lines_format(), log)
        .monitor_continuously(Duration.of_millis(500))
        .build()
    )
    events = env.from_source(source, WatermarkStrategy.no_watermarks(), "log").uid("log")
    likes = events.filter(lambda each: each["event"] in ("Liked", "Unliked")).key_by(lambda each: each["post"])
    follows = events.filter(lambda each: each["event"] in ("Followed", "Unfollowed")).key_by(lambda each: each["whom"])
    likes = likes.process(Likes()).uid("likes")
    likes.key_by(lambda each: "all").process(Ranking()).uid("ranking").print().uid("changes")
    follows.process(Followers()).uid("followers").sink_to(DiscardSink()).uid("no-more-follows")
    events.key_by(lambda each: "log").process(Position()).uid("position").sink_to(DiscardSink()).uid("no-more-events")
    env.execute("read-side-v1")


if __name__ == "__main__":
    main(sys.argv[1])
