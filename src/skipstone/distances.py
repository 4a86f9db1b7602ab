"""Distances as functions of a query, registered by one call: ``skipstone.distances.register(spark)``."""

from skipstone.engines.spark.register_distances import register, vouch_for

__all__ = ["register", "vouch_for"]
