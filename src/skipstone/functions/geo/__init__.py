"""Functions on geometries: a set on shapely, and what they and Apache Sedona's imply of the columns."""
