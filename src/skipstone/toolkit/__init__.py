"""What index types are made of, built-in or not: leaves of predicates, values, bounds, patterns, elements, hashes."""
