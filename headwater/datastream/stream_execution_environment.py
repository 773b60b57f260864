"""Where a program starts: settings, sources, and the call that runs the job."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

from headwater.common import config_options as options
from headwater.common.config.session_defaults import session_defaults
from headwater.common.config_options import ConfigOption, resolve
from headwater.common.configuration import Configuration
from headwater.common.connector import Source
from headwater.common.errors import TypeMismatchError, short_repr
from headwater.common.execution_config import ExecutionConfig
from headwater.common.io import InputFormat
from headwater.common.job_client import JobClient
from headwater.common.job_execution_result import JobExecutionResult
from headwater.common.time import DurationLike
from headwater.common.type_system.checker import compile_batch_checker, compile_checker
from headwater.common.typeinfo import TypeInformation, Types
from headwater.common.watermark_strategy import WatermarkStrategy
from headwater.datastream.checkpoint_config import CheckpointConfig
from headwater.datastream.checkpointing_mode import CheckpointingMode
from headwater.datastream.closeable_iterator import CloseableIterator
from headwater.datastream.connectors.collect_sink import CollectSink, collected_results
from headwater.datastream.connectors.collection import CollectionSource
from headwater.datastream.connectors.file_formats import StreamFormat
from headwater.datastream.connectors.file_source import FileSource
from headwater.datastream.connectors.number_seq import NumberSequenceSource
from headwater.datastream.data_stream import DataStream, declared
from headwater.datastream.dataframe_source import DataFrameSource
from headwater.datastream.dead_letters import with_dead_letters_for_all
from headwater.datastream.execution_mode import RuntimeExecutionMode
from headwater.datastream.executor import get_executor
from headwater.datastream.function_source import FunctionSource
from headwater.datastream.no_effect import warn_no_effect
from headwater.datastream.not_yet import NotYet
from headwater.datastream.operator_settings import positive
from headwater.datastream.python_dependencies import PythonDependencies
from headwater.datastream.timestamps import check_strategy, does_something, timestamps_node
from headwater.graph.describe import to_json
from headwater.graph.plan import JobPlan
from headwater.graph.planner import plan
from headwater.graph.transformation import OperatorTransformation, SourceTransformation
from headwater.operators.functions.plain import SourceFunction

T = TypeVar("T")


built: list[list[OperatorTransformation]] | None = None
"""What each environment has built and not executed, if somebody put a list here to know (`headwater run`)."""


class StreamExecutionEnvironment(PythonDependencies, NotYet):
    """Holds a job while it is built. `execute()` plans what was built since the last one, and runs it."""

    _not_yet: ClassVar[dict[str, str]] = {
        "register_cached_file": "use add_python_file(), or add_python_archive()",
    }

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = session_defaults()
        if configuration is not None:
            self._configuration.add_all(_configuration("get_execution_environment", configuration))
        self._checkpoint_config = CheckpointConfig(self._configuration)
        self._execution_config = ExecutionConfig(self._configuration)
        self._operators: list[OperatorTransformation] = []
        if built is not None:
            built.append(self._operators)

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """A new environment.

        What `configuration` leaves open comes from the command line, then environment variables, then the defaults.
        """
        return StreamExecutionEnvironment(configuration)

    # --- settings -----------------------------------------------------------------------------------------------

    def get_config(self) -> ExecutionConfig:
        return self._execution_config

    def configure(self, configuration: Configuration) -> None:
        """Take over all settings of `configuration`; they win over those made before."""
        self._configuration.add_all(_configuration("configure", configuration))

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """The parallelism of every operator that does not set its own."""
        self._configuration.set(options.PARALLELISM, positive("set_parallelism", parallelism))
        return self

    def get_parallelism(self) -> int:
        return self._value(options.PARALLELISM)

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """The number of key groups: fixed once the job has a checkpoint."""
        self._configuration.set(options.MAX_PARALLELISM, positive("set_max_parallelism", max_parallelism))
        return self

    def get_max_parallelism(self) -> int:
        return self._value(options.MAX_PARALLELISM)

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """STREAMING (the default), BATCH, or AUTOMATIC: BATCH if all sources are bounded."""
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise TypeMismatchError(f"set_runtime_mode() expects a RuntimeExecutionMode, found {execution_mode!r}")
        self._configuration.set(options.RUNTIME_MODE, execution_mode.name)
        return self

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Give every operator a stage of its own. Slow: each step is a shuffle. Helps to find a slow operator."""
        self._configuration.set(options.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        return self._value(options.OPERATOR_CHAINING)

    def get_checkpoint_config(self) -> CheckpointConfig:
        return self._checkpoint_config

    def enable_checkpointing(
        self, interval: DurationLike, mode: CheckpointingMode | None = None
    ) -> StreamExecutionEnvironment:
        """Checkpoint at least every `interval` (milliseconds, or a duration). On by default, with every epoch."""
        self._configuration.set(options.CHECKPOINTING_ENABLED, True)
        self._checkpoint_config.set_checkpoint_interval(interval)
        if mode is not None:
            self._checkpoint_config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_interval(self) -> int:
        return self._checkpoint_config.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        return self._checkpoint_config.get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        return self._checkpoint_config.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        return self._checkpoint_config.is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        return self._checkpoint_config.is_force_unaligned_checkpoints()

    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """Accepted for PyFlink's sake; no effect."""
        warn_no_effect("set_buffer_timeout", "records wait for the end of an epoch; set headwater.epoch.duration")
        return self

    def enable_changelog_state_backend(self, enabled: bool) -> StreamExecutionEnvironment:
        """Accepted for PyFlink's sake; no effect."""
        if enabled:
            warn_no_effect("enable_changelog_state_backend", "every checkpoint is a log of what changed already")
        return self

    def is_changelog_state_backend_enabled(self) -> bool:
        """Never: see `enable_changelog_state_backend`."""
        return False

    def get_buffer_timeout(self) -> int:
        """Milliseconds that a record may wait for others: the epoch duration."""
        return self._value(options.EPOCH_DURATION)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Always: a job has one max parallelism."""
        return True

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        """Set where savepoints go that name no directory."""
        self._configuration.set(options.SAVEPOINT_DIRECTORY, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        return self._configuration.get(options.SAVEPOINT_DIRECTORY) or None

    def register_slot_sharing_group(self, slot_sharing_group: Any) -> StreamExecutionEnvironment:
        """Accepted for PyFlink's sake; no effect."""
        warn_no_effect("register_slot_sharing_group", "each partition of a stage has a slot, and Spark places them")
        return self

    def get_default_local_parallelism(self) -> int:
        """Return the default parallelism: the number of cores."""
        return options.PARALLELISM.default_value() or 1

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Set the parallelism, unless it is set already."""
        positive("set_default_local_parallelism", parallelism)
        if not self._configuration.contains_key(options.PARALLELISM.key):
            self._configuration.set(options.PARALLELISM, parallelism)

    # --- sources ------------------------------------------------------------------------------------------------

    def from_collection(self, collection: Iterable[Any], type_info: TypeInformation | None = None) -> DataStream:
        """The items of a collection, in order. They are checked against `type_info` now, not when the job runs."""
        try:
            items = list(collection)
        except TypeError:
            raise TypeMismatchError(f"from_collection() expects a collection, found {short_repr(collection)}") from None
        if declared("from_collection", type_info) is not None and self._value(options.TYPE_CHECK):
            items = _checked(items, type_info)  # type: ignore[arg-type]
        source = CollectionSource(items, type_info)
        return self._add_source(source, "Collection Source", type_info, parallelism=1, checked=True)

    def from_source(
        self,
        source: Source,
        watermark_strategy: WatermarkStrategy,
        source_name: str,
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """The records of `source`, with timestamps and watermarks made per split, as `watermark_strategy` says."""
        if not isinstance(source, Source):
            hint = "; did you forget build()?" if hasattr(source, "build") else ""
            raise TypeMismatchError(f"from_source() expects a Source, found {short_repr(source)}{hint}")
        if not isinstance(source_name, str) or not source_name:
            raise TypeMismatchError(
                f"from_source() expects source_name, a string that is not empty, found {source_name!r}"
            )
        return self._add_source(source, source_name, type_info, watermark_strategy)

    def add_source(
        self,
        source_func: SourceFunction | Source | Callable[[], Iterable[Any]],
        source_name: str = "Custom Source",
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """The records of a Source, or what a function yields; called again, it must yield the same."""
        if isinstance(source_func, Source):
            return self._add_source(source_func, source_name, type_info)
        produce = getattr(source_func, "run", source_func)
        if isinstance(source_func, type) or not callable(produce):
            hint = "; did you forget to call it?" if isinstance(source_func, type) else ""
            raise TypeMismatchError(
                f"add_source() expects a SourceFunction, a Source, or a function that yields records, "
                f"found {short_repr(source_func)}{hint}"
            )
        source = FunctionSource(produce, bounded=getattr(source_func, "bounded", True))
        return self._add_source(source, source_name, type_info, parallelism=1)

    def create_input(self, input_format: InputFormat, type_info: TypeInformation | None = None) -> DataStream:
        """The records that an input format describes, such as `AvroInputFormat`. Prefer `from_source`."""
        if not isinstance(input_format, InputFormat):
            raise TypeMismatchError(f"create_input() expects an InputFormat, found {short_repr(input_format)}")
        return self._add_source(input_format.create_source(), "Custom Source", type_info)

    def from_sequence(self, start: int, end: int) -> DataStream:
        """The whole numbers from `start` to `end`, both included."""
        return self._add_source(NumberSequenceSource(start, end), "Sequence Source", Types.LONG(), checked=True)

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream:
        """The lines of a file, of the files of a directory, or of those that a pattern matches."""
        text_lines = StreamFormat.text_line_format(charset_name)
        source = FileSource.for_record_stream_format(text_lines, file_path).build()
        return self._add_source(source, f"Text File {os.path.basename(file_path)}", Types.STRING(), checked=True)

    def from_dataframe(
        self,
        df: Any,
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "DataFrame",
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """The rows of a Spark DataFrame, streaming or batch, each a `Row` with the columns' names."""
        if not hasattr(df, "isStreaming"):
            found = type(df).__name__
            if type(df).__module__.startswith("pandas."):
                found = f"pandas' {found}; make a Spark DataFrame of it with spark.createDataFrame(...)"
            raise TypeMismatchError(f"from_dataframe() expects a Spark DataFrame, found {found}")
        return self._add_source(DataFrameSource(df, source_name), source_name, type_info, watermark_strategy)

    # --- running ------------------------------------------------------------------------------------------------

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the job and wait for its end. Raises what made it fail. Ctrl-C cancels it; the checkpoint stays."""
        client = self._launch(job_name)
        try:
            return client.get_job_execution_result().result()
        except KeyboardInterrupt:
            client.cancel().result()
            raise

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Start the job and return a handle on it: status, cancel, result."""
        return self._launch(job_name)

    def get_execution_plan(self) -> str:
        """What was built since the last `execute()`, as JSON for Flink's plan visualiser. Runs nothing."""
        return to_json(self._plan(None)[0])

    def close(self) -> None:
        """Forget what was built and not executed."""
        self._operators.clear()

    # --- for streams --------------------------------------------------------------------------------------------

    def _add_operator(self, node: OperatorTransformation) -> OperatorTransformation:
        """Make `node` part of the next job; called by the streams' methods."""
        self._operators.append(node)
        return node

    def _execute_and_collect(
        self, stream: DataStream, job_name: str | None, limit: int | None
    ) -> CloseableIterator | list[Any]:
        if limit is not None:
            positive("execute_and_collect", limit, "limit")
        sink = CollectSink()
        collect = stream._add_sink(sink, "Collect", like_input=True)._transformation
        try:
            client = self._launch(job_name)
        except BaseException:
            if collect in self._operators:
                self._operators.remove(collect)
            raise
        iterator = CloseableIterator(client, collected_results(sink.collect_id))
        if limit is None:
            return iterator
        with iterator:
            return list(itertools.islice(iterator, limit))

    # --- building -----------------------------------------------------------------------------------------------

    def _add_source(
        self,
        source: Any,
        name: str,
        type_info: TypeInformation | None,
        strategy: WatermarkStrategy | None = None,
        *,
        parallelism: int | None = None,
        checked: bool = False,
    ) -> DataStream:
        """`parallelism`: the only one the source can have. `checked`: its records are known to fit `type_info`."""
        node = SourceTransformation(
            name=name,
            source=source,
            bounded=source.bounded,
            output_type=declared(name, type_info),
            checks_output=type_info is not None and not checked,
            parallelism=parallelism,
            parallelism_fixed=parallelism is not None,
        )
        if strategy is None:
            return DataStream(self, node)
        check_strategy("from_source", strategy)
        if not does_something(strategy):
            return DataStream(self, node)
        # Name, uid and parallelism are the source's: for the user this is one thing.
        return DataStream(self, self._add_operator(timestamps_node(node, strategy, name)), settings_node=node)

    def _launch(self, job_name: str | None) -> JobClient:
        job, configuration = self._plan(job_name)
        operators = self._all_operators(configuration)
        self._operators.clear()

        def replan(parallelism: int) -> JobPlan:
            return plan(operators, Configuration(configuration).set(options.PARALLELISM, parallelism))

        return get_executor().launch(job, configuration, replan)

    def _plan(self, job_name: str | None) -> tuple[JobPlan, Configuration]:
        """Return the plan of what was built, and its configuration, resolved."""
        configuration = resolve(self._configuration)
        # A checkpoint comes at the end of an epoch, so epochs must not be longer than the interval.
        interval_ms = configuration.get(options.CHECKPOINTING_INTERVAL, configuration.get(options.EPOCH_DURATION))
        configuration.set(options.EPOCH_DURATION, min(configuration.get(options.EPOCH_DURATION), interval_ms))
        if job_name is not None:
            configuration.set(options.PIPELINE_NAME, job_name)
        return plan(self._all_operators(configuration), configuration), configuration

    def _all_operators(self, configuration: Configuration) -> list[OperatorTransformation]:
        """What was built, and what the settings add."""
        directory = configuration.get(options.DEAD_LETTERS_DIRECTORY)
        return with_dead_letters_for_all(self._operators, directory) if directory else list(self._operators)

    def _value(self, option: ConfigOption[T]) -> T:
        """Return the value of one option: what was set, else the environment variable, else the default."""
        keys = (option.key, *option.former_keys)
        given = {key: value for key, value in self._configuration.raw_items() if key in keys}
        return resolve(Configuration.from_dict(given)).get(option)


def _configuration(method: str, configuration: Any) -> Configuration:
    if not isinstance(configuration, Configuration):
        hint = "; make one with Configuration.from_dict(...)" if isinstance(configuration, dict) else ""
        raise TypeMismatchError(f"{method}() expects a Configuration, found {short_repr(configuration)}{hint}")
    return configuration


def _checked(items: list[Any], type_info: TypeInformation) -> list[Any]:
    """Return `items`, converted to their declared type. An error names the item."""
    try:
        return compile_batch_checker(type_info)(list(items))
    except TypeMismatchError:
        check = compile_checker(type_info)
        for index, item in enumerate(items):
            try:
                check(item)
            except TypeMismatchError as error:
                raise TypeMismatchError(f"from_collection(): item {index}: {error}") from None
        raise
