"""Objects of classes that have changed since they were stored."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.state.evolution.changed_classes import StoredRecord
from headwater.state.snapshot import payload
from headwater.state.snapshot.entries import ValueEntries
from headwater.state.snapshot.layout import StateLayout
from tests.unit.state.changing_module import ChangingModule, changing_module

LAYOUT = StateLayout("value", ttl=False, namespaced=False)
FORMS = ["", "(slots=True)", "(frozen=True)", "(frozen=True, slots=True)"]


@pytest.fixture
def module() -> Iterator[ChangingModule]:
    with changing_module() as found:
        yield found


def stored(value: Any) -> bytes:
    return payload.encode(LAYOUT, ValueEntries(["k"], [value]), "uid", "state")


def read(data: bytes) -> tuple[Any, tuple[payload.ClassChange, ...]]:
    _, entries, changes = payload.decode(data, "uid", "state")
    assert isinstance(entries, ValueEntries)
    return entries.values[0], changes


def evolve(module: ChangingModule, old: str, value: str, new: str) -> tuple[Any, tuple[payload.ClassChange, ...]]:
    module.define(old)
    data = stored(module.make(value))
    module.define(new)
    return read(data)


def obstacles(changes: tuple[payload.ClassChange, ...]) -> list[str]:
    return [obstacle for change in changes for obstacle in change.obstacles]


@pytest.mark.parametrize("before", FORMS)
@pytest.mark.parametrize("after", FORMS)
def test_dataclass_fields_are_matched_by_name(module: ChangingModule, before: str, after: str) -> None:
    value, changes = evolve(
        module,
        f"@dataclass{before}\nclass P:\n  amount: int\n  name: str\n  gone: str = 'x'",
        "P(7, 'ann')",
        f"@dataclass{after}\nclass P:\n  name: str\n  amount: float\n"
        "  tags: list = field(default_factory=list)\n  n: int = 3",
    )
    assert value == module.make("P('ann', 7.0, [], 3)")
    assert type(value) is module.make("P")
    assert type(value.amount) is float
    assert not hasattr(value, "gone")
    assert obstacles(changes) == []
    assert changes[0].differences == (
        "'amount' from int to float", "'tags' is new", "'n' is new", "'gone' is gone", "another order of fields",
    )  # fmt: skip
    assert pickle.loads(pickle.dumps(value)) == value


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("after", FORMS)
def test_another_way_of_storing_alone_is_a_change(module: ChangingModule, form: str, after: str) -> None:
    source = "@dataclass{}\nclass P:\n  a: int\n  b: str"
    value, _ = evolve(module, source.format(form), "P(1, 'x')", source.format(after))
    assert value == module.make("P(1, 'x')")


def test_named_tuple_fields_are_never_swapped(module: ChangingModule) -> None:
    value, _ = evolve(
        module,
        "class P(NamedTuple):\n  first: str\n  last: str\n  age: int",
        "P('Ann', 'Lee', 30)",
        "class P(NamedTuple):\n  last: str\n  first: str\n  age: float\n  city: str = 'Rome'",
    )
    assert value == module.make("P('Lee', 'Ann', 30.0, 'Rome')")
    assert type(value) is module.make("P")


def test_plain_namedtuple(module: ChangingModule) -> None:
    value, _ = evolve(module, "P = namedtuple('P', 'a b')", "P(1, 2)", "P = namedtuple('P', 'b a c', defaults=[9])")
    assert value == (2, 1, 9)


def test_every_default_factory_value_is_its_own(module: ChangingModule) -> None:
    module.define("@dataclass\nclass P:\n  a: int")
    data = payload.encode(LAYOUT, ValueEntries([1, 2], [module.make("P(1)"), module.make("P(2)")]), "u", "s")
    module.define("@dataclass\nclass P:\n  a: int\n  seen: list = field(default_factory=list)")
    entries = payload.decode(data, "u", "s").entries
    assert isinstance(entries, ValueEntries)
    first, second = entries.values
    assert first.seen == [] and first.seen is not second.seen


def test_inherited_nested_and_shared_objects(module: ChangingModule) -> None:
    base = (
        "@dataclass\nclass Base:\n  a: int\n{}\n"
        "@dataclass\nclass P(Base):\n  b: str = ''\n  @dataclass\n  class In:\n    x: int"
    )
    value, _ = evolve(
        module,
        base.format(""),
        "(lambda p: {'list': [p, P.In(1)], ('k', 1): (p, {'deep': [P(2, 'z')]})})(P(1, 'y'))",
        base.format("  k: int = 5"),
    )
    assert value["list"][0] is value[("k", 1)][0]
    assert value["list"] == [module.make("P(1, 5, 'y')"), module.make("P.In(1)")]
    assert value[("k", 1)][1] == {"deep": [module.make("P(2, 5, 'z')")]}


def test_a_cycle_stays_one(module: ChangingModule) -> None:
    module.define("@dataclass\nclass Node:\n  next: Any = None")
    node = module.make("Node()")
    node.next = [node]
    data = stored(node)
    module.define("@dataclass\nclass Node:\n  next: Any = None\n  weight: int = 1")
    value, _ = read(data)
    assert value.next[0] is value and value.weight == 1


def test_generic_classes_and_attributes_beside_the_fields(module: ChangingModule) -> None:
    generic = "T = TypeVar('T')\n@dataclass\nclass Box(Generic[T]):\n  item: T\n{}"
    module.define(generic.format(""))
    box = module.make("Box[int](4)")
    box.note = "kept"
    data = stored(box)
    module.define(generic.format("  size: int = 1"))
    value, _ = read(data)
    assert (value.item, value.size, value.note) == (4, 1, "kept")


def test_a_class_without_fields_gets_its_first_one(module: ChangingModule) -> None:
    value, _ = evolve(module, "@dataclass\nclass P:\n  pass", "P()", "@dataclass\nclass P:\n  a: int = 1")
    assert value == module.make("P(1)") and type(value) is module.make("P")


def test_subclass_hooks_of_the_user_hear_nothing(module: ChangingModule) -> None:
    hooked = """
heard = []
class Meta(type):
  def __new__(meta, name, bases, namespace):
    heard.append(name)
    return super().__new__(meta, name, bases, namespace)
@dataclass
class P(metaclass=Meta):
  a: int
  b: int = 0
  def __init_subclass__(cls):
    heard.append('subclass')
"""
    value, _ = evolve(module, "@dataclass\nclass P:\n  a: int", "P(1)", hooked)
    assert value == module.make("P(1)")
    assert module.make("heard") == ["P"]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        ("@dataclass\nclass P:\n  a: str\n  b: str", "field 'a' of changing.P was 'int' and is 'str'."),
        ("@dataclass\nclass P:\n  a: int\n  b: str\n  c: int", "field 'c' of changing.P is new and has no default."),
        ("class P(NamedTuple):\n  a: int\n  b: str", "class changing.P was a dataclass and is a NamedTuple."),
        ("class Q: pass", "class changing.P is gone."),
        (
            "@dataclass\nclass P(ABC):\n  a: int\n  b: str\n  c: int = 0\n  @abstractmethod\n  def f(self): ...",
            "class changing.P is abstract now.",
        ),
    ],
    ids=["type", "no default", "kind", "gone", "abstract"],
)
def test_what_has_no_safe_way_is_read_as_a_record(module: ChangingModule, new: str, expected: str) -> None:
    old = "@dataclass\nclass P:\n  a: int\n  b: str"
    value, changes = evolve(module, old, "[P(1, 'x')]", new)
    (record,) = value
    assert isinstance(record, StoredRecord)
    assert (record.a, record.b, record.as_dict()) == (1, "x", {"a": 1, "b": "x"})
    assert obstacles(changes) == [expected]

    again, changes = read(stored(value))  # stored once more, by a program that did not ask for it
    assert again == value and obstacles(changes) == [expected]
    module.define(old)
    assert read(stored(value))[0] == [module.make("P(1, 'x')")]


def test_a_plain_class_that_is_gone_is_a_record_too(module: ChangingModule) -> None:
    value, changes = evolve(module, "class P:\n  def __init__(self): self.a = 5", "P()", "")
    assert isinstance(value, StoredRecord) and value.a == 5
    assert obstacles(changes) == ["class changing.P is gone."]


def test_a_class_that_pickles_in_its_own_way_knows_best(module: ChangingModule) -> None:
    own = "@dataclass\nclass P:\n  a: int\n  def __setstate__(self, state): self.a = state['a'] + 100"
    value, changes = evolve(module, "@dataclass\nclass P:\n  a: int\n  b: int", "P(1, 2)", own)
    assert value.a == 101 and changes == ()


def test_nothing_is_different_when_nothing_changed(module: ChangingModule) -> None:
    source = "@dataclass\nclass P:\n  a: int\nclass E(Enum):\n  A = 1\nclass N(NamedTuple):\n  x: int"
    value, changes = evolve(module, source, "[P(1), E.A, N(2)]", source)
    assert value == module.make("[P(1), E.A, N(2)]") and changes == ()


names = st.sampled_from(["a", "b", "c", "d", "e"])


@given(
    old=st.lists(names, unique=True, min_size=1), new=st.lists(names, unique=True, min_size=1), form=st.integers(0, 4)
)
def test_any_fields_to_any_other_fields(old: list[str], new: list[str], form: int) -> None:
    head = "class P(NamedTuple):\n" if form == 4 else f"@dataclass{FORMS[form]}\nclass P:\n"
    with changing_module() as module:
        value, changes = evolve(
            module,
            head + "".join(f"  {name}: str\n" for name in old),
            f"P(*{old!r})",
            head + "".join(f"  {name}: str = 'new'\n" for name in new),
        )
    assert obstacles(changes) == []
    assert {name: getattr(value, name) for name in new} == {name: name if name in old else "new" for name in new}
