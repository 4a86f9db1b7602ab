"""The metrics that come with Skipstone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skipstone.functions.distances.levenshtein import Levenshtein
from skipstone.functions.distances.vector_metrics import Angular, Euclidean, Haversine, Manhattan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skipstone.functions.distances.metric import ComputedMetric

__all__ = ["METRICS"]

METRICS: Mapping[str, ComputedMetric] = {
    metric.name: metric for metric in (Euclidean(), Manhattan(), Haversine(), Angular(), Levenshtein())
}
"""The metrics that come with Skipstone, by name."""
