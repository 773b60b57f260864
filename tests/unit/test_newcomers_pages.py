"""What the pages on connectors, formats, dead letters and watermarks show works: every block runs and does its work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from headwater.common.connector import WriterContext
from headwater.datastream import DataStream
from headwater.datastream.connectors.hybrid_source import SwitchContext
from headwater.testing import in_process

ROOT = Path(__file__).resolve().parents[2]


def run_page(name: str) -> dict[str, Any]:
    """The names that the Python blocks of a page leave, run from top to bottom."""
    page = ROOT / "docs" / name
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "a_page"}
    for match in re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S):
        line = text.count("\n", 0, match.start(1))
        exec(compile("\n" * line + match.group(1), str(page), "exec"), names)
    return names


def test_the_page_on_connectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_page("connectors/README.md")
    plan, _ = names["env"]._plan("connectors")
    assert len(plan.sources) == 2


def test_the_page_on_writing_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_page("connectors/writing-your-own.md")
    plan, _ = names["env"]._plan("connectors")
    assert len(plan.sources) == 1
    names["check_countdown"]()
    numbers = iter(range(1000))
    names["check_one_file_per_epoch"](lambda: str(tmp_path / f"out-{next(numbers)}"))

    source = names["Countdown"]()
    [split] = source.discover_splits(1, frozenset())
    reader = source.open_reader(split, None)
    assert reader.read_batch(4) == [10, 9, 8, 7]
    again = source.open_reader(split, reader.position())
    assert again.read_batch(100) == [6, 5, 4, 3, 2, 1] and again.read_batch(1) is None

    sink = names["OneFilePerEpoch"](str(tmp_path / "out"))
    writer = sink.create_writer(WriterContext("job", "sink", 0, 1, "a", 3))
    writer.write_batch([1, 2], None)
    prepared = writer.prepare_commit()
    assert [path.name[0] for path in (tmp_path / "out").iterdir()] == ["."]
    for _ in range(2):
        sink.create_committer().commit(prepared)
    (visible,) = (tmp_path / "out").iterdir()
    assert visible.name.startswith("3-0-") and visible.read_text() == "1\n2\n"


def test_the_page_on_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders/a.jsonl").write_text('{"id": 1, "country": "se"}\n{"id": 2, "country": "no"}\n')
    with in_process():
        names = run_page("connectors/files.md")
        names["env"].execute()
    assert [path.name for path in sorted((tmp_path / "out/lines").iterdir())] == ["country=no", "country=se"]
    assert len(list((tmp_path / "out/parquet").iterdir())) == 1
    assert not names["from_s3"].bounded


@pytest.mark.parametrize("page", ["delta", "iceberg"])
def test_the_pages_on_lakes(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/connectors" / f"{page}.md").read_text()
    assert f"headwater[{page}]" in text
    with in_process():
        names = run_page(f"connectors/{page}.md")
        names["orders"].print()
        names["env"].execute()
        names["env"].from_source(names["following"], names["WatermarkStrategy"].no_watermarks(), "f")
        everything = type(names["everything"]).for_table
        found = (
            everything("lake/orders") if page == "delta" else everything("lake", "shop.orders", **names["catalogue"])
        )
        env = type(names["env"]).get_execution_environment()
        stream = env.from_source(found.build(), names["WatermarkStrategy"].no_watermarks(), "rows")
        assert sorted(row["id"] for row in stream.execute_and_collect()) == [1, 2]


def test_the_page_on_hybrid_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_page("connectors/hybrid.md")
    assert not names["source"].bounded
    made = names["live"](SwitchContext(names["history"], 1_000))
    assert repr(made) == "KafkaSource(orders at localhost:9092)" and not made.bounded


def test_the_page_on_kafka() -> None:
    names = run_page("connectors/kafka.md")
    plan, _ = names["env"]._plan("kafka")
    assert repr(names["source"]) == "KafkaSource(clicks at localhost:9092)"
    assert [each.sink for stage in plan.stages for each in stage.operators if each.sink is not None] == [names["sink"]]


@pytest.mark.parametrize(
    ("page", "made"),
    [
        ("redis", {"counts": "RedisSink(redis://localhost:6379/0, EXACTLY_ONCE)"}),
        ("nats", {"orders": "NatsSource(ORDERS at nats://localhost:4222)"}),
        ("rabbitmq", {"orders": "RMQSource(orders at localhost:5672)", "totals": "RMQSink(totals at localhost:5672)"}),
        ("mqtt", {"broker": "MqttConnection(localhost:1883, username=job, password=******)"}),
        ("http", {"events": "SseSource(https://example.org/events)"}),
    ],
)
def test_the_pages_on_brokers(page: str, made: dict[str, str]) -> None:
    names = run_page(f"connectors/{page}.md")
    assert {name: repr(names[name]) for name in made} == made


def test_the_page_on_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.jsonl").write_text('{"id": 1, "customer": "ann", "price": 5.25}\n')
    with in_process():
        names = run_page("formats.md")
        names["env"].execute()
        for source in ("rows", "avro_files", "batches"):
            stream = names["env"].from_source(names[source], names["WatermarkStrategy"].no_watermarks(), source)
            assert len(list(stream.execute_and_collect())) == 1


def test_the_page_on_dead_letters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.jsonl").write_text('{"cents": 1}\nno json\n{"cents": "many"}\n')
    (tmp_path / "letters").mkdir()
    with in_process():
        names = run_page("dead-letters.md")
        names["env"].execute()
        assert capsys.readouterr().out.endswith("1\n")
        again = run_page("dead-letters.md")
        again["env"].execute()
        assert "{'cents': 'many'}" in capsys.readouterr().out


def test_the_page_on_watermarks() -> None:
    names = run_page("watermarks.md")
    for stream in [value for value in names.values() if type(value) is DataStream]:
        stream.print()
    plan, _ = names["env"]._plan("watermarks")
    assert plan.stages

    class Output:
        emitted: list[int] = []  # noqa: RUF012

        def emit_watermark(self, watermark: int) -> None:
            self.emitted.append(watermark)

    punctuated, periodic, output = names["UpToEveryLogout"](), names["TenSecondsBehind"](), Output()
    for event in (("click", 20_000), ("logout", 30_000)):
        punctuated.on_event(event, event[1], output)
        periodic.on_event(event, event[1], output)
    periodic.on_periodic_emit(output)
    assert output.emitted == [30_000, 20_000]


def test_the_pages_on_databases() -> None:
    names = run_page("connectors/jdbc.md")
    plan, _ = names["env"]._plan("databases")
    assert len(plan.sources) == 1  # the other one has no sink
    assert "EXACTLY_ONCE" in repr(names["sink"]) and "SHOP_PASSWORD" not in repr(names["sink"])
    names = run_page("connectors/postgres-cdc.md")
    assert names["orders"].settings.tables == ("public.orders",)
    names = run_page("connectors/mysql-cdc.md")
    assert names["orders"].settings.tables == ("shop.orders",)


def test_the_pages_on_kinesis_elasticsearch_and_cassandra() -> None:
    kinesis = run_page("connectors/kinesis.md")
    assert repr(kinesis["same"]).startswith("FlinkKinesisConsumer(orders, ") and not kinesis["orders"].bounded
    assert repr(run_page("connectors/elasticsearch.md")["users"]) == (
        "ElasticsearchSink(https://es-1:9200, https://es-2:9200)"
    )
    plan, _ = run_page("connectors/cassandra.md")["env"]._plan("cassandra")
    assert "counts" in [each.name for stage in plan.stages for each in stage.operators]
