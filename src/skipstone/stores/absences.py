"""What is known not to be there: datasets without metadata, so that not every query looks for it again."""

from __future__ import annotations

import threading

__all__ = ["ABSENCES", "Absences"]


class Absences:
    """Remembers, for all stores of the process, which places had no metadata, and when that was seen.

    A commit forgets; a look that began before the commit must not be remembered after it, hence the generations.
    """

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}
        self._generations: dict[str, int] = {}
        self._lock = threading.Lock()

    def generation(self, location: str) -> int:
        """Return what ``remember`` must be told of the time before looking."""
        return self._generations.get(location, 0)

    def is_known(self, location: str, now: float, seconds: float) -> bool:
        """Whether a place was found without metadata within the last ``seconds``."""
        seen = self._seen.get(location)
        return seen is not None and now - seen < seconds

    def remember(self, location: str, now: float, generation: int) -> None:
        """Remember that there was nothing, unless something was committed since ``generation``."""
        with self._lock:
            if self._generations.get(location, 0) == generation:
                if len(self._seen) > 10_000:
                    self._seen.clear()
                self._seen[location] = now

    def forget(self, location: str) -> None:
        """Let the next look be a real one."""
        with self._lock:
            self._generations[location] = self._generations.get(location, 0) + 1
            self._seen.pop(location, None)


ABSENCES = Absences()
