"""The write side of a small social network: decides about commands, and appends events to the log.

    cd network && headwater run -c write-job ../examples/social_network/write_side.py commands log refused

A command is a line of JSON, such as {"at": 17, "user": "ann", "do": "like", "post": "p1"}. What it changes belongs to
one post or one user, so that is the key. A command that makes no sense is refused, with the reason. What is accepted
has happened: an event, in a log that is never changed.
"""

import json
import sys

from headwater.common import Duration, Encoder, WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, OutputTag, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.file_system import FileSink, FileSource, RollingPolicy, StreamFormat
from headwater.datastream.state import ValueStateDescriptor

REFUSED = OutputTag("refused")
HAPPENED = {"post": "Posted", "like": "Liked", "unlike": "Unliked", "follow": "Followed", "unfollow": "Unfollowed"}


def subject(command):
    """What a command is about."""
    if command.get("do") in ("follow", "unfollow"):
        return f"user {command.get('whom')}"
    return f"post {command.get('post')}"


class Decide(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.author = runtime_context.get_state(ValueStateDescriptor("author"))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        reason = self.objection(value)
        if reason:
            yield REFUSED, json.dumps(value | {"refused": reason})
            return
        if value["do"] == "post":
            self.author.update(value["user"])
        fields = {name: value[name] for name in ("at", "user", "post", "whom") if name in value}
        yield json.dumps({"event": HAPPENED[value["do"]], **fields})

    def objection(self, command):
        if command.get("do") not in HAPPENED:
            return "there is no such command"
        if command["do"] in ("follow", "unfollow"):
            return "nobody follows themselves" if command["user"] == command["whom"] else None
        if command["do"] == "post":
            return "this post exists" if self.author.value() else None
        return None if self.author.value() else "there is no such post"


def main(commands, log, refused):
    env = StreamExecutionEnvironment.get_execution_environment()
    source = (
        FileSource.for_record_stream_format(StreamFormat.json_lines_format(), commands)
        .monitor_continuously(Duration.of_millis(500))
        .build()
    )
    decided = (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "commands").uid("commands")
        .key_by(subject).process(Decide()).uid("decide")
    )  # fmt: skip
    decided.sink_to(
        FileSink.for_row_format(log, Encoder.simple_string_encoder())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .build()
    ).uid("log")
    refusals = (
        FileSink.for_row_format(refused, Encoder.simple_string_encoder())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .build()
    )
    decided.get_side_output(REFUSED).sink_to(refusals).uid("refused")
    env.execute("write-side")


if __name__ == "__main__":
    main(*sys.argv[1:])
