"""The demonstration: a small dataset, its indexes, queries with and without skipping."""
