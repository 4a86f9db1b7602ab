"""The benchmarks behind docs/performance.md: one module per promise on speed, run by ``python -m benchmarks``."""
