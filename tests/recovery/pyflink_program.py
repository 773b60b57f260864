"""A program as PyFlink's users write it: orders from Kafka, summed up by customer, to Kafka and into a database.

`pyflink_program.py SERVERS JDBC-URL`. Nothing in it is headwater's.
"""

import json
import sys

from pyflink.common import Row, SimpleStringSchema, Types, WatermarkStrategy
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import DeliveryGuarantee
from pyflink.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from pyflink.datastream.state import ValueStateDescriptor

TOTALS = Types.ROW_NAMED(
    ["customer", "orders", "cents", "note"], [Types.STRING(), Types.LONG(), Types.LONG(), Types.STRING()]
)


class Total(KeyedProcessFunction):
    """Counts a customer's orders and sums them up."""

    def open(self, runtime_context: RuntimeContext):
        self.orders = runtime_context.get_state(ValueStateDescriptor("orders", Types.LONG()))
        self.cents = runtime_context.get_state(ValueStateDescriptor("cents", Types.LONG()))

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        orders = (self.orders.value() or 0) + 1
        self.orders.update(orders)
        cents = (self.cents.value() or 0) + value["cents"]  # fails if it is a text, when `orders` has been counted
        self.cents.update(cents)
        yield Row(ctx.get_current_key(), orders, cents, value["note"])


def main(servers: str, url: str):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics("orders")
        .set_group_id("totals")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(
            KafkaRecordSerializationSchema.builder()
            .set_topic("totals")
            .set_value_serialization_schema(SimpleStringSchema())
            .build()
        )
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix("totals")
        .build()
    )
    table = JdbcSink.sink(
        "INSERT INTO totals (customer, orders, cents, note) VALUES (?, ?, ?, ?)",
        TOTALS,
        JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
        .with_url(url)
        .with_driver_name("org.postgresql.Driver")
        .with_user_name("postgres")
        .with_password("")
        .build(),
        JdbcExecutionOptions.builder().with_batch_interval_ms(200).with_batch_size(1000).with_max_retries(5).build(),
    )
    orders = env.from_source(source, WatermarkStrategy.no_watermarks(), "orders").map(json.loads)
    totals = orders.key_by(lambda order: order["customer"], key_type=Types.STRING()).process(Total(), TOTALS)
    totals.map(lambda total: f"{total[0]} {total[1]} {total[2]}", Types.STRING()).sink_to(sink)
    totals.add_sink(table)
    env.execute("totals")


if __name__ == "__main__":
    main(*sys.argv[1:])
