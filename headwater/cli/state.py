"""`headwater state ls|get|scan|watch|sql|series JOB ...`: what is in the state of a running job."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from headwater.cli import remote_jobs, state_series
from headwater.cli.running_jobs import add_job_arguments, find_job, run_directory
from headwater.cli.table import print_table, shown
from headwater.cli.usage import FAILURE, Parser
from headwater.common.errors import HeadwaterError
from headwater.queryable_state.control_locator import ControlLocator
from headwater.queryable_state.http_locator import HttpLocator
from headwater.queryable_state.reader import ISOLATIONS, StateReader, StateValue
from headwater.queryable_state.sql import run_sql
from headwater.state.query.json_form import key_from_text, to_json

WATCH_SECONDS = 0.5
_SCAN_LIMIT = 1000
_DESCRIPTION = (
    "Read the keyed state of a running job. Values are those of the last completed checkpoint, with its epoch; with "
    '--isolation live the newest. An operator is its uid or its name. A key is JSON (42, "42", [1, "a"]) or a word.'
)


def state(arguments: Sequence[str]) -> int:
    parser = Parser(prog="headwater state", description=_DESCRIPTION)
    verbs = parser.add_subparsers(dest="verb", metavar="ls|get|scan|watch|sql|series", required=True)
    _verb(
        verbs,
        "ls",
        "the operators with keyed state, their states, types, keys, and estimated sizes",
        _ls,
    )
    get = _verb(verbs, "get", "the values of keys", _get, of_state=True)
    get.add_argument("keys", metavar="KEY", nargs="+")
    scan = _verb(verbs, "scan", "entries in the order of their keys", _scan, of_state=True)
    _add_range(scan)
    scan.add_argument("--limit", type=int, default=100, help="entries to print (default 100)")
    scan.add_argument("--page", metavar="PAGE", help="go on behind the entries of an earlier call")
    watch = _verb(
        verbs,
        "watch",
        "print changes, twice a second, until Ctrl-C",
        _watch,
        of_state=True,
    )
    watch.add_argument("keys", metavar="KEY", nargs="*", help="these keys only; otherwise those of the range")
    _add_range(watch)
    watch.add_argument("--epochs", type=int, help="end after so many epochs with changes")
    sql = _verb(verbs, "sql", "a query over one checkpoint of all slots; needs headwater[duckdb]", _sql)
    sql.add_argument("query", metavar="QUERY", help='such as: select key, value from "my-operator".total')
    windows = "the windows of a key in a range of time: closed ones from the archive, open ones from state"
    state_series.add_arguments(_verb(verbs, "series", windows, state_series.series))
    given = parser.parse_args(list(arguments))
    reader = _reader(given)
    try:
        return int(given.run(reader, given))
    finally:
        reader.close()


def _verb(
    verbs: Any, name: str, text: str, run: Callable[[StateReader, argparse.Namespace], int], of_state: bool = False
) -> Parser:
    parser: Parser = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}. {_DESCRIPTION}")
    add_job_arguments(parser)
    if of_state:
        parser.add_argument("operator", metavar="OPERATOR")
        parser.add_argument("state", metavar="STATE")
        parser.add_argument("--isolation", choices=ISOLATIONS, default=ISOLATIONS[0])
    parser.add_argument("--json", action="store_true", help="for tools")
    remote_jobs.add_server(parser)
    parser.set_defaults(run=run)
    return parser


def _add_range(parser: Parser) -> None:
    parser.add_argument("--prefix", help="keys that are text and begin with this")
    parser.add_argument("--from", dest="start", metavar="KEY", help="the first key")
    parser.add_argument("--to", dest="stop", metavar="KEY", help="the key behind the last")


def _reader(given: argparse.Namespace) -> StateReader:
    if given.jobmanager is None:
        directory = run_directory(given.state_dir)
        return StateReader(ControlLocator(directory, find_job(directory, given.job)))
    client = remote_jobs.client_of(given.jobmanager, "headwater state")
    job_id = remote_jobs.find(client, given.job)
    base = urlsplit(client.base)
    assert base.hostname is not None and base.port is not None
    return StateReader(HttpLocator(base.hostname, base.port, client.token, job_id, tls=base.scheme == "https"))


def _ls(reader: StateReader, given: argparse.Namespace) -> int:
    operators = reader.describe()
    if given.json:
        print(json.dumps(operators, indent=2))
        return 0
    rows = [
        [
            operator["uid"],
            operator["name"],
            state["name"],
            state["kind"] + (" with TTL" if state["ttl"] else ""),
            state["type"] or "-",
            state["queryable_name"] or "-",
            "-" if state["entries"] is None else str(state["entries"]),
            "-" if state["estimated_bytes"] is None else f"~{state['estimated_bytes']}",
        ]
        for operator in operators
        for state in operator["states"]
    ]
    print_table(("OPERATOR", "NAME", "STATE", "KIND", "TYPE", "QUERYABLE", "KEYS", "BYTES"), rows, ("KEYS", "BYTES"))
    return 0


def _get(reader: StateReader, given: argparse.Namespace) -> int:
    keys = [key_from_text(key) for key in given.keys]
    found = reader.get(given.operator, given.state, keys, given.isolation)
    missing = [each for each in found if not each.found]
    _print([each for each in found if each.found], given.json)
    for each in missing:
        if not given.json:
            print(f"{_text(to_json(each.key))} has no value ({_epoch(each)})")
    return FAILURE if missing else 0


def _scan(reader: StateReader, given: argparse.Namespace) -> int:
    page = reader.scan(
        given.operator, given.state, limit=given.limit, page=given.page, isolation=given.isolation, **_range(given)
    )
    _print(page.rows, given.json)
    if page.next_page is not None:
        print(
            f"there are more: --page {page.next_page}" if not given.json else json.dumps({"next-page": page.next_page})
        )
    return 0


def _watch(reader: StateReader, given: argparse.Namespace) -> int:
    keys = [key_from_text(key) for key in given.keys]
    before: dict[str, Any] | None = None
    epochs, epoch = 0, None
    while given.epochs is None or epochs < given.epochs:
        found = _watched(reader, given, keys)
        now = {_text(to_json(each.key)): each for each in found}
        changed = [
            each for key, each in now.items() if before is None or key not in before or before[key] != each.value
        ]
        gone = [] if before is None else [key for key in before if key not in now]
        since, epoch = epoch, max((each.epoch for each in found if each.epoch is not None), default=epoch)
        if changed or gone:
            epochs += 1
            if not given.json:
                print(_heading(epoch, since if before is not None else None), flush=True)
            _print(changed, given.json, {"since": since})
            for key in gone:
                told = {"key": key, "gone": True, "epoch": epoch, "since": since}
                print(json.dumps(told) if given.json else f"{key} is gone", flush=True)
        before = {key: each.value for key, each in now.items()}
        if given.epochs is None or epochs < given.epochs:
            time.sleep(WATCH_SECONDS)
    return 0


def _heading(epoch: int | None, since: int | None) -> str:
    if epoch is None:
        return "--- live"
    return f"--- epoch {epoch}" + (f", changes since epoch {since}" if since is not None else "")


def _watched(reader: StateReader, given: argparse.Namespace, keys: list[Any]) -> list[StateValue]:
    if keys:
        return [each for each in reader.get(given.operator, given.state, keys, given.isolation) if each.found]
    page = reader.scan(given.operator, given.state, limit=_SCAN_LIMIT, isolation=given.isolation, **_range(given))
    if page.next_page is not None:
        raise HeadwaterError(f"the range has more than {_SCAN_LIMIT} keys; watch some keys, a prefix or a range")
    return page.rows


def _sql(reader: StateReader, given: argparse.Namespace) -> int:
    found = run_sql(reader, given.query)
    if given.json:
        rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
        print(json.dumps({"epoch": found.epoch, "rows": rows}, default=str))
        return 0
    print_table(found.columns, [[str(cell) for cell in row] for row in found.rows])
    print(f"({len(found.rows)} rows, as of epoch {found.epoch})")
    return 0


def _range(given: argparse.Namespace) -> dict[str, Any]:
    bounds = {"start": given.start, "stop": given.stop}
    found: dict[str, Any] = {name: key_from_text(text) for name, text in bounds.items() if text is not None}
    return found | ({"prefix": given.prefix} if given.prefix is not None else {})


def _print(rows: Sequence[StateValue], as_json: bool, more: Mapping[str, Any] | None = None) -> None:
    for row in rows:
        if as_json:
            told = {"key": to_json(row.key), "value": row.value, "epoch": row.epoch, **(more or {})}
            print(json.dumps(told), flush=True)
        else:
            print(f"{_text(to_json(row.key))}  {_text(row.value)}  ({_epoch(row)})", flush=True)


def _epoch(row: StateValue) -> str:
    return "live" if row.epoch is None else f"epoch {row.epoch}"


def _text(value: Any) -> str:
    return shown(value if isinstance(value, str) else json.dumps(value))
