"""Writes events to Kafka by the clock: `feeder.py servers rate seconds`. Prints how far behind it fell, in ms."""

from __future__ import annotations

import sys
import time

from confluent_kafka import Producer

from examples.yahoo_streaming import event

STEP_MS = 5


def main() -> None:
    servers, rate, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 1})
    start = time.time()
    sent, worst = 0, 0.0
    while (now := time.time()) < start + seconds:
        due = int((now - start) * rate)
        worst = max(worst, (now - start) * 1000 - sent * 1000 / rate)
        for number in range(sent, due):
            producer.produce("ad-events", event(number, int(start * 1000 + number * 1000 / rate)), partition=number % 2)
        sent = due
        producer.poll(0)
        time.sleep(max(0.0, STEP_MS / 1000 - (time.time() - now)))
    print(round(worst, 1))


if __name__ == "__main__":
    main()
