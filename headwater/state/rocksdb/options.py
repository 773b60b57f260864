"""How much memory and which directory RocksDB state gets."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakSet

from rocksdict import BlockBasedIndexType, BlockBasedOptions, Cache, DBCompressionType, Options, WriteBufferManager

from headwater.common.errors import ConfigurationError
from headwater.state.rocksdb.home import RocksDBHome, home_in

MIN_MEMORY_BYTES = 8 << 20
DEFAULT_MEMORY_BYTES = 256 << 20
DEFAULT_TIMERS_IN_MEMORY = 1 << 15

_MAX_WRITE_BUFFER_BYTES = 64 << 20
_MAX_OPEN_FILES = 256
"""Each open file holds a little memory outside the block cache."""


@dataclass(frozen=True)
class RocksDBOptions:
    """All backends of a slot get the same object, and so share the memory.

    Half of `memory_bytes` is for RocksDB itself (blocks, indexes, filters, write buffers), half for cached entries as
    Python objects. It does not cover the changes of the current epoch, the log of changes since the last checkpoint,
    the timers that fire next, and the interpreter.
    """

    memory_bytes: int = DEFAULT_MEMORY_BYTES
    directory: Path | None = None
    """Each process makes a directory in here for its databases. None: in the machine's directory for temporary files.
    Choose a local disk, and the one with the native checkpoints: then these cost links instead of copies."""
    log_changes: bool = True
    """Remember which keys changed since the last checkpoint: `delta_sections` needs it. Set it to False if all
    checkpoints are native: then memory does not grow with the changes between two checkpoints."""
    timers_in_memory: int | None = DEFAULT_TIMERS_IN_MEMORY
    """How many timers per backend and kind may be in memory, besides those of the current epoch. None: all of them."""

    def __post_init__(self) -> None:
        if self.memory_bytes < MIN_MEMORY_BYTES:
            raise ConfigurationError(
                f"RocksDB state was given {self.memory_bytes} bytes of memory per slot; "
                f"it needs {MIN_MEMORY_BYTES} ({MIN_MEMORY_BYTES >> 20} MiB) or more"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return (RocksDBOptions, (self.memory_bytes, self.directory, self.log_changes, self.timers_in_memory))

    @cached_property
    def memory(self) -> RocksDBMemory:
        """The memory that all backends with this very object share. Made on first use, in each process."""
        return RocksDBMemory(self.memory_bytes)

    def home(self) -> RocksDBHome:
        """This process's part of `directory`."""
        return home_in(Path(tempfile.gettempdir()) if self.directory is None else self.directory.absolute())


class RocksDBMemory:
    """The memory for RocksDB state in one process, and the states that share it."""

    def __init__(self, memory_bytes: int) -> None:
        native_bytes = memory_bytes // 2
        self._object_bytes = memory_bytes - native_bytes
        self._write_buffer_bytes = min(native_bytes // 4, _MAX_WRITE_BUFFER_BYTES)
        # Not the default LRU cache: with little memory, each of its many shards is smaller than a filter.
        self.cache = Cache.new_hyper_clock_cache(native_bytes, 0)
        # Write buffers are charged to the cache, so that one limit holds for both.
        self._write_buffers = WriteBufferManager.new_write_buffer_manager_with_cache(
            2 * self._write_buffer_bytes, False, self.cache
        )
        self._stores: WeakSet[Any] = WeakSet()

    def share_with(self, store: object) -> None:
        """Give `store` a share of the memory for objects, as long as it exists."""
        self._stores.add(store)

    def object_bytes_per_store(self) -> int:
        """Return how many bytes of Python objects each state may keep."""
        return self._object_bytes // max(1, len(self._stores))

    def database_options(self) -> Options:
        """Return the options of one database that uses this memory."""
        table = BlockBasedOptions()
        table.set_block_cache(self.cache)
        table.set_block_size(4096)
        table.set_bloom_filter(10, False)
        # Cut indexes and filters into blocks and keep them in the cache: otherwise their memory grows with the state.
        table.set_cache_index_and_filter_blocks(True)
        table.set_index_type(BlockBasedIndexType.two_level_index_search())
        table.set_partition_filters(True)
        table.set_metadata_block_size(4096)
        table.set_pin_top_level_index_and_filter(True)
        table.set_format_version(5)
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_block_based_table_factory(table)
        options.set_write_buffer_manager(self._write_buffers)
        options.set_write_buffer_size(self._write_buffer_bytes)
        options.set_max_write_buffer_number(2)
        options.set_target_file_size_base(max(2 << 20, self._write_buffer_bytes))
        options.set_max_bytes_for_level_base(max(16 << 20, 4 * self._write_buffer_bytes))
        options.set_compression_type(DBCompressionType.lz4())
        options.set_max_background_jobs(2)
        options.set_max_open_files(_MAX_OPEN_FILES)
        options.set_keep_log_file_num(1)
        options.set_max_log_file_size(1 << 20)
        options.set_stats_dump_period_sec(0)
        return options
