"""Which worker gets which tests: a file goes to one as a whole, files that share something dear to the same one.

Files whose tests share nothing, and take minutes each, are handed out test by test.
"""

from __future__ import annotations

__all__ = ["DEAREST", "files_together"]

TOGETHER = {"tests/soundness/test_ignorance.py": "tests/soundness/test_mutations.py"}
"""By file: another that has the same fixtures of the session."""

APART = frozenset(
    {
        "tests/end_to_end/test_tables.py",
        "tests/end_to_end/test_spark_versions.py",
        "tests/engines/spark/test_sql_versions.py",
        "tests/benchmarks/test_experiments_run.py",
        "tests/functions/identity/test_edited_functions.py",
        "tests/soundness/test_rule_mutations.py",
    }
)
"""Files whose tests are processes of their own: each test may go to another worker."""

DEAREST = (
    "tests/end_to_end/test_tables.py",
    "tests/end_to_end/test_spark_versions.py",
    "tests/soundness/test_rule_mutations.py",
    "tests/soundness/test_property.py",
    "tests/stores/test_elasticsearch.py",
    "tests/storage/test_remote.py",
    "tests/cluster/test_cluster.py",
    "tests/soundness/test_property_functions.py",
    "tests/environment/test_attacks.py",
)
"""What begins first, so that no worker is left with one of them at the end; then what is marked ``slow``."""


def files_together(config: object, log: object) -> object:
    """Make what hands out whole files; environments in which one worker runs have no xdist."""
    from xdist.scheduler import LoadScopeScheduling

    class FilesTogether(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return nodeid if file in APART else TOGETHER.get(file, file)

    return FilesTogether(config, log)
