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
    """One object is given to all backends of a slot: they share the memory.

    `memory_bytes` covers what RocksDB holds (blocks, indexes, filters, write buffers) and the entries that are kept as
    Python objects, half of it each. It does not cover the changes of the epoch under way, the list of what changed
    since the last checkpoint, the timers that fire next, and the interpreter itself.
    """

    memory_bytes: int = DEFAULT_MEMORY_BYTES
    directory: Path | None = None
    """Where databases are made, in a directory of this process; None: in the machine's directory for temporary files.
    It should be on a local disk, and on the same one as native checkpoints, which then cost links instead of copies."""
    log_changes: bool = True
    """Remember which keys changed since the last checkpoint: `delta_sections` needs it. Where all checkpoints are
    native ones, leave it out: then memory does not grow with what changes between two checkpoints."""
    timers_in_memory: int | None = DEFAULT_TIMERS_IN_MEMORY
    """How many timers of a backend and kind may be in memory beside those of the epoch under way; None: all of them."""

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
        """The memory that all backends with this very object share. Made on first use; belongs to this process."""
        return RocksDBMemory(self.memory_bytes)

    def home(self) -> RocksDBHome:
        """This process's part of `directory`."""
        return home_in(Path(tempfile.gettempdir()) if self.directory is None else self.directory.absolute())


class RocksDBMemory:
    """The memory of the RocksDB state in one process, and how many states have a share of it."""

    def __init__(self, memory_bytes: int) -> None:
        native_bytes = memory_bytes // 2
        self._object_bytes = memory_bytes - native_bytes
        self._write_buffer_bytes = min(native_bytes // 4, _MAX_WRITE_BUFFER_BYTES)
        # Not the default LRU cache: where memory is small, each of its many shards is smaller than a filter.
        self.cache = Cache.new_hyper_clock_cache(native_bytes, 0)
        # Write buffers are charged to the cache, so that one limit holds for both.
        self._write_buffers = WriteBufferManager.new_write_buffer_manager_with_cache(
            2 * self._write_buffer_bytes, False, self.cache
        )
        self._stores: WeakSet[Any] = WeakSet()

    def share_with(self, store: object) -> None:
        """From now on, and as long as it is there, `store` has a share of the memory for objects."""
        self._stores.add(store)

    def object_bytes_per_store(self) -> int:
        """How many bytes of Python objects each state may keep."""
        return self._object_bytes // max(1, len(self._stores))

    def database_options(self) -> Options:
        """Options of one database within this memory."""
        table = BlockBasedOptions()
        table.set_block_cache(self.cache)
        table.set_block_size(4096)
        table.set_bloom_filter(10, False)
        # Indexes and filters are cut into blocks and live in the cache: else they would grow with the state.
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
