"""Which worker gets which tests: a file goes to one as a whole, files that share something dear to the same one."""

from __future__ import annotations

__all__ = ["DEAREST", "files_together"]

TOGETHER = {"tests/soundness/test_ignorance.py": "tests/soundness/test_mutations.py"}
"""By file: another that has the same fixtures of the session."""

DEAREST = (
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
            return TOGETHER.get(file, file)

    return FilesTogether(config, log)
