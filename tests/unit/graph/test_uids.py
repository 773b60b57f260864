"""Generated uids: which edits keep them, and which do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headwater.common.errors import PlanError
from headwater.datastream import DataStream, StreamExecutionEnvironment


def uids(build: Callable[[DataStream], object]) -> dict[str, str]:
    """{operator name: uid} of the job that `build` makes from a source."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    build(env.from_collection([1]))
    plan = env._plan("job")[0]
    found = {source.name: source.uid for source in plan.sources}
    for stage in plan.stages:
        for operator in stage.operators:
            assert operator.name not in found or operator.name.startswith("Print")
            found[operator.name] = operator.uid
    return found


def job(source: DataStream) -> None:
    source.map(abs).name("clean").key_by(abs).reduce(max).name("count").print()


def test_the_same_program_gets_the_same_uids():
    assert uids(job) == uids(job)


def test_all_differ():
    assert len(set(uids(job).values())) == 4


@pytest.mark.parametrize(
    "edited",
    [
        lambda s: [job(s), s.filter(bool).name("another branch").print()],
        lambda s: [s.filter(bool).name("another branch").print(), job(s)],
        lambda s: s.map(str).name("clean").key_by(abs).reduce(min).name("count").print(),
        lambda s: s.map(abs).name("clean").set_parallelism(5).key_by(abs).reduce(max).name("count").print(),
        lambda s: s.map(abs).name("clean").disable_chaining().key_by(abs).reduce(max).name("count").print(),
    ],
    ids=["branch after", "branch before", "other functions", "parallelism", "chaining"],
)
def test_unrelated_edits_keep_uids(edited):
    before, after = uids(job), uids(edited)
    assert after["clean"] == before["clean"]
    assert after["count"] == before["count"]


def test_an_operator_put_in_upstream_changes_those_behind_it():
    after = uids(lambda s: s.filter(bool).map(abs).name("clean").key_by(abs).reduce(max).name("count").print())
    assert after["count"] != uids(job)["count"]


def test_a_uid_of_its_own_shields_those_behind_it():
    before = uids(lambda s: s.map(abs).name("clean").uid("c").key_by(abs).reduce(max).name("count").print())
    after = uids(lambda s: s.filter(bool).map(abs).name("x").uid("c").key_by(abs).reduce(max).name("count").print())
    assert before["clean"] == after["x"] == "c"
    assert before["count"] == after["count"]


def test_twins_are_told_apart():
    env = StreamExecutionEnvironment.get_execution_environment()
    source = env.from_collection([1])
    source.map(abs).print()
    source.map(abs).print()
    plan = env._plan("job")[0]
    all_uids = [op.uid for stage in plan.stages for op in stage.operators]
    assert len(set(all_uids)) == len(all_uids) == 4


def test_uid_hash_wins():
    digits = "0123456789abcdef" * 2
    assert uids(lambda s: s.map(abs).name("m").uid("mine").set_uid_hash(digits).print())["m"] == digits


def test_one_uid_for_two_operators_is_refused():
    with pytest.raises(PlanError, match=r"uid 'u' is used twice: by operator 'a' \(map\) and by .*'b' \(filter\)"):
        uids(lambda s: s.map(abs).name("a").uid("u").filter(bool).name("b").uid("u").print())
