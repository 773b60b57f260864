"""`headwater state series JOB SERIES KEY`: the windows of a key, closed and open, as one table."""

from __future__ import annotations

import argparse
import json

from headwater.cli.table import print_table, utc
from headwater.cli.usage import Parser
from headwater.datastream.connectors.archive.store import BEGINNING_MS, END_MS
from headwater.queryable_state.reader import StateReader
from headwater.queryable_state.series import read_series, time_ms
from headwater.state.query.json_form import key_from_text


def add_arguments(parser: Parser) -> None:
    parser.add_argument("series", metavar="SERIES", help="the name that as_queryable_series() gave it")
    parser.add_argument("key", metavar="KEY")
    parser.add_argument("--from", dest="start", metavar="TIME", help="windows that end after it: ms, or ISO 8601")
    parser.add_argument("--to", dest="stop", metavar="TIME", help="windows that begin before it")


def series(reader: StateReader, given: argparse.Namespace) -> int:
    from_ms = BEGINNING_MS if given.start is None else time_ms(given.start, "--from")
    to_ms = END_MS if given.stop is None else time_ms(given.stop, "--to")
    found = read_series(reader, given.series, key_from_text(given.key), from_ms, to_ms)
    if given.json:
        print(json.dumps(found.to_json()))
        return 0
    rows = [
        [utc(window.start_ms), utc(window.end_ms), json.dumps(window.value), "closed" if window.closed else "open"]
        for window in found.windows
    ]
    print_table(("FROM (UTC)", "TO (UTC)", "VALUE", "STATUS"), rows, ("VALUE",))
    print(f"({len(rows)} windows, as of epoch {found.epoch})")
    return 0
