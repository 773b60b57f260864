"""Nexmark's events by numpy, with the distributions of nexmark/nexmark's own generator.

Of 50 events one is a person, 3 are auctions, 46 bids. Half of the bids go to a hot auction, three quarters of bidders
and sellers are hot ones. A part is a function of its events' numbers and the seed: it can be made by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

PERSONS, AUCTIONS, BIDS = 1, 3, 46
TOTAL = PERSONS + AUCTIONS + BIDS
FIRST_PERSON = FIRST_AUCTION = 1_000
FIRST_CATEGORY, CATEGORIES = 10, 5
ACTIVE_PEOPLE, IN_FLIGHT_AUCTIONS = 1_000, 100
LEAD = 10
"""So many ids beyond the last one are referred to already."""
HOT_AUCTION_RATIO, HOT_BIDDER_RATIO, HOT_SELLER_RATIO, HOT_CHANNEL_RATIO = 2, 4, 4, 2
HOT_EVERY = 100
"""One of so many ids is hot at a time."""
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne",
)  # fmt: skip
FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000

Numbers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Nexmark:
    """Which events are made. Times go up by the rate, from `start_ms` on."""

    events_per_second: int = 10_000
    start_ms: int = 1_704_067_200_000
    seed: int = 1

    def times_us(self, events: Numbers) -> Numbers:
        return self.start_ms * 1_000 + events * 1_000_000 // self.events_per_second // 1_000 * 1_000

    def tables(self, first: int, last: int) -> dict[str, pa.Table]:
        """Events `first` to `last` (without it): the tables `person`, `auction` and `bid`."""
        events = np.arange(first, last, dtype=np.int64)
        offset = events % TOTAL
        rng = np.random.default_rng((self.seed, first))
        return {
            "person": self._person(events[offset < PERSONS], rng),
            "auction": self._auction(events[(offset >= PERSONS) & (offset < PERSONS + AUCTIONS)], rng),
            "bid": self._bid(events[offset >= PERSONS + AUCTIONS], rng),
        }

    def _person(self, events: Numbers, rng: np.random.Generator) -> pa.Table:
        count = len(events)
        first, last = (_chosen(names, count, rng) for names in (FIRST_NAMES, LAST_NAMES))
        cards = rng.integers(0, 10_000, (count, 4))
        return pa.table(
            {
                "id": last_person(events) + FIRST_PERSON,
                "name": [f"{a} {b}" for a, b in zip(first, last, strict=True)],
                "emailAddress": [
                    f"{a}@{b}.com" for a, b in zip(_text(count, 7, rng), _text(count, 5, rng), strict=True)
                ],
                "creditCard": [" ".join(f"{part:04}" for part in card) for card in cards.tolist()],
                "city": _chosen(CITIES, count, rng),
                "state": _chosen(STATES, count, rng),
                "dateTime": self._timestamps(events),
                "extra": _text(count, 40, rng),
            }
        )

    def _auction(self, events: Numbers, rng: np.random.Generator) -> pa.Table:
        count = len(events)
        hot = rng.integers(0, HOT_SELLER_RATIO, count) > 0
        seller = np.where(hot, last_person(events) // HOT_EVERY * HOT_EVERY, next_person(events, rng))
        first_bid = _prices(count, rng)
        times = self.times_us(events)
        # As long as it takes on average until there are as many new auctions as may be open.
        horizon = self.times_us(events + IN_FLIGHT_AUCTIONS * TOTAL // AUCTIONS) - times
        expires = times + 1_000 + rng.integers(0, np.maximum(horizon * 2 // 1_000, 1)) * 1_000
        return pa.table(
            {
                "id": last_auction(events) + FIRST_AUCTION,
                "itemName": _text(count, 20, rng),
                "description": _text(count, 100, rng),
                "initialBid": first_bid,
                "reserve": first_bid + _prices(count, rng),
                "dateTime": self._timestamps(events),
                "expires": pa.array(expires, pa.timestamp("us")),
                "seller": seller + FIRST_PERSON,
                "category": FIRST_CATEGORY + rng.integers(0, CATEGORIES, count),
                "extra": _text(count, 100, rng),
            }
        )

    def _bid(self, events: Numbers, rng: np.random.Generator) -> pa.Table:
        count = len(events)
        hot = rng.integers(0, HOT_AUCTION_RATIO, count) > 0
        auction = np.where(hot, last_auction(events) // HOT_EVERY * HOT_EVERY, next_auction(events, rng))
        hot = rng.integers(0, HOT_BIDDER_RATIO, count) > 0
        bidder = np.where(hot, last_person(events) // HOT_EVERY * HOT_EVERY + 1, next_person(events, rng))
        hot = rng.integers(0, HOT_CHANNEL_RATIO, count) > 0
        number = np.where(hot, rng.integers(0, len(HOT_CHANNELS), count), rng.integers(0, CHANNELS, count)).tolist()
        path = _text(count, 5, rng)
        channel, url = [], []
        for is_hot, at, word in zip(hot.tolist(), number, path, strict=True):
            channel.append(HOT_CHANNELS[at] if is_hot else f"channel-{at}")
            query = f"&channel_id={at * 7919}" if is_hot or at % 10 else ""
            url.append(f"https://www.nexmark.com/{word}/{word}/{word}/item.htm?query=1{query}")
        return pa.table(
            {
                "auction": auction + FIRST_AUCTION,
                "bidder": bidder + FIRST_PERSON,
                "price": _prices(count, rng),
                "channel": channel,
                "url": url,
                "dateTime": self._timestamps(events),
                "extra": _text(count, 30, rng),
            }
        )

    def _timestamps(self, events: Numbers) -> pa.Array:
        return pa.array(self.times_us(events), pa.timestamp("us"))


def last_person(events: Numbers) -> Numbers:
    """The number of the last person up to an event."""
    return events // TOTAL * PERSONS + np.minimum(events % TOTAL, PERSONS - 1)


def last_auction(events: Numbers) -> Numbers:
    """The number of the last auction up to an event; before the first one, that of none yet: 0 or less."""
    group, offset = events // TOTAL, events % TOTAL
    before = offset < PERSONS
    within = np.where(before, AUCTIONS - 1, np.minimum(offset - PERSONS, AUCTIONS - 1))
    return (group - before) * AUCTIONS + within


def next_person(events: Numbers, rng: np.random.Generator) -> Numbers:
    """One of the people who are active at an event."""
    people = last_person(events) + 1
    active = np.minimum(people, ACTIVE_PEOPLE)
    return people - active + rng.integers(0, active + LEAD)


def next_auction(events: Numbers, rng: np.random.Generator) -> Numbers:
    """One of the auctions that are open at an event."""
    last = last_auction(events)
    first = np.maximum(last - IN_FLIGHT_AUCTIONS, 0)
    return first + rng.integers(0, last - first + 1 + LEAD)


def _prices(count: int, rng: np.random.Generator) -> Numbers:
    return np.round(np.power(10.0, rng.random(count) * 6) * 100).astype(np.int64)


def _chosen(words: tuple[str, ...], count: int, rng: np.random.Generator) -> list[str]:
    return [words[place] for place in rng.integers(0, len(words), count).tolist()]


def _text(count: int, length: int, rng: np.random.Generator) -> list[str]:
    letters = rng.integers(ord("a"), ord("z") + 1, count * length, dtype=np.uint8).tobytes().decode()
    return [letters[place : place + length] for place in range(0, count * length, length)]
