"""What the driver remembers of metadata files, bounded in bytes: the least recently used goes first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["ByteCache"]


class ByteCache:
    """A thread-safe least-recently-used cache; what is larger than the bound is handed out but not kept.

    Parameters
    ----------
    bound
        Bytes to keep at most.

    Examples
    --------
    >>> cache = ByteCache(10)
    >>> cache.put("a", "first", 6)
    >>> cache.put("b", "second", 6)
    >>> cache.get("a"), cache.get("b"), cache.bytes
    (None, 'second', 6)
    """

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """The bytes held now."""
        return self._bytes

    def get(self, key: Hashable) -> Any:
        """Return what was put under a key, or ``None``."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, value: Any, size: int) -> None:
        """Keep a value; others make room."""
        with self._lock:
            known = self._entries.pop(key, None)
            if known is not None:
                self._bytes -= known[1]
            if size > self.bound:
                return
            self._entries[key] = (value, size)
            self._bytes += size
            while self._bytes > self.bound:
                _, (_, gone) = self._entries.popitem(last=False)
                self._bytes -= gone

    def get_or_load(self, key: Hashable, load: Callable[[], tuple[Any, int]]) -> Any:
        """Return what is kept under a key, or load it, without holding the lock: two threads may both load."""
        value = self.get(key)
        if value is None:
            value, size = load()
            self.put(key, value, size)
        return value
