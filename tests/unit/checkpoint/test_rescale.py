"""State finds its new partition: any parallelism to any other, moved and renamed operators, event time."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.checkpoint.restore.rescale import OperatorShape, plan_restore, rename_uids
from headwater.common.errors import CheckpointError
from headwater.common.ids import MAX_WATERMARK, MIN_WATERMARK
from headwater.state.keys.key_groups import key_group
from tests.unit.checkpoint.old_job import LIST, OFFSETS, RULES, VALUE, OldJob, restored

MAX = 16

keys = st.one_of(st.integers(-50, 50), st.text(max_size=3))
epochs = st.lists(
    st.lists(st.tuples(keys, st.one_of(st.none(), st.integers())), max_size=15), min_size=1, max_size=4
)  # [[(key, new value or None to clear)] per epoch]


def apply(job: OldJob, changes: list[tuple[Any, Any]]) -> None:
    for number, (key, value) in enumerate(changes):
        backend = job.of_key("op", key)
        backend.get_state(VALUE).update(value)
        if value is None:
            backend.event_timers.delete(7, key)
            backend.get_state(LIST).clear()
        else:
            backend.event_timers.register(7, key)
            backend.processing_timers.register(value, key, ("window", number))
            backend.get_state(LIST).add(value)
    for index, state in enumerate(job.states["op"]):
        state.unkeyed.get_list_state(OFFSETS).add((job.epoch, index))
        state.unkeyed.get_broadcast_state(RULES).put(job.epoch, len(changes))


@settings(max_examples=60, deadline=None)
@given(history=epochs, old=st.integers(1, MAX), new=st.integers(1, MAX), full_at=st.integers(0, 4))
def test_any_parallelism_to_any_other(history: list[Any], old: int, new: int, full_at: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        job = OldJob(Path(directory), ["op"], old, MAX)
        for number, changes in enumerate(history):
            job.run_epoch(lambda job, changes=changes: apply(job, changes), full=number == full_at)
        plan = plan_restore(job.manifest, job.shape(new), directory)
        assert sorted(plan) == [(1, index) for index in range(new)]
        found = [restored(plan[1, index], "op", MAX, new) for index in range(new)]

        for read in ("values", "lists"):
            expected: dict[Any, Any] = {}
            for state in job.states["op"]:
                expected |= getattr(state, read)()
            together: dict[Any, Any] = {}
            for index, state in enumerate(found):
                part = getattr(state, read)()
                assert not part.keys() & together.keys(), "a key is in one partition only"
                assert all(key_group(key, MAX) * new // MAX == index for key in part)
                together |= part
            assert together == expected

        for queue in ("event_timers", "processing_timers"):
            before = [timer for state in job.states["op"] for timer in getattr(state.keyed, queue).timers()]
            after = [timer for state in found for timer in getattr(state.keyed, queue).timers()]
            assert len(before) == len(after) and set(before) == set(after)

        lists = [state.unkeyed.committed_list("offsets") for state in found]
        if old == new:
            assert lists == [state.unkeyed.committed_list("offsets") for state in job.states["op"]]
        else:
            joined = [each for state in job.states["op"] for each in state.unkeyed.committed_list("offsets")]
            assert lists == [joined[index::new] for index in range(new)]
        rules = job.states["op"][0].unkeyed.committed_broadcast("rules")
        assert all(state.unkeyed.committed_broadcast("rules") == rules for state in found)


@pytest.fixture
def job(tmp_path: Path) -> OldJob:
    """Two operators in two partitions with two epochs."""
    job = OldJob(tmp_path / "job", ["a", "b"], 2, MAX)

    def change(job: OldJob) -> None:
        for key in range(40):
            job.of_key("a", key).get_state(VALUE).update(("a", key, job.epoch))
            job.of_key("b", key).get_state(VALUE).update(("b", key, job.epoch))

    job.run_epoch(change)
    job.run_epoch(change)
    return job


def test_the_same_shape_reads_each_partitions_own_chain(job: OldJob) -> None:
    plan = plan_restore(job.manifest, job.shape(2), "dir")
    for index in range(2):
        restore, record = plan[1, index], job.manifest.partitions[index]
        (part,) = restore.parts
        assert (part.stage, part.partition, part.directory) == (1, index, "dir")
        assert part.snapshots == tuple(record.snapshots)
        assert part.lists == part.broadcast == {"a", "b"} and not part.dealt
        assert restore.watermarks == record.watermarks
        assert restore.next_processing_timer_ms == record.next_processing_timer_ms


def test_a_partition_reads_only_where_its_key_groups_are(job: OldJob) -> None:
    plan = plan_restore(job.manifest, job.shape(4), "dir")
    assert [part.keyed for part in plan[1, 0].parts] == [{"a": range(4), "b": range(4)}, {}]
    assert [part.keyed for part in plan[1, 3].parts] == [{}, {"a": range(12, 16), "b": range(12, 16)}]
    assert [part.broadcast for part in plan[1, 3].parts] == [frozenset(), {"a", "b"}]


def test_operators_are_found_in_whatever_stage_they_are_now(job: OldJob) -> None:
    shapes = [OperatorShape("b", 1, 3, True), OperatorShape("new", 1, 3, True), OperatorShape("a", 2, 2, True)]
    plan = plan_restore(job.manifest, shapes, str(job.layout.root))
    assert sorted(plan) == [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1)]
    for uid, stage, parallelism in (("b", 1, 3), ("a", 2, 2)):
        together: dict[Any, Any] = {}
        for index in range(parallelism):
            together |= restored(plan[stage, index], uid, MAX, parallelism).values()
        assert together == {key: (uid, key, 1) for key in range(40)}
    assert restored(plan[1, 0], "new", MAX, 3).values() == {}


def test_a_dropped_operators_state_is_not_read(job: OldJob) -> None:
    plan = plan_restore(job.manifest, [OperatorShape("a", 1, 2, True)], str(job.layout.root))
    assert plan[1, 0].parts[0].keyed.keys() == {"a"}
    assert restored(plan[1, 0], "b", MAX, 2).values() == {}


def test_a_renamed_operator_gets_its_state(job: OldJob) -> None:
    renamed = {"a": "count"}
    manifest = rename_uids(job.manifest, renamed)
    shapes = [OperatorShape("count", 1, 3, True), OperatorShape("b", 1, 3, True)]
    plan = plan_restore(manifest, shapes, str(job.layout.root), renamed)
    together: dict[Any, Any] = {}
    for index in range(3):
        together |= restored(plan[1, index], "count", MAX, 3).values()
    assert together == {key: ("a", key, 1) for key in range(40)}
    assert plan[1, 0].watermarks["head:count"] == 100


def test_operators_of_one_stage_may_have_different_parallelisms(job: OldJob) -> None:
    shapes = [OperatorShape("a", 1, 2, True), OperatorShape("b", 1, 5, True)]
    plan = plan_restore(job.manifest, shapes, str(job.layout.root))
    assert len(plan) == 5
    assert plan[1, 1].watermarks == {"head:a": 101, "out:a": 101, "head:b": 100, "out:b": 100}
    assert "head:a" not in plan[1, 4].watermarks


def test_event_time_of_a_new_partition_is_the_slowest_old_ones(job: OldJob) -> None:
    plan = plan_restore(job.manifest, [*job.shape(3), OperatorShape("fresh", 1, 3, False)], "dir")
    for index in range(3):
        assert plan[1, index].watermarks == {"head:a": 100, "out:a": 100, "head:b": 100, "out:b": 100}
        assert plan[1, index].next_processing_timer_ms == 49


@pytest.mark.parametrize(("finished", "expected"), [(True, MIN_WATERMARK), (False, MAX_WATERMARK)])
def test_event_time_begins_anew_only_after_a_finished_job(job: OldJob, finished: bool, expected: int) -> None:
    for record in job.manifest.partitions:
        record.watermarks["head:a"] = MAX_WATERMARK
    manifest = msgspec.structs.replace(job.manifest, finished=finished)
    assert plan_restore(manifest, job.shape(3), "dir")[1, 0].watermarks["head:a"] == expected


def test_state_without_a_word_about_its_operator_is_looked_for_everywhere(job: OldJob) -> None:
    def one_partition_has_rules(job: OldJob) -> None:
        job.states["a"][1].unkeyed.get_broadcast_state(RULES).put("limit", 5)

    job.run_epoch(one_partition_has_rules)
    for record in job.manifest.partitions:
        record.watermarks = {}
    plan = plan_restore(job.manifest, job.shape(3), str(job.layout.root))
    together: dict[Any, Any] = {}
    for index in range(3):
        state = restored(plan[1, index], "a", MAX, 3)
        together |= state.values()
        assert state.unkeyed.committed_broadcast("rules") == {"limit": 5}
    assert together == {key: ("a", key, 1) for key in range(40)}


def test_more_partitions_than_key_groups_are_refused(job: OldJob) -> None:
    with pytest.raises(CheckpointError, match="'a' is to have 17 partitions, but its state has 16 key groups"):
        plan_restore(job.manifest, job.shape(17), "dir")


def test_a_missing_snapshot_is_an_error_that_names_it(job: OldJob) -> None:
    plan = plan_restore(job.manifest, job.shape(3), str(job.layout.root))
    job.layout.snapshot(job.manifest.partitions[0].snapshots[1].name).unlink()
    with pytest.raises(CheckpointError, match=r"s1-p0-e000000000001-a1.delta of epoch 1 is missing"):
        restored(plan[1, 0], "a", MAX, 3)


def test_a_restore_travels_to_a_slot(job: OldJob) -> None:
    restore = plan_restore(job.manifest, job.shape(3), "dir")[1, 1]
    assert pickle.loads(pickle.dumps(restore)) == restore
