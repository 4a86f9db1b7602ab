"""Functions on geometries, registered by one call: ``skipstone.geo.register(spark)``."""

from skipstone.engines.spark.register_geo import register

__all__ = ["register"]
