"""Distances: metrics, and the functions of a query that compute them."""
