"""{kind of state: class of its store}"""

from __future__ import annotations

from collections.abc import Callable

from headwater.state.heap.store import KeyScope
from headwater.state.rocksdb.list import RocksListState
from headwater.state.rocksdb.map import RocksMapState
from headwater.state.rocksdb.panes import RocksElementPanes, RocksFoldedPanes
from headwater.state.rocksdb.store import RocksStore, StoreOwner
from headwater.state.rocksdb.value import RocksValueState

STORES: dict[str, Callable[[StoreOwner, KeyScope, str, int, bool], RocksStore]] = {
    "value": RocksValueState,
    "list": RocksListState,
    "map": RocksMapState,
    "reducing": RocksValueState,
    "aggregating": RocksValueState,
    "folded panes": RocksFoldedPanes,
    "element panes": RocksElementPanes,
}
