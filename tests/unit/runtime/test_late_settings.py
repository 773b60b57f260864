"""What is said of settings that come when Spark already runs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from headwater.runtime.spark import late_settings
from headwater.runtime.spark.late_settings import started_with, warn_of_late_settings


class RunningSpark:
    """As much of a SparkContext as is looked at."""

    master = "local[2]"

    def __init__(self, **confs: str) -> None:
        self._conf = {key.replace("_", "."): value for key, value in confs.items()}


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(late_settings, "_started_with", {})
    late_settings.forget_warnings()
    yield
    late_settings.forget_warnings()


def said(asked: dict[str, tuple[str, str]], context: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_late_settings(asked, context)
    return [str(warning.message) for warning in caught]


def test_what_differs_is_named_with_both_values_once() -> None:
    asked = {
        "spark.master": ("headwater.master", "local[4]"),
        "spark.ui.port": ("spark.ui.port", "1234"),
        "spark.ui.enabled": ("spark.ui.enabled", "true"),
    }
    context = RunningSpark(spark_ui_enabled="false")
    texts = said(asked, context)
    assert len(texts) == 3
    assert "'headwater.master' has no effect: 'local[4]' was asked for" in texts[0]
    assert "Spark already runs in this process and has 'local[2]'" in texts[0]
    assert "'spark.ui.port'" in texts[1] and "does not have it" in texts[1]
    assert "'spark.ui.enabled'" in texts[2] and "has 'false'" in texts[2]
    assert all("process of its own" in text for text in texts)
    assert said(asked, context) == []
    assert len(said({"spark.master": ("headwater.master", "local[8]")}, context)) == 1


@pytest.mark.parametrize(
    "key", ["spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.azure.account.key.x", "spark.my.Token"]
)
def test_secrets_are_not_shown(key: str) -> None:
    context = RunningSpark()
    context._conf = {key: "hush"}
    (text,) = said({key: (key, "quiet")}, context)
    assert key in text and "hush" not in text and "quiet" not in text


def test_what_runs_as_asked_needs_no_word() -> None:
    context = RunningSpark(spark_driver_memory="2g", spark_ui_enabled="True", spark_jars="file:///a.jar")
    asked = {
        "spark.master": ("headwater.master", "local[2]"),
        "spark.driver.memory": ("headwater.driver-memory", "2048m"),
        "spark.ui.enabled": ("spark.ui.enabled", "true"),
    }
    assert said(asked, context) == []
    jars = {"spark.jars": ("spark.jars", "/a.jar")}
    started_with({"spark.jars": "/a.jar"})  # Spark spells it in its own way
    assert said(jars, context) == []
    started_with({})
    assert len(said(jars, context)) == 1
