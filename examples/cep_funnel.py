"""A user's funnel with time-outs: product, basket, payment within an hour; and where those are lost who do not pay.

    python examples/cep_funnel.py

Partial matches that run out of time are a result of their own: they say how far each user came.
"""

from headwater.cep import CEP, AfterMatchSkipStrategy, Pattern, PatternProcessFunction
from headwater.common import Duration, WatermarkStrategy
from headwater.datastream import OutputTag, StreamExecutionEnvironment

CLICKS = [  # (user, minute, page)
    ("ann", 0, "product"),
    ("bob", 2, "product"),
    ("ann", 3, "help"),  # any page may come in between
    ("ann", 5, "basket"),
    ("cem", 6, "product"),
    ("bob", 9, "basket"),
    ("ann", 12, "payment"),
    ("cem", 30, "help"),
    ("bob", 65, "payment"),  # too late: more than an hour after the product
    ("dora", 70, "basket"),  # never saw a product
]
LOST = OutputTag("lost")
FUNNEL = ("product", "basket", "payment")


class Funnel(PatternProcessFunction):
    def process_match(self, match, ctx):
        first, last = match["product"][0], match["payment"][0]
        yield f"{first[0]} paid {last[1] - first[1]} minutes after the product"

    def process_timed_out_match(self, match, ctx):
        first = match["product"][0]
        ctx.output(LOST, f"{first[0]} was lost after the {FUNNEL[len(match) - 1]}, minute {ctx.timestamp() // 60_000}")


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    pattern = Pattern.begin("product", AfterMatchSkipStrategy.skip_past_last_event()).where(
        lambda click: click[2] == "product"
    )
    for page in FUNNEL[1:]:
        pattern = pattern.followed_by(page).where(lambda click, page=page: click[2] == page)
    pattern = pattern.within(Duration.of_hours(1))

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda click, _: click[1] * 60_000)
    clicks = env.from_collection(CLICKS).assign_timestamps_and_watermarks(strategy)
    users = CEP.pattern(clicks.key_by(lambda click: click[0]), pattern).process(Funnel())
    users.union(users.get_side_output(LOST)).print()
    env.execute("funnel")


if __name__ == "__main__":
    main()
