"""Equal keys have one hash, one key group, the same bytes and one state, whatever their classes; others have not."""

from __future__ import annotations

import datetime
import itertools
import pickle
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.common.errors import InvalidKeyError, StateError, StateMigrationError
from headwater.common.types import Row, RowKind
from headwater.state.backends import make_keyed_backend
from headwater.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from headwater.state.keys.key_classes import KNOWN
from headwater.state.keys.key_groups import key_group, key_group_range
from headwater.state.keys.stable_hash import stable_hash
from headwater.state.rocksdb.keys import encode_key
from headwater.state.rocksdb.options import RocksDBOptions
from tests.unit.state.key_samples import ONE_KEY_EACH, PARIS, REFUSED, Account, Point, comparable, taken_for_one

KEYS = [key for group in ONE_KEY_EACH for key in group]
MAX_PARALLELISM = 16
BACKENDS = ("heap", "rocksdb", "rocksdb, timers too")


def id_of(key: Any) -> str:
    return f"{type(key).__name__}"


# -- hashes and bytes --------------------------------------------------------------------------------------------------


def test_the_samples_are_what_a_dict_makes_of_them() -> None:
    for left, right in itertools.combinations(KEYS, 2):
        if comparable(left, right):
            assert taken_for_one(left, right) == (group_of(left) == group_of(right)), (left, right)


@pytest.mark.parametrize("group", ONE_KEY_EACH, ids=lambda group: id_of(group[0]))
def test_equal_keys_have_one_hash_and_the_same_bytes(group: list[Any]) -> None:
    assert len({stable_hash(key) for key in group}) == 1
    assert len({encode_key(key)[0] for key in group}) == 1


def test_different_keys_have_different_bytes_of_which_none_begins_another() -> None:
    encoded = sorted({encode_key(key)[0] for key in KEYS})
    assert len(encoded) == len(ONE_KEY_EACH)
    assert not any(after.startswith(before) for before, after in itertools.pairwise(encoded))


@pytest.mark.parametrize("key", KEYS, ids=id_of)
def test_a_copy_that_was_pickled_is_the_same_key(key: Any) -> None:
    copy = pickle.loads(pickle.dumps(key))
    assert stable_hash(copy) == stable_hash(key) and encode_key(copy)[0] == encode_key(key)[0]


@pytest.mark.parametrize("key", REFUSED, ids=id_of)
def test_other_keys_are_refused_with_class_and_cure(key: Any) -> None:
    with pytest.raises(InvalidKeyError, match=r"key by|use |make it"):
        stable_hash(key)


PYTHONS_OWN = st.one_of(
    st.integers(), st.integers(-4, 4), st.floats(allow_nan=False), st.booleans(), st.complex_numbers(allow_nan=False),
    st.integers(-4, 4).map(float), st.sampled_from([2**53, 2**53 + 1, float(2**53), 2**63, float(2**63)]),
)  # fmt: skip
EXACT = st.one_of(
    st.fractions(), st.integers(-4, 4).map(Decimal), st.sampled_from([Decimal(2**63), Fraction(1, 2), Decimal("0.5")]),
    st.decimals(allow_nan=False).filter(lambda number: not number.is_finite() or abs(number.adjusted()) < 400),
)  # fmt: skip
OF_NUMPY = st.one_of(
    st.integers(0, 2**64 - 1).map(numpy.uint64), st.booleans().map(numpy.bool_), st.integers(-4, 4).map(numpy.int8),
    st.floats(width=32, allow_nan=False).map(numpy.float32), st.floats(width=16, allow_nan=False).map(numpy.float16),
    st.sampled_from([numpy.float64(2**63), numpy.float32(0.5), numpy.complex64(1j)]),
)  # fmt: skip
ZONES = st.sampled_from([None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=1)), PARIS])
MOMENTS = st.datetimes(datetime.datetime(2026, 10, 24, 23), datetime.datetime(2026, 10, 25, 4), timezones=ZONES).map(
    lambda moment: moment.replace(minute=0, second=0, microsecond=0)
)
OTHERS = st.one_of(
    st.text(max_size=2), st.text(max_size=2).map(numpy.str_), st.binary(max_size=2), st.none(), MOMENTS,
    st.builds(range, st.integers(-2, 2), st.integers(-2, 2), st.sampled_from([-2, -1, 1, 2])),
)  # fmt: skip


def pairs_of(numbers: Any) -> Any:
    nested = st.recursive(
        st.one_of(numbers, OTHERS),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(tuple),
            st.frozensets(st.one_of(numbers, OTHERS), max_size=3),
            st.builds(Point, inner, inner),
            st.builds(Account, inner, inner),
            st.builds(Row.of_kind, st.sampled_from(RowKind), inner),
            st.builds(lambda one, two: Row(x=one, y=two), inner, inner),
            st.builds(lambda one, two: Row(y=two, x=one), inner, inner),
        ),
        max_leaves=4,
    )
    return st.one_of(st.tuples(numbers, numbers), st.tuples(nested, nested))


@given(st.one_of(pairs_of(PYTHONS_OWN | EXACT), pairs_of(PYTHONS_OWN | OF_NUMPY), st.tuples(MOMENTS, MOMENTS)))
def test_a_dict_hashes_and_bytes_agree_on_what_is_one_key(pair: tuple[Any, Any]) -> None:
    left, right = pair
    one = taken_for_one(left, right)
    assert (encode_key(left)[0] == encode_key(right)[0]) == one
    if one:
        assert stable_hash(left) == stable_hash(right)


def test_both_tables_know_the_same_classes() -> None:
    from headwater.state.keys import stable_hash
    from headwater.state.rocksdb import keys as rocksdb_keys

    assert set(stable_hash._HASHERS) == set(rocksdb_keys._ENCODERS) >= KNOWN


# -- state -------------------------------------------------------------------------------------------------------------

VALUE = ValueStateDescriptor("value")
LIST = ListStateDescriptor("list")
MAP = MapStateDescriptor("map")
WINDOWED = ValueStateDescriptor("windowed")


@pytest.fixture(params=BACKENDS)
def make(request: pytest.FixtureRequest) -> Iterator[Any]:
    made: list[Any] = []

    def make_one(groups: range) -> Any:
        options = RocksDBOptions(8 << 20, None, timers_in_memory=2 if "timers" in request.param else None)
        kind = request.param.split(",")[0]
        made.append(make_keyed_backend(kind, "uid", MAX_PARALLELISM, groups, None if kind == "heap" else options))
        return made[-1]

    yield make_one
    for backend in made:
        getattr(backend, "close", lambda: None)()


def write(backend: Any, keys: list[Any]) -> None:
    """Use each key in every way that there is: of a state, of a map, of a window, of a timer."""
    backend.begin_epoch()
    for key in keys:
        backend.current_key = key
        value = backend.get_state(VALUE)
        value.update((value.value() or 0) + 1)
        backend.get_state(LIST).add(1)
        backend.event_timers.register(10, key)
        backend.current_key = "all"
        counts = backend.get_state(MAP)
        counts.put(key, (counts.get(key) or 0) + 1)
        backend.current_namespace = key
        windowed = backend.get_namespaced_state(WINDOWED)
        windowed.update((windowed.value() or 0) + 1)
        backend.event_timers.register(20, "all", key)


def cut(backend: Any) -> list[Any]:
    sections = list(backend.delta_sections())
    backend.commit_epoch(cut=True)
    backend.checkpoint_completed()
    return sections


def read(backend: Any, keys: list[Any], times: int) -> None:
    """Every key, in whatever form it is asked for, was used by all its forms `times` times."""
    sizes = Counter(group_of(key) for key in keys)
    has_all = key_group("all", MAX_PARALLELISM) in backend.key_groups
    mine = [key for key in keys if key_group(key, MAX_PARALLELISM) in backend.key_groups]
    for key in mine:
        backend.current_key = key
        used = sizes[group_of(key)] * times
        assert backend.get_state(VALUE).value() == used, key
        assert list(backend.get_state(LIST).get()) == [1] * used, key
    backend.current_key = "all"
    for key in keys if has_all else ():
        backend.current_namespace = key
        used = sizes[group_of(key)] * times
        assert backend.get_state(MAP).get(key) == used, key
        assert backend.get_namespaced_state(WINDOWED).value() == used, key
    if has_all:
        assert len(list(backend.get_state(MAP).keys())) == len(sizes)
    assert len(list(backend.event_timers.pop_due(10))) == len({group_of(key) for key in mine})
    assert len(list(backend.event_timers.pop_due(20))) == (len(sizes) if has_all else 0)


def group_of(key: Any) -> int:
    return next(index for index, group in enumerate(ONE_KEY_EACH) if any(key is member for member in group))


@pytest.mark.parametrize("without", [numpy.generic, (Decimal, Fraction)], ids=["python", "numpy"])
def test_equal_keys_have_one_state_after_restore_and_rescale_too(make: Any, without: Any) -> None:
    keys = [key for key in KEYS if not holds(key, without)]
    first = make(range(MAX_PARALLELISM))
    write(first, keys)
    sections = cut(first)
    write(first, keys[::-1])
    sections += cut(first)
    for stored in (sections, list(first.full_sections())):
        for partition, parallelism in ((0, 1), (0, 3), (1, 3), (2, 3)):
            groups = key_group_range(partition, MAX_PARALLELISM, parallelism)
            restored = make(groups)
            for section in stored:
                if section.key_group in groups:
                    restored.load_section(section)
            restored.begin_epoch()
            read(restored, keys, times=2)
    first.begin_epoch()
    read(first, keys, times=2)


def holds(key: Any, cls: Any) -> bool:
    inside = list(key) if isinstance(key, (tuple, frozenset, Row)) else []
    return isinstance(key, cls) or any(holds(part, cls) for part in inside)


def test_a_map_key_that_cannot_be_one_is_told_at_the_put(make: Any) -> None:
    backend = make(range(MAX_PARALLELISM))
    backend.begin_epoch()
    backend.current_key = "k"
    for key in REFUSED:
        with pytest.raises((StateError, TypeError), match=r"of a map state: the key|unhashable|Cannot hash"):
            backend.get_state(MAP).put(key, 1)
    assert backend.get_state(MAP).is_empty()


def test_keys_whose_hash_has_changed_since_they_were_stored_are_not_lost_in_silence(make: Any) -> None:
    backend = make(range(MAX_PARALLELISM))
    write(backend, [range(3)])
    stored = [section for section in cut(backend) if section.name == "value"]
    home = key_group(range(3), MAX_PARALLELISM)
    assert [section.key_group for section in stored] == [home]
    with pytest.raises(StateMigrationError, match=rf"range\(0, 3\) was stored in key group {home ^ 1}"):
        make(range(MAX_PARALLELISM)).load_section(replace(stored[0], key_group=home ^ 1))
