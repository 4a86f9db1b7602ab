"""The index types, one file each with its metadata type, index, clauses and filter."""
