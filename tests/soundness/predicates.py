"""Random predicate trees as SQL text, and how to make a failing one smaller.

A tree is a ``Node`` whose text is a template over its children; leaves have none.  Types are chosen loosely on purpose:
Catalyst inserts casts, and what it refuses to analyse is thrown away by the caller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.soundness.values import KINDS, day, moment, text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.soundness.datasets import Column, Made

_ORDERS = ("=", "<>", "<", "<=", ">", ">=", "<=>", "==", "!=")
_NUMBERS = ("integer", "float", "decimal")
_CASTS = (
    *("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)", "decimal(20,3)", "string", "binary"),
    *("boolean", "date", "timestamp", "timestamp_ntz"),
)


@dataclass(frozen=True)
class Node:
    """A predicate: a template with ``{}`` for each child."""

    template: str
    children: tuple[Node, ...] = ()

    def __str__(self) -> str:
        if not self.children:
            return self.template
        return self.template.format(*(f"({child})" for child in self.children))

    def smaller(self) -> Iterator[Node]:
        """Return simpler predicates, the simplest first."""
        yield from self.children
        for place, child in enumerate(self.children):
            for less in child.smaller():
                yield Node(self.template, (*self.children[:place], less, *self.children[place + 1 :]))


class Generator:
    """Makes predicates on the columns of a dataset, with literals from, between and beside its values."""

    def __init__(self, made: Made, random: Random, columns: list[Column] | None = None) -> None:
        self._made = made
        self._columns = columns or made.columns
        self._random = random

    def predicate(self, depth: int = 3) -> Node:
        """Make a tree; most are shallow."""
        random = self._random
        if depth == 0 or random.random() < 0.55:
            return self.leaf()
        match random.randrange(20):
            case (0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10) as n:
                terms = self._children(depth, random.choice((2, 2, 3)))
                return Node((" AND " if n < 6 else " OR ").join(["{}"] * len(terms)), terms)
            case 11 | 12 | 13 | 14 | 15:
                return Node("NOT {}", self._children(depth, 1))
            case 16:
                return Node(random.choice(("{} = {}", "{} <=> {}", "{} <> {}", "{} < {}")), self._children(depth, 2))
            case 17:
                template = random.choice(
                    ("{} IS NULL", "{} IS NOT NULL", "coalesce({}, false)", "{} IS NOT TRUE", "{} IS FALSE")
                )
                return Node(template, self._children(depth, 1))
            case 18:
                template = random.choice(("if({}, {}, {})", "CASE WHEN {} THEN {} ELSE {} END", "coalesce({}, {}, {})"))
                return Node(template, self._children(depth, 3))
            case _:
                return Node("CASE WHEN {} THEN {} END", self._children(depth, 2))

    def _children(self, depth: int, count: int) -> tuple[Node, ...]:
        # Half of the time about one column: then the terms meet each other's bounds.
        below = self
        if self._random.random() < 0.5:
            below = Generator(self._made, self._random, [self._random.choice(self._columns)])
        return tuple(below.predicate(depth - 1) for _ in range(count))

    def leaf(self) -> Node:
        """Make a predicate without boolean parts."""
        column = self._random.choice(self._columns)
        return Node(self._leaf(column))

    def _leaf(self, column: Column) -> str:
        random, c = self._random, column.sql
        family = column.kind.family
        match random.randrange(100):
            case n if n < 34:
                return self._comparison(c, self._literal(column))
            case n if n < 46:
                return self._in(column)
            case n if n < 54:
                low, high = self._literal(column), self._literal(column)
                return f"{c} {random.choice(('', 'NOT '))}BETWEEN {low} AND {high}"
            case n if n < 61:
                form = random.choice(
                    ("IS NULL", "IS NOT NULL", "<=> NULL", f"IS DISTINCT FROM {self._literal(column)}")
                )
                return random.choice((f"{c} {form}", f"NOT ({c} {form})"))
            case n if n < 66:
                return self._foreign(column)
            case n if n < 71:
                others = [o for o in self._made.columns if o.kind.family == family and o.path != column.path]
                return self._comparison(c, random.choice(others).sql) if others else f"{c} IS NOT NULL"
            case n if n < 75:
                return self._cast(column)
            case n if n < 78:
                return self._generic(column)
        match family:
            case "string":
                return self._text(column) if random.random() < 0.75 else self._text_function(column)
            case "integer" | "decimal" | "float":
                return self._number(column)
            case "date" | "moment":
                return self._time(column)
            case "boolean":
                return random.choice(
                    (c, f"NOT {c}", f"{c} IS TRUE", f"{c} IS NOT FALSE", f"{c} IS UNKNOWN", f"{c} = TRUE")
                )
            case "binary":
                return random.choice(
                    (
                        f"length({c}) > {random.randint(0, 4)}",
                        f"startswith({c}, {self._literal(column)})",
                        f"contains({c}, {self._literal(column)})",
                        f"hex({c}) = '{self._value(column).hex().upper()}'",
                        f"substring({c}, 1, 2) = {self._literal(column)}",
                    )
                )
        return self._comparison(c, self._literal(column))

    def _comparison(self, left: str, right: str) -> str:
        order = self._random.choice(_ORDERS)
        return f"{left} {order} {right}" if self._random.random() < 0.75 else f"{right} {order} {left}"

    def _in(self, column: Column) -> str:
        random = self._random
        count = random.choice((1, 2, 3, 5, 14))
        options = [self._literal(column) for _ in range(count)]
        # Spark's own InSet calls NaN IN (…, NULL) FALSE where In calls it NULL: no oracle for that.
        if random.random() < 0.15 and (count < 10 or column.kind.family != "float"):
            options.insert(random.randrange(len(options) + 1), "NULL")
        if random.random() < 0.05:
            options.append(random.choice([o.sql for o in self._made.columns if o.kind.family == column.kind.family]))
        return f"{column.sql} {random.choice(('', '', 'NOT '))}IN ({', '.join(options)})"

    def _value(self, column: Column) -> Any:
        """Choose a value that is in the data, or beside one, or anywhere."""
        random, pool = self._random, self._made.pools[column.path]
        value = random.choice(pool)
        chance = random.random()
        if chance < 0.2 and column.kind.near is not None:
            return column.kind.near(value, random)
        return column.kind.random(random) if chance > 0.93 else value

    def _literal(self, column: Column) -> str:
        return "NULL" if self._random.random() < 0.02 else column.kind.spell(self._value(column))

    def _foreign(self, column: Column) -> str:
        """Compare with a literal of another type, so that Catalyst casts one side."""
        random, c, value = self._random, column.sql, self._value(column)
        match column.kind.family:
            case "integer":
                options = [
                    str(value),
                    f"{value}L",
                    f"{value}.0",
                    f"{value}.5D",
                    f"'{value}'",
                    f"{value}.5",
                    f"float('{value}')",
                ]
                options += ["127", "128", "32768", "2147483648", "9223372036854775808", "1e20D", "double('NaN')"]
            case "float":
                options = [
                    f"'{value}'",
                    "0.1",
                    "0.1D",
                    "float('0.1')",
                    "1",
                    "0",
                    "-0.0D",
                    "1L",
                    "16777217",
                    "0.30000001",
                ]
                options += ["double('NaN')", "1e300D", "CAST(1 AS DECIMAL(10,0))", "9007199254740993L"]
            case "decimal":
                options = [
                    f"'{value:f}'",
                    "1",
                    "1L",
                    "1.1D",
                    "0.1D",
                    f"{int(value)}",
                    "1.005",
                    "0.00001",
                    "99999999999999999999",
                ]
            case "string":
                options = [
                    "0",
                    "1",
                    "10",
                    "1L",
                    "1.0D",
                    "TRUE",
                    "DATE'2020-01-01'",
                    "X'61'",
                    "TIMESTAMP'2020-01-01 00:00:00'",
                ]
            case "date":
                options = [
                    f"'{day(value)}'",
                    f"TIMESTAMP'{day(value)} 00:00:00'",
                    f"TIMESTAMP_NTZ'{day(value)} 00:00:01'",
                ]
                options += [f"TIMESTAMP'{day(value)} 23:59:59.999999'", f"TIMESTAMP_LTZ'{day(value)} 05:00:00Z'"]
            case "moment":
                said = moment(value)
                options = [
                    f"'{said}'",
                    f"DATE'{said[:10]}'",
                    f"TIMESTAMP_NTZ'{said}'",
                    f"TIMESTAMP_LTZ'{said}'",
                    f"'{said[:10]}'",
                ]
            case "boolean":
                options = ["1", "0", "'true'", "'f'", "1.0D"]
            case "binary":
                options = ["'a'", "'ab'", "''"]
            case "months":
                options = ["INTERVAL '1' YEAR", "INTERVAL '12' MONTH", "INTERVAL '1' MONTH"]
            case "seconds":
                options = [
                    "INTERVAL '1' DAY",
                    "INTERVAL '24' HOUR",
                    "INTERVAL '1' SECOND",
                    "INTERVAL '0.000001' SECOND",
                ]
            case _:
                options = [column.kind.spell(value)]
        if random.random() < 0.25:
            return f"{c} IN ({', '.join(random.choices(options, k=2))})"
        return self._comparison(c, random.choice(options))

    def _cast(self, column: Column) -> str:
        """Compare a cast of the column."""
        random = self._random
        target = random.choice(_CASTS)
        cast = f"{random.choice(('CAST', 'CAST', 'try_cast'))}({column.sql} AS {target})"
        if target in KINDS:
            kind = KINDS[target]
            right = kind.spell(random.choice(kind.special) if random.random() < 0.5 else kind.random(random))
            if kind.family == column.kind.family:
                right = (
                    kind.spell(self._value(column)) if random.random() < 0.5 and target == column.kind.name else right
                )
        else:
            right = "1.000"
        if target == "string" and random.random() < 0.4:
            return f"{cast} LIKE {random.choice(text_patterns('12'))}"
        return self._comparison(cast, right)

    def _generic(self, column: Column) -> str:
        """Apply a function that any type takes."""
        random, c = self._random, column.sql
        one, other = self._literal(column), self._literal(column)
        return random.choice(
            (
                f"coalesce({c}, {one}) = {other}",
                f"coalesce({c}, {one}) <> {one}",
                f"nullif({c}, {one}) IS NULL",
                f"nvl2({c}, {one}, {other}) = {one}",
                f"greatest({c}, {one}) = {one}",
                f"least({c}, {one}) < {other}",
                f"if({c} = {one}, {other}, {c}) = {other}",
                f"CASE {c} WHEN {one} THEN 1 WHEN {other} THEN 2 END = 1",
                f"CASE WHEN {c} IS NULL THEN {one} ELSE {c} END = {other}",
                f"hash({c}) % 3 = 1",
                f"array_contains(array({one}, {other}), {c})",
                f"{c} = (SELECT {one})",
                f"struct({c}) = struct({one})",
                f"decode({c}, {one}, 1, {other}, 2) = 2",
                f"equal_null({c}, {one})",
                "1 = 1",
                "NULL",
                f"{c} = {c}",
                f"{c} <> {c}",
                f"{c} < {c}",
            )
        )

    def _number(self, column: Column) -> str:
        random, c, one = self._random, column.sql, self._literal(column)
        if column.kind.name == "decimal(38,10)":  # arithmetic overflows and would spoil a whole batch
            return f"sign({c}) = 1" if random.random() < 0.2 else self._comparison(c, one)
        forms = [
            f"abs({c}) = {one}",
            f"{c} + 1 > {one}",
            f"{c} - 1 = {one}",
            f"-{c} <= {one}",
            f"{c} * 2 = {one}",
            f"{c} % 3 = 1",
            f"{c} / 2 > {one}",
            f"round({c}) = {one}",
            f"floor({c}) <= {one}",
            f"sign({c}) = 1",
            f"{c} + {c} = {one}",
            f"1 - {c} < {one}",
            f"pmod({c}, 7) = 3",
        ]
        if column.kind.family == "float":
            forms += [
                f"isnan({c})",
                f"NOT isnan({c})",
                f"nanvl({c}, 0) = {one}",
                f"isnan({c} + 1)",
                f"{c} = double('NaN')",
            ] * 3
        if column.kind.family == "integer":
            forms += [f"{c} & 1 = 1", f"shiftleft({c}, 1) = {one}", f"{c} div 2 = {one}"]
        return random.choice(forms)

    def _time(self, column: Column) -> str:
        random, c, one = self._random, column.sql, self._literal(column)
        return random.choice(
            (
                f"year({c}) = {random.choice((1, 1970, 2020, 2024, 9999))}",
                f"month({c}) = {random.randint(1, 12)}",
                f"date_trunc('MONTH', {c}) = {one}",
                f"trunc({c}, 'YEAR') = {one}",
                f"CAST({c} AS DATE) = {one}",
                f"CAST({c} AS DATE) = DATE'2020-01-01'",
                f"to_date({c}) >= DATE'2020-01-02'",
                f"date_add({c}, 1) = {one}",
                f"{c} + INTERVAL '1' DAY > {one}",
                f"{c} - INTERVAL '1' MONTH < {one}",
                f"dayofweek({c}) = 1",
                f"date_format({c}, 'yyyy') = '2020'",
                f"last_day({c}) = {one}",
                f"unix_date(CAST({c} AS DATE)) < 18300",
                f"CAST({c} AS STRING) LIKE '2020%'",
            )
        )

    def _text(self, column: Column) -> str:
        """Match a pattern made of a value's pieces."""
        random, c = self._random, column.sql
        value = self._value(column)
        cut = random.randint(0, len(value))
        head, tail = value[:cut], value[cut:]
        match random.randrange(12):
            case 0 | 1 | 2 | 3:
                return f"{c} {random.choice(('', '', 'NOT '))}LIKE {random.choice(text_patterns(value))}"
            case 4:
                escaped = "".join(f"!{x}" if x in "%_!" else x for x in head)
                return f"{c} {random.choice(('', 'NOT '))}LIKE {text(escaped + '%')} ESCAPE '!'"
            case 5:
                return f"startswith({c}, {text(head)})"
            case 6:
                return f"endswith({c}, {text(tail)})"
            case 7:
                return f"contains({c}, {text(tail[:2])})"
            case 8:
                return f"NOT {random.choice(('startswith', 'endswith', 'contains'))}({c}, {text(head)})"
            case 9:
                return f"{c} ILIKE {random.choice(text_patterns(value.swapcase()))}"
            case 10:
                some = ", ".join(random.choice(text_patterns(self._value(column))) for _ in range(2))
                return f"{c} {random.choice(('', 'NOT '))}LIKE {random.choice(('ANY', 'ALL'))} ({some})"
            case _:
                return f"{c} RLIKE {text('^' + ''.join(x for x in head if x.isalnum()))}"

    def _text_function(self, column: Column) -> str:
        random, c, value = self._random, column.sql, self._value(column)
        cut = random.randint(0, 3)
        return random.choice(
            (
                f"lower({c}) = {text(value.lower())}",
                f"upper({c}) = {text(value.upper())}",
                f"lower({c}) LIKE {text(value.lower()[:2] + '%')}",
                f"substr({c}, 1, {cut}) = {text(value[:cut])}",
                f"substring({c}, 2) = {text(value[1:])}",
                f"left({c}, {cut}) = {text(value[:cut])}",
                f"right({c}, {cut}) = {text(value[-cut:] if cut else '')}",
                f"length({c}) > {len(value)}",
                f"octet_length({c}) = {len(value.encode())}",
                f"concat({c}, 'x') = {text(value + 'x')}",
                f"trim({c}) = {text(value.strip())}",
                f"{c} || {c} = {text(value + value)}",
                f"reverse({c}) = {text(value[::-1])}",
                f"instr({c}, {text(value[1:2])}) = 2",
                f"{c} COLLATE UTF8_LCASE = {text(value.swapcase())}",
                f"{c} = {text(value.swapcase())} COLLATE UTF8_LCASE",
                f"{c} COLLATE UNICODE_CI < {text(value)}",
                f"replace({c}, 'a', 'b') = {text(value)}",
                f"rpad({c}, 5, ' ') = {text(value.ljust(5)[:5])}",
                f"translate({c}, 'ab', 'ba') = {text(value)}",
            )
        )


def text_patterns(value: str) -> list[str]:
    """Return LIKE patterns, spelled for SQL, that a value matches or nearly matches."""
    half = len(value) // 2
    quoted = "".join(f"\\{x}" if x in "%_\\" else x for x in value)
    start = "".join(f"\\{x}" if x in "%_\\" else x for x in value[:half])
    end = "".join(f"\\{x}" if x in "%_\\" else x for x in value[half:])
    wild = "".join("_" if n % 2 else (f"\\{x}" if x in "%_\\" else x) for n, x in enumerate(value))
    shapes = (quoted, f"{start}%", f"%{end}", f"%{end}%", f"{start}%{end}", wild, "_" * len(value))
    return [
        text(shape)
        for shape in (*shapes, f"_%{end}", "%", "", f"{start}_{end}", value, f"{quoted}%", f"%{start}%{end}%")
    ]
