"""All programs of the Yahoo benchmark get the events of the example."""

from __future__ import annotations

from pathlib import Path

from benchmarks.yahoo import ads
from examples import yahoo_streaming


def test_the_events_are_those_of_the_example(tmp_path: Path) -> None:
    assert (ads.CAMPAIGNS, ads.ADS_PER_CAMPAIGN) == (yahoo_streaming.CAMPAIGNS, yahoo_streaming.ADS_PER_CAMPAIGN)
    expected = [yahoo_streaming.event(number, number // ads.PER_MS) for number in range(300)]
    ads.write_files(str(tmp_path / "events"), 300)
    lines = [line for file in (tmp_path / "events").iterdir() for line in file.read_bytes().splitlines()]
    assert sorted(lines) == sorted(expected)
    assert ads.campaign_views(300) == sum(b'"event_type":"view"' in line for line in lines)
