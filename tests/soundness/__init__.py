"""Soundness: random data and predicates through the real optimizer, mutations, and attacks by hand."""
