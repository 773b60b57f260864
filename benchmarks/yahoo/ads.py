"""The events as files: the same for all. Only the standard library, for the peers' environments."""

from __future__ import annotations

import os

CAMPAIGNS, ADS_PER_CAMPAIGN = 100, 10
TYPES = ("view", "click", "purchase")
PER_MS = 10
"""Events per millisecond of event time."""


def mixed(number: int) -> int:
    return (number * 2654435761 & 0xFFFFFFFF) >> 7


def event(number: int, time_ms: int) -> bytes:
    """Event `number`: that of examples/yahoo_streaming.py, which a test compares."""
    bits = mixed(number)
    ad = bits % (CAMPAIGNS * ADS_PER_CAMPAIGN)
    return (
        f'{{"user_id":"user-{bits % 1009}","page_id":"page-{bits % 97}","ad_id":"ad-{ad}","ad_type":"banner",'
        f'"event_type":"{TYPES[bits % 3]}","event_time":{time_ms},"ip_address":"1.2.3.4"}}'
    ).encode()


def campaigns() -> dict[str, str]:
    return {f"ad-{n}": f"campaign-{n // ADS_PER_CAMPAIGN}" for n in range(CAMPAIGNS * ADS_PER_CAMPAIGN)}


def campaign_views(records: int) -> int:
    """How many of the events are views."""
    return sum(mixed(number) % 3 == 0 for number in range(records))


def write_files(directory: str, records: int, files: int = 2) -> None:
    """Lines of JSON in two files, in the order of event time, to be read side by side."""
    os.makedirs(directory)
    for part in range(files):
        with open(os.path.join(directory, f"events-{part}.jsonl"), "wb") as file:
            file.writelines(event(number, number // PER_MS) + b"\n" for number in range(part, records, files))
