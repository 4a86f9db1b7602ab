"""When a modification time tells two states of an object apart, and when a reader does not give every row."""

import pytest

from skipstone import Dataset, MinMaxIndex
from skipstone.errors import IndexingError
from skipstone.indexing.job import _is_trusted
from skipstone.indexing.objects import DataObject
from tests.support import conf


@pytest.mark.parametrize(
    ("path", "modified", "etag", "trusted"),
    [
        ("file:/d/a", 9_899, "", True),
        ("file:/d/a", 9_901, "", False),
        ("file:/d/a", 9_000, "", False),
        ("file:/d/a", 7_000, "", True),
        ("file:/d/a", 99_000, "", False),
        ("hdfs://n/d/a", 8_500, "", False),
        ("hdfs://n/d/a", 6_999, "", True),
        ("s3a://b/a", 10_000, "tag", True),
    ],
)
def test_trust(path, modified, etag, trusted):
    """Listed at 10,000 ms: local times are fine unless they are whole seconds, remote ones are not."""
    assert _is_trusted(DataObject(path, 1, modified, etag), 10_000) is trusted


def test_json_without_partial_results_is_refused(spark, tmp_path):
    (tmp_path / "a.json").write_text('{"a": 1, "b": "x"}\n')
    with conf(spark, {"spark.sql.json.enablePartialResults": "false"}):
        handle = Dataset(spark.read.schema("a INT, b INT").json(str(tmp_path)))
        with pytest.raises(IndexingError, match="enablePartialResults"):
            handle.create_indexes(MinMaxIndex("a"), MinMaxIndex("b"))
