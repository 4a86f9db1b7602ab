"""What is said of a job that failed."""

from __future__ import annotations

import pytest

from skipstone.engines.spark.failures import explained_failures
from skipstone.errors import IndexingError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("An error occurred while calling o1.footers.\n: java.lang.Error: closed\n\tat x.Y", "java.lang.Error: closed"),
        ("[SOME_CONDITION] It was so. SQLSTATE: 42000\nmore", r"It was so. \[SOME_CONDITION\]"),
        ("plainly so\nmore", "plainly so"),
        ("", "Spark gave no reason"),
    ],
)
def test_the_most_telling_line_is_the_one_that_is_told(text, said):
    with pytest.raises(IndexingError, match=f"nothing was indexed: {said}$"), explained_failures():
        raise RuntimeError(text)
