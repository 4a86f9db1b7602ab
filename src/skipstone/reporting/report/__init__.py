"""The report on a workload: a page that stands by itself."""
