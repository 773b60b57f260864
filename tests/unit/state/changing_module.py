"""A module whose classes a test defines, and defines anew as the next version of a program would."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

NAME = "changing"

_IMPORTS = """
from __future__ import annotations
from abc import ABC, abstractmethod
from collections import namedtuple
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Generic, NamedTuple, Optional, TypeVar
"""


class ChangingModule:
    """`define` replaces what is in the module; `make` evaluates an expression in it."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def define(self, source: str) -> None:
        for name in [name for name in vars(self._module) if not name.startswith("__")]:
            delattr(self._module, name)
        exec(compile(_IMPORTS + source, NAME, "exec"), vars(self._module))

    def make(self, expression: str) -> Any:
        return eval(expression, vars(self._module))


@contextmanager
def changing_module() -> Iterator[ChangingModule]:
    module = sys.modules[NAME] = ModuleType(NAME)
    try:
        yield ChangingModule(module)
    finally:
        del sys.modules[NAME]
