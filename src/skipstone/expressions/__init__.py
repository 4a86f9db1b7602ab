"""The Expression Tree: nodes, normalisation, and reading it from Spark's plan."""
