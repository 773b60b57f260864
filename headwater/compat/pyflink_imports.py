"""Maps imports of `pyflink.*` onto `headwater.*`.

A module of PyFlink *is* the module of the same path here: one object under two names in `sys.modules`. Classes keep the
module name they were defined with (`headwater...`), so what was pickled by reference never names PyFlink and loads in
any process. A user's own module that imports PyFlink needs the mapping wherever it is imported: the runtime installs it
in Python workers and slots if the driver has it (`headwater/runtime/main_module.py`).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from headwater.compat.missing_modules import explain_missing_module, explain_missing_name

PYFLINK = "pyflink"
HEADWATER = "headwater"

_PASSED_ON = {
    ("headwater.table.table_environment", "StreamTableEnvironment"): "headwater.table.stream_table_environment",
    ("headwater.common", "AvroRowDeserializationSchema"): "headwater.datastream.formats.avro",
    ("headwater.common", "AvroRowSerializationSchema"): "headwater.datastream.formats.avro",
    ("headwater.common", "CsvRowDeserializationSchema"): "headwater.datastream.formats.csv",
    ("headwater.common", "CsvRowSerializationSchema"): "headwater.datastream.formats.csv",
    ("headwater.common", "JsonRowDeserializationSchema"): "headwater.datastream.formats.json",
    ("headwater.common", "JsonRowSerializationSchema"): "headwater.datastream.formats.json",
}
"""{(our package, name): its module}, for names that PyFlink's package re-exports, and ours, a lower layer, cannot."""


class PyFlinkFinder:
    """The first entry of `sys.meta_path` while the mapping holds. Also the loader of what it finds."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != PYFLINK and not fullname.startswith(f"{PYFLINK}."):
            return None
        own_name = HEADWATER + fullname.removeprefix(PYFLINK)
        try:
            found = importlib.util.find_spec(own_name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise ModuleNotFoundError(explain_missing_module(fullname), name=fullname)
        return ModuleSpec(fullname, _AliasLoader(own_name), is_package=found.submodule_search_locations is not None)


class _AliasLoader(Loader):
    """Loads a module by handing out the one that exists under another name."""

    def __init__(self, own_name: str) -> None:
        self._own_name = own_name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._own_name)
        self._own_spec = module.__spec__
        explain_missing_names(module)
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just marked the module with the alias's spec; relative imports need its own.
        module.__spec__ = self._own_spec


def explain_missing_names(module: ModuleType) -> None:
    """Let `from pyflink.x import Y` find Y, or explain why it is missing, where the module does not have it."""
    before: Any = module.__dict__.get("__getattr__")
    if getattr(before, "explains_pyflink", False):
        return

    def __getattr__(name: str) -> Any:
        if before is not None:
            return before(name)
        if is_installed() and (found := passed_on(module.__name__, name)) is not None:
            return found
        text = explain_missing_name(module.__name__, name) if is_installed() else None
        if text is None:  # a private name, a submodule not imported yet, or nothing of PyFlink's
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        raise ImportError(text, name=module.__name__)

    __getattr__.explains_pyflink = True  # type: ignore[attr-defined]
    module.__getattr__ = __getattr__  # type: ignore[method-assign]


def passed_on(module: str, name: str) -> Any:
    """Return what `from pyflink.x import name` gives where our `module` does not have it; None if there is nothing."""
    home = _PASSED_ON.get((module, name))
    return None if home is None else getattr(importlib.import_module(home), name)


_finder = PyFlinkFinder()


def install() -> None:
    """Map `pyflink` from now on, in this process; a second call changes nothing.

    An installed PyFlink is hidden. One that was imported already stays what it is, so this must come first.
    """
    if is_installed():
        return
    sys.meta_path.insert(0, _finder)


def is_installed() -> bool:
    """Return True if `import pyflink` gives headwater in this process."""
    return _finder in sys.meta_path


def uninstall() -> None:
    """Undo the mapping and forget the imported aliases. For tests."""
    if is_installed():
        sys.meta_path.remove(_finder)
    for name in [name for name in sys.modules if name == PYFLINK or name.startswith(f"{PYFLINK}.")]:
        if (sys.modules[name].__name__ or "").startswith(HEADWATER):
            del sys.modules[name]
