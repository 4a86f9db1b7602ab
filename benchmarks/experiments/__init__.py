"""The paper's experiments, a module each: ``make experiments`` runs them, ``docs/experiments.md`` has the findings."""
