import pyarrow as pa
from hypothesis import strategies as st
from skipstone_lengths import LengthIndex

from skipstone.expressions import tree
from skipstone.testing import assert_sound

LENGTH = tree.Call("length", (tree.Column("text", "string"),), "int")
COMPARISONS = [
    tree.EqualTo, tree.NotEqualTo, tree.EqualNullSafe,
    tree.LessThan, tree.LessThanOrEqual, tree.GreaterThan, tree.GreaterThanOrEqual,
]  # fmt: skip


def length(text):
    return None if text is None else len(text)


def test_no_row_is_lost():
    outcome = assert_sound(
        LengthIndex("text"),
        {"text": "string"},
        predicates=st.builds(
            lambda make, n: make(LENGTH, tree.Literal(n, "int")), st.sampled_from(COMPARISONS), st.integers(-1, 5)
        ),
        values={"text": st.none() | st.text(max_size=4)},
        functions={"length": length},
        inputs={"length(`text`)": lambda rows: pa.array(map(length, rows.column("text").to_pylist()), pa.int32())},
    )
    assert outcome.skipped > 100
