"""Ask a running job for the current value of a key, for many keys, and with SQL: state as a database.

The job adds up the points of players. Nobody writes the totals anywhere: they are read where they are.
"""

import time

from headwater.common import WatermarkStrategy
from headwater.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.data_generator import DataGeneratorSource
from headwater.datastream.state import ValueStateDescriptor
from headwater.queryable_state import QueryableStateClient, QueryError

PLAYERS = ["ada", "alan", "barbara", "grace"]
GAMES = 1_000


def game(index):
    """The first thousand games count; then the job waits for more."""
    return (PLAYERS[index % 4], index % 10) if index < GAMES else None


class Totals(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        descriptor = ValueStateDescriptor("total")
        descriptor.set_queryable("totals")
        self.total = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        self.total.update((self.total.value() or 0) + value[1])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    source = DataGeneratorSource(game, rate_per_second=5_000)
    games = env.from_source(source, WatermarkStrategy.no_watermarks(), "games").filter(lambda each: each is not None)
    totals = games.key_by(lambda each: each[0]).process(Totals()).name("totals").uid("totals")
    games.key_by(lambda each: each[0]).as_queryable_state("last game").uid("last-game")
    totals.print()  # nothing: the function emits nothing
    job = env.execute_async("players")

    # In another program: QueryableStateClient("localhost", 8081, token) asks the job's server where a key lives.
    with QueryableStateClient.of(job) as client:
        job_id = job.get_job_id()
        while True:  # until all games are in a checkpoint
            try:
                if client.sql(job_id, "select sum(value) from totals.total").rows == [(4_500,)]:
                    break
            except QueryError:
                pass  # there is no state yet
            time.sleep(0.1)

        print("ada has", client.get(job_id, "totals", "total", "ada").value)
        print("by its queryable name:", client.get_kv_state(job_id, "totals", "ada").result())
        print("the last game of ada:", client.get_kv_state(job_id, "last game", "ada").result())
        for found in client.get_many(job_id, "totals", "total", ["grace", "linus"]):
            print(found.key, "has", found.value if found.found else "never played")
        print("with a:", [row.key for row in client.scan(job_id, "totals", "total", prefix="a").rows])
        for row in client.sql(job_id, "select key, value from totals.total order by value desc, key limit 2").rows:
            print(row)
        try:
            client.get(job_id, "totals", "totl", "ada")
        except QueryError as error:
            print(error.problem.code, error)
    job.cancel().result()


if __name__ == "__main__":
    main()
