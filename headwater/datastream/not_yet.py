"""Methods of PyFlink that headwater does not have yet: a call raises an error that says what to do instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar


class NotYet:
    """Mix-in: `_not_yet` names the missing methods and says what to do without them, {method: advice}."""

    _not_yet: ClassVar[dict[str, str]] = {}

    if not TYPE_CHECKING:  # a type checker must go on reporting misspelt names

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            for cls in type(self).__mro__:
                advice = cls.__dict__.get("_not_yet", {}).get(name)
                if advice is not None:
                    raise AttributeError(f"headwater has no {kind}.{name}() yet; {advice}")
            raise AttributeError(f"'{kind}' object has no attribute '{name}'")
