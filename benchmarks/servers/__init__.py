"""Servers that benchmarks run beside themselves: an S3 gateway over folders, and a proxy that makes it as far away."""
