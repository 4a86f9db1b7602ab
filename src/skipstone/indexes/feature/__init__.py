"""The index of a predicate: which objects hold rows for which it is TRUE."""
