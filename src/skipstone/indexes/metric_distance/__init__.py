"""The index of distances from chosen origins, by any metric."""
