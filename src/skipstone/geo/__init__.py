"""Functions on geometries: a set on shapely to register, and what they and Apache Sedona's imply of the columns."""

from skipstone.geo.registration import register

__all__ = ["register"]
