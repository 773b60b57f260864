"""Makes classes of the user's script known in other processes.

Pickle stores a dataclass of the started script as `__main__.Payment`, but in a worker or a slot `__main__` is another
module. So the classes of the user's `__main__` travel with the plan, by value, and are put into the other process's
`__main__` under their names. Records and snapshots then contain plain references.

If `import pyflink` means headwater in the driver, it does so in the other process too: the user's modules may use it.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any

import cloudpickle

from headwater.common.errors import SerializationError, user_traceback
from headwater.compat import pyflink_imports
from headwater.graph.plan import JobPlan


def capture_main() -> bytes:
    """Return the classes that the running script defines, by value, and whether it maps pyflink to headwater.

    Classes that cannot be pickled are left out.
    """
    main = sys.modules["__main__"]
    captured: dict[str, Any] = {}
    for name, value in list(vars(main).items()):
        if isinstance(value, type) and value.__module__ == "__main__":
            try:
                cloudpickle.dumps(value)
            except Exception:  # the class holds a lock, say: that matters only if a record uses the class
                continue
            captured[name] = value
    return pickle.dumps((pyflink_imports.is_installed(), cloudpickle.dumps(captured)))


def load_plan(captured: bytes, plan: bytes, where: str) -> JobPlan:
    """The plan in this process, whose `__main__` gets the captured classes first.

    SerializationError: what the program needs is not here, or fails when it is imported. No other attempt would do
    better. A machine that is short of memory or descriptors is another matter: that error passes through.
    """
    try:
        install_main(captured)
        loaded: JobPlan = pickle.loads(plan)
    except (OSError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        raise SerializationError(
            f"the program cannot be loaded in {where}. What it imports must be there on every host of the job: install "
            "it, or send it along with env.add_python_file() or python.files. What it imports must not end the process "
            f"either\n{user_traceback(error).rstrip()}"
        ) from None
    return loaded


def install_main(captured: bytes) -> None:
    """Put captured classes into this process's `__main__`. Call it before anything else of the job is unpickled."""
    main = sys.modules["__main__"]
    maps_pyflink, classes = pickle.loads(captured)
    if maps_pyflink:
        pyflink_imports.install()  # before the classes: unpickling them imports the modules that they use
    for name, value in pickle.loads(classes).items():
        if getattr(main, name, None) is not value:
            setattr(main, name, value)
