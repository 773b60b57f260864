"""What holds for the plan of any job: random graphs, the invariants that the runtime relies on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.common import Types
from headwater.datastream import CheckpointedFunction, DataStream, MapFunction, OutputTag, StreamExecutionEnvironment
from headwater.graph.plan import Exchange, JobPlan

STEPS = {
    "map": lambda s, other: s.map(abs),
    "typed": lambda s, other: s.map(abs, Types.LONG()),
    "slower": lambda s, other: s.map(abs).set_parallelism(1),
    "wider": lambda s, other: s.map(abs).set_parallelism(3),
    "apart": lambda s, other: s.map(abs).disable_chaining(),
    "state": lambda s, other: s.map(Remembering()),
    "keyed": lambda s, other: s.key_by(abs).reduce(max),
    "keyed plain": lambda s, other: s.key_by(abs).map(abs),
    "rebalance": lambda s, other: s.rebalance().filter(abs),
    "broadcast": lambda s, other: s.broadcast().filter(abs),
    "side": lambda s, other: s.process(lambda v, ctx: [v]).get_side_output(OutputTag("t", Types.LONG())).map(abs),
    "union": lambda s, other: s.union(other).map(abs),
}


class Remembering(MapFunction, CheckpointedFunction):
    def map(self, value):
        return value

    def initialize_state(self, context):
        pass


@st.composite
def plans(draw: st.DrawFn) -> JobPlan:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    streams: list[DataStream] = [env.from_collection([1]), env.from_sequence(1, 2)]
    for _ in range(draw(st.integers(1, 12))):
        step = draw(st.sampled_from(sorted(STEPS)))
        stream, other = draw(st.sampled_from(streams)), draw(st.sampled_from(streams))
        streams.append(STEPS[step](stream, other))
    for stream in draw(st.lists(st.sampled_from(streams), min_size=1, max_size=3)):
        stream.print()
    return env._plan("job")[0]


@given(plans())
def test_invariants(plan: JobPlan) -> None:
    assert [stage.index for stage in plan.stages] == list(range(len(plan.stages)))
    parallelism = {source.id: source.parallelism for source in plan.sources}
    stage_of = {source.id: 0 for source in plan.sources}
    stage_of |= {operator.id: stage.index for stage in plan.stages for operator in stage.operators}
    seen_uids = [source.uid for source in plan.sources]
    for stage in plan.stages:
        assert stage.index == 0 or stage.operators
        for operator in stage.operators:
            assert operator.stage == stage.index
            assert operator.parallelism <= stage.parallelism
            assert not (operator.needs_slot and stage.index == 0)
            for item in operator.inputs:
                assert item.upstream in parallelism, "an operator comes after what it reads"
                upstream_stage = stage_of[item.upstream]
                equal = parallelism[item.upstream] == operator.parallelism
                if item.chained:
                    assert upstream_stage == stage.index and equal and item.exchange is Exchange.FORWARD
                else:
                    assert upstream_stage < stage.index
                if item.exchange is Exchange.FORWARD:
                    assert equal
                assert (item.key_selector is not None) == (item.exchange is Exchange.HASH)
            parallelism[operator.id] = operator.parallelism
            seen_uids.append(operator.uid)
    assert len(set(seen_uids)) == len(seen_uids)
    assert len(parallelism) == len(seen_uids)
