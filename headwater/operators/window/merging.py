"""The open windows of one key, for windows that merge, and the namespace of each window's content."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headwater.state.api import ValueState
from headwater.time.assigners import MergingWindowAssigner
from headwater.time.windows import namespace_of, window_of

OnMerge = Callable[[Any, list[Any], Any, list[Any]], None]
"""(resulting window, merged namespaces, namespace of its content, namespaces whose content to move there)"""


class _Groups(MergingWindowAssigner.MergeCallback):
    """Notes which windows an assigner wants to merge."""

    def __init__(self) -> None:
        self.found: list[tuple[set[Any], Any]] = []

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        self.found.append(({namespace_of(window) for window in to_be_merged}, merge_result))


class MergingWindows:
    """The windows of the current key. The content of a merged window stays in the namespace of its first part.

    Call `load`, then make changes, then call `store`, all for one key.
    """

    def __init__(self, assigner: MergingWindowAssigner[Any, Any], state: ValueState[Any]) -> None:
        self._assigner = assigner
        self._state = state
        self._content: dict[Any, Any] = {}  # {namespace of the window: namespace of its content}
        self._stored: tuple[Any, ...] = ()

    def load(self) -> None:
        """Read the windows of the current key."""
        self._stored = self._state.value() or ()
        self._content = dict(self._stored)

    def store(self) -> None:
        """Write what changed."""
        content = tuple(self._content.items())
        if content != self._stored:
            self._state.update(content or None)

    def content_of(self, namespace: Any) -> Any:
        """Return the namespace of a window's content. Raises KeyError if there is no such window (any more)."""
        return self._content[namespace]

    def __contains__(self, namespace: Any) -> bool:
        return namespace in self._content

    def retire(self, namespace: Any) -> None:
        """Forget a window that has ended."""
        del self._content[namespace]

    def add(self, window: Any, on_merge: OnMerge) -> Any:
        """Add `window`. Return it, or the window that it was merged into."""
        content, new = self._content, namespace_of(window)
        if new in content:
            return window
        result = window
        groups = _Groups()
        if content:
            self._assigner.merge_windows([*map(window_of, content), window], groups)
        for members, merged in groups.found:
            old = [namespace for namespace in content if namespace in members]
            if new in members:
                result = merged
            if not old:
                continue
            places = [content.pop(namespace) for namespace in old]
            content[namespace_of(merged)] = places[0]
            if old != [namespace_of(merged)]:
                on_merge(merged, old, places[0], places[1:])
        namespace = namespace_of(result)
        content.setdefault(namespace, namespace)
        return result
