from __future__ import annotations

import copy
import pickle

import pytest

from headwater.common.config_options import EPOCH_DURATION, ConfigOptions
from headwater.common.configuration import Configuration
from headwater.common.errors import ConfigurationError


def filled() -> Configuration:
    configuration = Configuration()
    configuration.set_string("k1", "v1").set_integer("k2", 1).set_float("k3", 1.2).set_boolean("k4", True)
    return configuration


def test_values_are_read_as_what_they_are() -> None:
    configuration = filled()
    assert configuration.get_string("k1", "") == "v1"
    assert configuration.get_integer("k2", 0) == 1
    assert configuration.get_float("k3", 0) == 1.2
    assert configuration.get_boolean("k4", False) is True
    assert configuration.set_bytearray("k5", bytearray(b"\x01")).get_bytearray("k5", bytearray()) == b"\x01"


def test_text_is_converted_when_read() -> None:
    configuration = Configuration.from_dict({"n": "5", "x": "1.5", "b": "false"})
    assert configuration.get_integer("n", 0) == 5
    assert configuration.get_float("x", 0) == 1.5
    assert configuration.get_boolean("b", True) is False
    assert Configuration().set_integer("n", 5).get_string("n", "") == "5"


def test_defaults_and_bad_values() -> None:
    configuration = Configuration().set_string("n", "many")
    assert configuration.get_integer("m", 3) == 3
    assert configuration.get_string("m", "x") == "x"
    with pytest.raises(ConfigurationError, match="n: expected a whole number, found 'many'"):
        configuration.get_integer("n", 0)
    with pytest.raises(ConfigurationError, match="k: expected a whole number"):
        configuration.set_integer("k", "1.5")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="remove_config"):
        configuration.set_string("k", None)  # type: ignore[arg-type]


def test_as_dicts() -> None:
    target: dict[str, object] = {}
    filled().add_all_to_dict(target)
    assert target == {"k1": "v1", "k2": 1, "k3": 1.2, "k4": True}
    assert filled().to_dict() == {"k1": "v1", "k2": "1", "k3": "1.2", "k4": "true"}


def test_adding_and_removing() -> None:
    configuration = Configuration().add_all(filled()).add_all(Configuration.from_dict({"a": "b"}), "pre.")
    assert configuration.key_set() == {"k1", "k2", "k3", "k4", "pre.a"}
    assert configuration.remove_config("k1") is True
    assert configuration.remove_config("k1") is False
    assert not configuration.contains_key("k1")


def test_a_copy_is_independent() -> None:
    original = filled()
    for other in (Configuration(original), copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        assert other == original
        assert hash(other) == hash(original)
        other.set_string("k1", "changed")
        assert original.get_string("k1", "") == "v1"


def test_lists_of_text() -> None:
    assert Configuration.parse_list_value("a;b") == ["a", "b"]
    assert Configuration.parse_list_value("[a, 'b']") == ["a", "b"]
    assert Configuration.parse_list_value("") == []


def test_typed_options() -> None:
    configuration = Configuration()
    assert configuration.get(EPOCH_DURATION) == 1_000
    assert configuration.set_string(EPOCH_DURATION.key, "2 s").get(EPOCH_DURATION) == 2_000
    option = ConfigOptions.key("my.limit").int_type().default_value(3)
    assert configuration.get(option) == 3
    assert configuration.set(option, 4).get(option) == 4
    assert configuration.get(ConfigOptions.key("none").string_type().no_default_value()) is None


def test_a_default_that_was_filled_in_is_not_what_somebody_set() -> None:
    configuration = Configuration()
    assert not configuration.is_set(EPOCH_DURATION)
    configuration.set_default(EPOCH_DURATION, 1_000)
    assert configuration.get(EPOCH_DURATION) == 1_000
    assert not configuration.is_set(EPOCH_DURATION)
    assert not Configuration(configuration).is_set(EPOCH_DURATION)
    configuration.set(EPOCH_DURATION, 1_000)
    assert configuration.is_set(EPOCH_DURATION)
