"""The Levenshtein distance of texts: whole numbers, exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from skipstone.errors import SettingError
from skipstone.functions.distances.edits import edit_distances
from skipstone.functions.distances.metric import ComputedMetric, Found, Points, Tolerance

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from skipstone.expressions.tree import Call

    Floats = npt.NDArray[np.float64]

__all__ = ["Levenshtein"]

_LEVENSHTEIN = "org.apache.spark.sql.catalyst.expressions.Levenshtein"
_MOST_LETTERS = 256
_CANDIDATES, _SAMPLED = 8, 32


class Levenshtein(ComputedMetric):
    """The least number of characters to insert, delete or replace, as Spark's own function counts them."""

    name = "levenshtein"
    functions = ()
    takes = "a string"

    def supports(self, spark_type: str, origins: Sequence[Any] = ()) -> bool:  # noqa: ARG002  (every text)
        return spark_type == "string"

    def find(self, column: pa.Array) -> Found | None:
        """Text that is not valid UTF-8 is not read: who counts its characters in which way is not known."""
        once = column.unique().drop_null()
        try:
            once.validate(full=True)
        except pa.ArrowInvalid:
            return None
        return Found({0: once.to_pylist()} if len(once) else {})

    def origin(self, given: Any) -> str:
        if not isinstance(given, str):
            msg = f"the origin {given!r} is not text: the Levenshtein distance is one of strings"
            raise SettingError(msg)
        return given

    def literal(self, value: Any, spark_type: str) -> str | None:
        return value if isinstance(value, str) and spark_type in ("string", "") else None

    def kind(self, point: Any) -> int:  # noqa: ARG002  (every text has a distance from every other)
        return 0

    def distances(self, points: Points, origin: Any) -> Floats:
        return edit_distances(points, origin).astype(np.float64)

    def centre(self, points: Points, element: np.dtype[Any]) -> str:  # noqa: ARG002  (there are no coordinates)
        """Take, of a few texts that are not longer than most, the one whose farthest companion is least far."""
        sample = points[:: max(1, len(points) // _SAMPLED)][:_SAMPLED]
        sizes = [len(text.encode()) for text in sample]
        short = [text for text, size in zip(sample, sizes, strict=True) if size * len(sizes) <= sum(sizes)]
        candidates = [text[:_MOST_LETTERS] for text in short[:: max(1, len(short) // _CANDIDATES)][:_CANDIDATES]]
        return min(candidates, key=lambda text: float(self.distances(sample, text).max()))

    def tolerance(self, kind: int) -> Tolerance:  # noqa: ARG002  (whole numbers are exact)
        return Tolerance(limit=2.0**52)

    def tolerance_of(self, call: Call, kind: int) -> Tolerance | None:
        """Know Spark's ``levenshtein`` of two arguments; with a third it gives -1 for what is farther."""
        is_sparks = not call.kind and call.class_name == _LEVENSHTEIN and len(call.arguments) == 2
        return self.tolerance(kind) if is_sparks else super().tolerance_of(call, kind)

    def from_origins(self, origins: pa.Array, point: Any) -> Floats:
        rows = np.flatnonzero(origins.is_valid().to_numpy(zero_copy_only=False))
        found = np.full(len(origins), np.nan)
        found[rows] = self.distances(origins.drop_null().to_pylist(), point)
        return found
