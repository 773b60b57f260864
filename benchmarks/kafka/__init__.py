"""From Kafka to Kafka: a keyed count with one output per record."""
