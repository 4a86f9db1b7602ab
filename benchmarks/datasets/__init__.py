"""Datasets of the paper's shape, each sized by one number; ``docs/datasets.md`` says where their figures come from."""
