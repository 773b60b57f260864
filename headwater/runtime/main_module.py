"""Makes classes of the user's script known in other processes.

A dataclass defined in the script that was started is `__main__.Payment`. Pickle stores that name, and in a worker or a
slot `__main__` is another module. So the classes of the user's `__main__` travel with the plan, by value, and are put
into the other process's `__main__` under their names: records and snapshots then hold plain references.

If `import pyflink` means headwater in the driver it does so in the other process too: the user's modules may say it.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any

import cloudpickle

from headwater.compat import pyflink_imports


def capture_main() -> bytes:
    """The classes that the running script defines, by value, and how it imports. What cannot be pickled is left out."""
    main = sys.modules["__main__"]
    captured: dict[str, Any] = {}
    for name, value in list(vars(main).items()):
        if isinstance(value, type) and value.__module__ == "__main__":
            try:
                cloudpickle.dumps(value)
            except Exception:  # a class that holds a lock, say: only an error if a record uses it
                continue
            captured[name] = value
    return pickle.dumps((pyflink_imports.is_installed(), cloudpickle.dumps(captured)))


def install_main(captured: bytes) -> None:
    """Put captured classes into this process's `__main__`. Must run before anything else of the job is unpickled."""
    main = sys.modules["__main__"]
    maps_pyflink, classes = pickle.loads(captured)
    if maps_pyflink:
        pyflink_imports.install()  # before the classes: unpickling them imports the modules that they use
    for name, value in pickle.loads(classes).items():
        if getattr(main, name, None) is not value:
            setattr(main, name, value)
