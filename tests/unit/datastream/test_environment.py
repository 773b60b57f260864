"""The environment: settings, sources, and what reaches the executor."""

from __future__ import annotations

import json
import pickle
from datetime import timedelta

import pandas
import pytest

from headwater.common import Configuration, Duration, Row, Types, WatermarkStrategy
from headwater.common.config_options import EPOCH_DURATION
from headwater.common.errors import ConfigurationError, PlanError, TypeMismatchError
from headwater.datastream import (
    CheckpointingMode,
    RuntimeExecutionMode,
    SourceFunction,
    StreamExecutionEnvironment,
)
from headwater.datastream.connectors.collection import CollectionSource
from headwater.datastream.connectors.file_source import FileSource
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.datastream.dataframe_source import DataFrameSource
from headwater.datastream.executor import get_executor, set_executor
from headwater.datastream.function_source import FunctionSource
from headwater.datastream.no_effect import NoEffectWarning, forget_warnings

from .recording_executor import RecordingExecutor


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


@pytest.fixture
def executor():
    recording = RecordingExecutor()
    set_executor(recording)
    yield recording
    set_executor(None)


def source_of(env: StreamExecutionEnvironment):
    (source,) = env._plan("job")[0].sources
    return source


class Numbers(SourceFunction):
    def run(self):
        yield from (1, 2, 3)


class FakeDataFrame:
    def __init__(self, streaming: bool) -> None:
        self.isStreaming = streaming

    def __reduce__(self):
        raise TypeError("a DataFrame stays in the driver")


@pytest.mark.parametrize(
    ("build", "source", "parallelism"),
    [
        (lambda env: env.from_collection([1]), CollectionSource, 1),
        (lambda env: env.from_collection(range(3)), CollectionSource, 1),
        (lambda env: env.from_sequence(1, 3), NumberSequenceSource, 4),
        (lambda env: env.add_source(NumberSequenceSource(1, 3)), NumberSequenceSource, 4),
        (lambda env: env.add_source(Numbers()), FunctionSource, 1),
        (lambda env: env.add_source(lambda: iter([1])), FunctionSource, 1),
        (lambda env: env.read_text_file(__file__), FileSource, 4),
        (lambda env: env.from_dataframe(FakeDataFrame(True)), DataFrameSource, 4),
    ],
)
def test_sources(env, build, source, parallelism):
    env.set_parallelism(4)
    build(env).print()
    found = source_of(env)
    assert isinstance(found.source, source)
    assert found.parallelism == parallelism


@pytest.mark.parametrize("streaming", [True, False])
def test_a_streaming_dataframe_is_unbounded(env, streaming):
    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    env.from_dataframe(FakeDataFrame(streaming)).print()
    plan = env._plan("job")[0]
    assert plan.batch_mode is not streaming
    assert pickle.loads(pickle.dumps(plan.sources[0].source)).bounded is not streaming


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda env: env.from_collection(5), "from_collection() expects a collection, found 5"),
        (lambda env: env.from_collection([1], int), "a type must be a TypeInformation"),
        (lambda env: env.from_collection([1, "x"], Types.LONG()), "from_collection(): item 1: "),
        (lambda env: env.from_source([1], WatermarkStrategy.no_watermarks(), "s"), "from_source() expects a Source"),
        (lambda env: env.from_source(NumberSequenceSource(1, 2), None, "s").map(3), "map() expects"),
        (lambda env: env.from_source(NumberSequenceSource(1, 2), "none", "s"), "expects a WatermarkStrategy"),
        (lambda env: env.add_source([1, 2]), "add_source() expects a SourceFunction"),
        (lambda env: env.add_source(Numbers), "did you forget to call it?"),
        (lambda env: env.from_source(NumberSequenceSource(1, 2), None, None), "source_name, a string"),
        (lambda env: env.from_dataframe([1]), "from_dataframe() expects a Spark DataFrame, found list"),
        (lambda env: env.from_dataframe(pandas.DataFrame()), "found pandas' DataFrame; make a Spark DataFrame"),
        (lambda env: env.configure("a"), "configure() expects a Configuration, found 'a'"),
        (lambda env: env.get_execution_environment({"a": 1}), "expects a Configuration, found {'a': 1}; make one with"),
        (lambda env: env.set_parallelism(0), "set_parallelism() expects a whole number of at least 1"),
        (lambda env: env.set_runtime_mode("BATCH"), "expects a RuntimeExecutionMode"),
    ],
)
def test_wrong_arguments(env, call, words):
    with pytest.raises(TypeMismatchError) as caught:
        call(env)
    assert words in str(caught.value)


def test_a_builder_that_was_not_built(env, tmp_path):
    from headwater.datastream.connectors.file_formats import StreamFormat

    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path))
    with pytest.raises(TypeMismatchError, match=r"did you forget build\(\)\?"):
        env.from_source(builder, WatermarkStrategy.no_watermarks(), "files")


def test_collections_are_brought_to_their_type_when_they_are_given(env):
    env.from_collection([("a", 1)], Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.DOUBLE()])).print()
    plan = env._plan("job")[0]
    split = plan.sources[0].source
    (record,) = split.open_reader(split.discover_splits(1, frozenset())[0], None).read_batch(10)
    assert isinstance(record, Row) and record["v"] == 1.0
    assert all("Type-Check" not in op.name for stage in plan.stages for op in stage.operators)


def test_a_collection_is_copied(env):
    items = [1]
    env.from_collection(items).print()
    items.append(2)
    source = source_of(env).source
    assert source.open_reader(source.discover_splits(1, frozenset())[0], None).read_batch(10) == [1]


class TestSettings:
    def test_set_wins_over_environment_wins_over_default(self, env, monkeypatch):
        monkeypatch.setenv("HEADWATER_PIPELINE_MAX_PARALLELISM", "64")
        assert env.get_max_parallelism() == 64
        assert env.set_max_parallelism(32).get_max_parallelism() == 32

    def test_the_configuration_given_is_not_changed(self):
        given = Configuration()
        StreamExecutionEnvironment.get_execution_environment(given).set_parallelism(3)
        assert not given.contains_key("parallelism.default")

    def test_configure_takes_over(self, env):
        env.configure(Configuration().set_integer("parallelism.default", 7))
        assert env.get_parallelism() == env.get_config().get_parallelism() == 7

    def test_default_local_parallelism_yields(self, env):
        env.set_default_local_parallelism(3)
        assert env.get_parallelism() == 3
        env.set_parallelism(5).set_default_local_parallelism(2)
        assert env.get_parallelism() == 5

    def test_bad_values_are_refused_before_anything_starts(self, env, executor):
        env.configure(Configuration().set_string("headwater.epoch.duration", "soon"))
        env.from_collection([1]).print()
        with pytest.raises(ConfigurationError, match=r"headwater\.epoch\.duration.*soon"):
            env.execute()
        assert executor.launched == []

    def test_unknown_keys_are_warned_of(self, env, executor):
        env.configure(Configuration().set_string("headwater.epoch.durations", "1 s"))
        env.from_collection([1]).print()
        with pytest.warns(UserWarning, match=r"did you mean 'headwater\.epoch\.duration'"):
            env.execute()

    @pytest.mark.parametrize("interval", [200, Duration.of_millis(200), timedelta(milliseconds=200)])
    def test_a_short_checkpoint_interval_shortens_epochs(self, env, executor, interval):
        env.enable_checkpointing(interval, CheckpointingMode.EXACTLY_ONCE)
        assert env.get_checkpoint_interval() == 200
        env.from_collection([1]).print()
        env.execute()
        plan, configuration = executor.launched[0]
        assert configuration.get_integer("headwater.epoch.duration", 0) == 200
        assert plan.settings.get(EPOCH_DURATION) == 200

    def test_a_long_checkpoint_interval_does_not_lengthen_epochs(self, env, executor):
        env.enable_checkpointing(60_000)
        env.from_collection([1]).print()
        env.execute()
        assert executor.launched[0][0].settings.get(EPOCH_DURATION) == 1_000

    def test_job_parameters_reach_the_plan(self, env):
        env.get_config().set_global_job_parameters({"limit": "5"})
        env.from_collection([1]).print()
        assert env._plan("job")[0].job_parameters == {"limit": "5"}

    def test_job_parameters_of_the_environment_variable_reach_the_plan(self, env, monkeypatch):
        monkeypatch.setenv("HEADWATER_PIPELINE_GLOBAL_JOB_PARAMETERS", "limit:5")
        env.from_collection([1]).print()
        assert env._plan("job")[0].job_parameters == {"limit": "5"}

    def test_timestamp_policy_is_what_holds_when_the_job_is_planned(self, env):
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        env.from_source(NumberSequenceSource(1, 2), strategy, "n").print()
        env.configure(Configuration().set_string("headwater.bad-timestamps", "side-output"))
        env.configure(Configuration().set_string("headwater.timestamps.max-ahead", "1 d"))
        operator = env._plan("job")[0].stages[0].operators[0].factory()
        assert not operator.fail_on_bad_timestamps
        assert operator.max_ahead_ms == 86_400_000

    def test_the_interval_of_watermarks_is_what_holds_when_the_job_is_planned(self, env):
        env.from_source(NumberSequenceSource(1, 2), WatermarkStrategy.for_monotonous_timestamps(), "n").print()
        assert env.get_config().get_auto_watermark_interval() == 200  # as PyFlink says
        assert env._plan("job")[0].stages[0].operators[0].factory().watermark_interval_ms is None
        env.get_config().set_auto_watermark_interval(5_000)
        assert env.get_config().get_auto_watermark_interval() == 5_000
        assert env._plan("job")[0].stages[0].operators[0].factory().watermark_interval_ms == 5_000

    def test_python_dependencies_are_settings(self, env, tmp_path):
        module, requirements = tmp_path / "m.py", tmp_path / "requirements.txt"
        module.touch(), requirements.touch()
        env.add_python_file(str(module))
        env.add_python_file(str(tmp_path))
        env.set_python_requirements(str(requirements))
        env.add_python_archive(str(module), "data")
        env.set_python_executable("python3.11")
        jars = [tmp_path / "a.jar", tmp_path / "b.jar"]
        [jar.touch() for jar in jars]
        env.add_jars(f"file://{jars[0]}", str(jars[1]), f"file:{jars[0]}", "s3://bucket/c.jar", "local:/d.jar")
        env.from_collection([1]).print()
        configuration = env._plan("job")[1]
        settings = configuration.to_dict()
        assert settings["headwater.python.files"] == f"{module};{tmp_path}"
        assert settings["headwater.python.requirements"] == str(requirements)
        assert settings["spark.archives"] == f"{module}#data"
        assert settings["spark.pyspark.python"] == "python3.11"
        assert settings["spark.jars"] == f"{jars[0]},{jars[1]},{jars[0]},s3://bucket/c.jar,local:/d.jar"

    @pytest.mark.parametrize("jar", ["nope.jar", "/nope/a.jar", "file:///nope/a.jar", "/nope/*.jar"])
    def test_a_jar_that_is_not_there_is_told_at_the_call(self, env, jar):
        with pytest.raises(ConfigurationError, match=r"add_jars\(\): there is no file"):
            env.add_jars(jar)

    def test_python_files_must_exist(self, env):
        with pytest.raises(ConfigurationError, match=r"add_python_file\(\): there is no file 'nowhere.py'"):
            env.add_python_file("nowhere.py")

    def test_what_means_nothing_here_says_so(self, env):
        forget_warnings()
        with pytest.warns(NoEffectWarning, match="set_buffer_timeout"):
            env.set_buffer_timeout(100)
        with pytest.warns(NoEffectWarning, match="changelog"):
            env.enable_changelog_state_backend(True)


class TestExecution:
    def test_execute_waits_and_clears_the_job(self, env, executor):
        env.from_collection([1]).print()
        result = env.execute("first")
        assert result.get_net_runtime() == 1
        plan, configuration = executor.launched[0]
        assert plan.name == configuration.get_string("pipeline.name", "") == "first"
        with pytest.raises(PlanError, match="is empty"):
            env.execute("second")

    def test_a_stream_can_be_used_again_in_the_next_job(self, env, executor):
        stream = env.from_collection([1])
        stream.print()
        env.execute()
        stream.map(str).print()
        env.execute()
        operators = [[op.name for stage in plan.stages for op in stage.operators] for plan, _ in executor.launched]
        assert operators == [["Print to Std. Out"], ["Map", "Print to Std. Out"]]

    def test_the_name_comes_from_the_configuration_if_not_given(self, env, executor):
        env.from_collection([1]).print()
        env.configure(Configuration().set_string("pipeline.name", "configured"))
        env.execute()
        assert executor.launched[0][0].name == "configured"

    def test_execute_async_does_not_wait(self, env, executor):
        executor.on_launch = lambda job, plan: None
        env.from_collection([1]).print()
        client = env.execute_async("job")
        assert client is executor.jobs[0]
        assert not client.get_job_execution_result().done()

    def test_execute_raises_what_the_job_failed_with(self, env, executor):
        executor.on_launch = lambda job, plan: job.result.set_exception(RuntimeError("lost"))
        env.from_collection([1]).print()
        with pytest.raises(RuntimeError, match="lost"):
            env.execute()

    def test_ctrl_c_cancels(self, env, executor):
        executor.on_launch = lambda job, plan: job.result.set_exception(KeyboardInterrupt())
        env.from_collection([1]).print()
        with pytest.raises(KeyboardInterrupt):
            env.execute()
        assert executor.jobs[0].cancelled

    def test_execution_plan_is_json_and_runs_nothing(self, env, executor):
        env.set_parallelism(2)
        env.from_collection([("a", 1)]).key_by(0).sum(1).print()
        plan = json.loads(env.get_execution_plan())
        assert [node["pact"] for node in plan["nodes"]] == ["Data Source", "Operator", "Data Sink"]
        assert plan["nodes"][1]["predecessors"] == [{"id": 1, "ship_strategy": "HASH", "side": "second"}]
        assert executor.launched == []
        env.execute()

    def test_by_default_jobs_go_to_the_runtime(self, monkeypatch):
        seen = []
        monkeypatch.setattr("importlib.import_module", lambda name: seen.append(name) or "launcher")
        assert get_executor() == "launcher"
        assert seen == ["headwater.runtime.job.launcher"]
