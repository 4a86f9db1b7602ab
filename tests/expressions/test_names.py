import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipstone.errors import ColumnNotFoundError
from skipstone.expressions.names import parse_column, spell_column

PAIRS = [
    ("x", ("x",)),
    ("s.x", ("s", "x")),
    ("ts2._y", ("ts2", "_y")),
    ("`odd.name`.x", ("odd.name", "x")),
    ("`a``b`", ("a`b",)),
    ("`2x`", ("2x",)),
    ("`größe`.`a b`", ("größe", "a b")),
    ("````", ("`",)),
]


@pytest.mark.parametrize(("text", "parts"), PAIRS)
def test_spelling_and_parsing(text, parts):
    assert parse_column(text) == parts
    assert spell_column(parts) == text


@pytest.mark.parametrize(("text", "parts"), [("a b.2x", ("a b", "2x")), ("`x`.`y`", ("x", "y")), ("größe", ("größe",))])
def test_other_spellings_are_understood(text, parts):
    assert parse_column(text) == parts


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a part is empty"),
        ("a.", "a part is empty"),
        (".a", "a part is empty"),
        ("a..b", "a part is empty"),
        ("`a", "back-ticks do not pair up"),
        ("a`b", "back-ticks do not pair up"),
        ("`a`b", "back-ticks do not pair up"),
        ("a.`b``", "back-ticks do not pair up"),
    ],
)
def test_what_names_no_column_is_said(text, reason):
    with pytest.raises(ColumnNotFoundError, match=reason):
        parse_column(text)


@given(st.lists(st.text("ab.` 1_é", min_size=1), min_size=1, max_size=4))
def test_every_path_can_be_written_and_read_back(parts):
    assert parse_column(spell_column(parts)) == tuple(parts)
