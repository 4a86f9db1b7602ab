import pytest

from skipstone.expressions.types import catalog_type, has_collation

COLLATED_FIELD = (
    '{"type":"struct","fields":[{"name":"a","type":"string","nullable":true,'
    '"metadata":{"__COLLATIONS":{"a":"icu.UNICODE"}}}]}'
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("integer", "int"),
        ("long", "bigint"),
        ("byte", "tinyint"),
        ("short", "smallint"),
        ("int", "int"),
        ("decimal(10,2)", "decimal(10,2)"),
        ("string collate UTF8_LCASE", "string collate UTF8_LCASE"),
        ("interval day to second", "interval day to second"),
        ('"integer"', "int"),
        ('{"type":"array","elementType":"long","containsNull":false}', "array<bigint>"),
        ('{"type":"map","keyType":"string","valueType":"integer","valueContainsNull":true}', "map<string,int>"),
        (
            '{"type":"struct","fields":[{"name":"a","type":"short","nullable":true,"metadata":{}},'
            '{"name":"b","type":{"type":"array","elementType":"date","containsNull":true},"nullable":true,"metadata":{}}]}',
            "struct<a:smallint,b:array<date>>",
        ),
        (COLLATED_FIELD, COLLATED_FIELD),
        ("udt:org.example.Point", "udt:org.example.Point"),
        ("{broken", "{broken"),
        ('{"type":"udt"}', '{"type":"udt"}'),
    ],
)
def test_one_notation(given, expected):
    assert catalog_type(given) == expected


def test_collations_are_seen_at_any_depth():
    assert has_collation("string collate UTF8_LCASE")
    assert has_collation("array<string collate UNICODE_CI>")
    assert not has_collation("string")
    assert not has_collation("struct<collate:int>")
