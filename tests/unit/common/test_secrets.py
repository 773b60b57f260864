"""References to secrets: resolved where they are used, hidden where they are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.common.errors import ConfigurationError
from headwater.common.secrets import resolve, resolved, shown, without_passwords


def test_an_environment_variable_and_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DB_USER", "ann")
    (tmp_path / "password").write_text("hush\nhush\n")
    assert resolve("${env:DB_USER}:${file:" + str(tmp_path / "password") + "}", "url") == "ann:hush\nhush"
    assert resolved({"a": "plain ${x}", "b": "${env:DB_USER}"}, "sink 'x'") == {"a": "plain ${x}", "b": "ann"}


@pytest.mark.parametrize("text", ["${env:NO_SUCH_VARIABLE}", "${file:/no/such/file}"])
def test_what_is_not_there_is_named_with_its_setting(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"sink 'x': sasl.password: \$\{.*\}"):
        resolved({"sasl.password": text}, "sink 'x'")


def test_a_file_that_is_no_text_does_not_appear_in_the_error(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xffSECRET")
    with pytest.raises(ConfigurationError) as caught:
        resolve("${file:" + str(tmp_path / "key") + "}", "key")
    assert "SECRET" not in str(caught.value) and "UTF-8" in str(caught.value)


def test_secrets_are_not_shown_but_references_are() -> None:
    settings = {"sasl.password": "hush", "ssl.key.password": "${env:P}", "url": "pg://ann:hush@host/db", "acks": "all"}
    assert shown(settings) == {
        "sasl.password": "******",
        "ssl.key.password": "${env:P}",
        "url": "pg://ann:******@host/db",
        "acks": "all",
    }


def test_texts_of_other_libraries_lose_their_secrets() -> None:
    text = "cannot connect to amqp://ann:hush@host: password hush2 refused"
    assert without_passwords(text, "hush2", "") == "cannot connect to amqp://ann:******@host: password ****** refused"
