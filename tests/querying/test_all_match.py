"""Whether all rows match: ``failing`` against three-valued brute force, and through the planner's clauses."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import product
from random import Random
from typing import Any

import pytest

from skipstone import MinMaxIndex
from skipstone.expressions.normalize import ALWAYS
from skipstone.expressions.tree import (
    And,
    Call,
    Cast,
    Column,
    EqualNullSafe,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Literal,
    Not,
    NotEqualTo,
    NotIn,
    Or,
    StartsWith,
)
from skipstone.querying.all_match import failing
from skipstone.querying.clause import NeverClause
from skipstone.querying.filter import Filter
from skipstone.querying.generate_clause import generate_clause

X, Y, S = Column("x", "double"), Column("y", "double"), Column("s", "string")
VALUES = (None, math.nan, -0.0, 1.0, 2.0)
TEXTS = (None, "", "ab", "b")
_ORDERS = {
    EqualTo: lambda a, b: a == b,
    NotEqualTo: lambda a, b: a != b,
    LessThan: lambda a, b: a < b,
    LessThanOrEqual: lambda a, b: a <= b,
    GreaterThan: lambda a, b: a > b,
    GreaterThanOrEqual: lambda a, b: a >= b,
}


def _key(value: Any) -> Any:
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


def truth(vertex: Expression, row: dict[str, Any]) -> Any:
    """Evaluate as Spark does: None is NULL, NaN is the greatest number and equals itself."""
    match vertex:
        case Column(name):
            return row[name]
        case Literal(value):
            return value
        case And(terms):
            found = [truth(t, row) for t in terms]
            return False if False in found else (None if None in found else True)
        case Or(terms):
            found = [truth(t, row) for t in terms]
            return True if True in found else (None if None in found else False)
        case Not(child):
            value = truth(child, row)
            return None if value is None else not value
        case IsNull(value):
            return truth(value, row) is None
        case IsNotNull(value):
            return truth(value, row) is not None
        case IsNaN(value):
            found = truth(value, row)
            return found is not None and math.isnan(found)
        case EqualNullSafe(left, right):
            a, b = truth(left, row), truth(right, row)
            return a is b if a is None or b is None else _key(a) == _key(b)
        case In(value, options) | NotIn(value, options):
            a = truth(value, row)
            others = [truth(o, row) for o in options]
            if a is None:
                return None
            inside = any(o is not None and _key(o) == _key(a) for o in others) or (None if None in others else False)
            return inside if isinstance(vertex, In) else (None if inside is None else not inside)
        case StartsWith(value, prefix):
            a, b = truth(value, row), truth(prefix, row)
            return None if a is None or b is None else a.startswith(b)
        case Call(_, (argument,)):  # a user's function: NULL for 1, FALSE for NULL
            a = truth(argument, row)
            return None if a == 1.0 else a is not None
    a, b = truth(vertex.children[0], row), truth(vertex.children[1], row)
    return None if a is None or b is None else _ORDERS[type(vertex)](_key(a), _key(b))


def _leaf(random: Random) -> Expression:
    column = random.choice((X, Y))
    value = Literal(random.choice(VALUES), "double")
    other = random.choice((value, value, value, X, Y))
    return random.choice(
        (
            random.choice(tuple(_ORDERS))(column, other),
            random.choice(tuple(_ORDERS))(value, column),
            EqualNullSafe(column, other),
            IsNull(column),
            IsNotNull(column),
            IsNaN(column),
            In(column, (Literal(1.0, "double"), value)),
            NotIn(column, (Literal(1.0, "double"), value)),
            StartsWith(S, Literal("a", "string")),
            Call("f", (column,), "boolean", "python"),
            EqualTo(Call("f", (column,), "boolean", "python"), Literal(value=True, type="boolean")),
        )
    )


def _tree(random: Random, depth: int = 3) -> Expression:
    if depth == 0 or random.random() < 0.3:
        return _leaf(random)
    match random.randrange(3):
        case 0:
            return And(tuple(_tree(random, depth - 1) for _ in range(2)))
        case 1:
            return Or(tuple(_tree(random, depth - 1) for _ in range(2)))
        case _:
            return Not(_tree(random, depth - 1))


def test_a_row_fails_exactly_where_the_predicate_is_not_true():
    random = Random(7)
    rows = [dict(zip("xys", values, strict=True)) for values in product(VALUES, VALUES, TEXTS)]
    told = 0
    for _ in range(500):
        predicate = _tree(random)
        fails = failing(predicate)
        for row in rows:
            is_true, fails_here = truth(predicate, row) is True, truth(fails, row) is True
            assert is_true or fails_here, f"{predicate} | {fails} | {row}"
            if not any(v == 0.0 or v != v for v in (row["x"], row["y"]) if v is not None):  # of these see below
                assert fails_here == (not is_true), f"{predicate} | {fails} | {row}"
            told += is_true and not fails_here
    assert told > 1_000


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("type_", ["double", "float"])
def test_a_reader_may_leave_out_the_zero_of_the_other_sign(zero, type_):
    x, literal = Column("x", type_), Literal(zero, type_)
    equal = [EqualTo(x, literal), EqualNullSafe(literal, x), In(x, (Literal(1.0, type_), literal))]
    for predicate in (*equal, LessThanOrEqual(x, literal), Not(LessThan(x, literal))):
        assert truth(failing(predicate), {"x": -zero}) is True
    for predicate in (
        LessThan(x, Literal(1.0, type_)),
        NotEqualTo(x, Literal(1.0, type_)),
        NotIn(x, (Literal(1.0, type_),)),
    ):
        assert truth(failing(predicate), {"x": -zero}) is False
    # What another part of the query's filter lets pass is handed on.
    assert truth(failing(Or((EqualTo(x, literal), EqualTo(S, Literal("a", "string"))))), {"x": zero, "s": "a"}) is False


@pytest.mark.parametrize("type_", ["double", "float"])
def test_a_reader_may_leave_out_the_nan_of_other_bits(type_):
    """Parquet's Bloom filters know numbers by their bits."""
    x, nan, one = Column("x", type_), Literal(math.nan, type_), Literal(1.0, type_)
    for predicate in (EqualTo(x, nan), EqualNullSafe(nan, x), In(x, (one, nan)), Not(NotEqualTo(x, nan))):
        assert truth(predicate, {"x": math.nan}) is truth(failing(predicate), {"x": math.nan}) is True
    assert truth(failing(In(x, (one, nan))), {"x": 1.0}) is False
    others = (IsNaN(x), GreaterThanOrEqual(x, nan), LessThanOrEqual(x, nan), GreaterThan(x, one), NotEqualTo(x, one))
    for predicate in (*others, NotIn(x, (one, Literal(2.0, type_))), Or((EqualTo(x, nan), IsNaN(x)))):
        assert truth(failing(predicate), {"x": math.nan}) is False


@pytest.mark.parametrize(
    ("text", "is_known"),
    [("", True), ("a\ud7ff", True), ("\ue000", False), ("a\uff00b", False), ("\U0001f600", False)],
)
def test_a_reader_may_order_text_by_utf_16(text, is_known):
    """So does that of ORC, in which U+1F600 is less than U+FF00."""
    literal, other = Literal(text, "string"), Literal("b", "string")
    compared = (LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual, EqualTo)
    for predicate in (*(of(S, literal) for of in compared), EqualNullSafe(S, literal), In(S, (other, literal))):
        assert (failing(predicate) != ALWAYS) is is_known
    for predicate in (NotEqualTo(S, literal), NotIn(S, (other, literal)), StartsWith(S, literal)):
        assert failing(predicate) != ALWAYS


@pytest.mark.parametrize(
    ("type_", "moment", "modern"),
    [
        ("date", -141_432, -141_400),  # 1582-10-10
        ("date", -171_605, -141_427),  # 1500-03-01, 1582-10-15
        ("timestamp", -141_432 * 86_400_000_000, 0),
        ("timestamp_ntz", -2_209_000_000_000_000, 0),  # 1899
    ],
)
def test_a_reader_may_take_old_days_for_others(type_, moment, modern):
    t, literal, day = Column("t", type_), Literal(moment, type_), 1 if type_ == "date" else 86_400_000_000
    other = Literal(modern, type_)
    for predicate in (GreaterThan(t, literal), GreaterThanOrEqual(t, literal), NotEqualTo(t, literal)):
        assert truth(predicate, {"t": moment + 10 * day}) is truth(failing(predicate), {"t": moment + 10 * day}) is True
        assert truth(failing(predicate), {"t": moment + 20 * day}) is False
    for predicate in (In(t, (other, literal)), EqualTo(t, literal), EqualNullSafe(t, literal)):
        assert truth(failing(predicate), {"t": moment}) is True
    assert truth(failing(NotIn(t, (other, literal))), {"t": moment + day}) is True
    assert truth(failing(In(t, (other, literal))), {"t": modern}) is False
    assert truth(failing(GreaterThan(t, other)), {"t": modern + day}) is False


@pytest.mark.parametrize("moment", [1_000_500, -999_500])
def test_a_reader_of_milliseconds_may_cut_a_timestamp(moment):
    t, literal, cut = Column("t", "timestamp"), Literal(moment, "timestamp"), moment // 1000 * 1000
    other = Literal(5_000_000, "timestamp")
    for predicate in (
        LessThan(t, literal),
        NotEqualTo(t, literal),
        NotIn(t, (other, literal)),
        Not(GreaterThanOrEqual(t, literal)),
    ):
        assert truth(predicate, {"t": cut}) is truth(failing(predicate), {"t": cut}) is True
        assert truth(failing(predicate), {"t": cut - 1000}) is False
    for predicate in (GreaterThan(t, literal), GreaterThanOrEqual(t, literal)):
        assert truth(failing(predicate), {"t": cut}) is True
        assert truth(failing(predicate), {"t": cut + 1000}) is False
    assert truth(failing(LessThan(t, other)), {"t": cut}) is False


@pytest.mark.parametrize("type_", ["tinyint", "smallint"])
def test_a_reader_may_compare_wider_integers(type_):
    x, one = Column("x", type_), Literal(1, type_)
    narrowed = (
        LessThan(x, one),
        EqualTo(x, one),
        EqualNullSafe(x, one),
        NotEqualTo(x, one),
        In(x, (one,)),
        NotIn(x, (one,)),
    )
    others = (Not(LessThan(x, one)), Not(EqualTo(x, one)), LessThan(Cast(x, "int"), Literal(1, "int")))
    for predicate in (*narrowed, *others):
        assert failing(predicate) == ALWAYS
    assert failing(IsNotNull(x)) == IsNull(x)
    assert failing(IsNull(x)) == IsNotNull(x)


@pytest.mark.parametrize(
    ("value", "type_", "is_known"),
    [
        ("21474836.47", "decimal(20,2)", True),
        ("21474836.48", "decimal(20,2)", False),
        ("-21474836.48", "decimal(20, 2)", False),
        ("2147483647", "decimal(38,0)", True),
        ("9" * 38, "decimal(38,0)", False),
        ("0." + "9" * 38, "decimal(38,38)", False),
    ],
)
def test_a_reader_may_cut_the_digits_of_a_decimal(value, type_, is_known):
    x, literal = Column("x", type_), Literal(Decimal(value), type_)
    for predicate in (LessThan(x, literal), Not(EqualTo(literal, x)), NotIn(x, (Literal(Decimal(0), type_), literal))):
        assert (failing(predicate) != ALWAYS) is is_known


def test_nothing_is_said_of_what_changes_its_mind():
    draw = Call("rand", (), "double", deterministic=False)
    assert failing(GreaterThan(draw, Literal(0.5, "double"))) == ALWAYS
    known = GreaterThan(X, Literal(1.0, "double"))
    assert failing(And((known, GreaterThan(draw, Literal(0.5, "double"))))) == ALWAYS
    # All rows match an OR of which all match one side.
    assert str(failing(Or((known, GreaterThan(draw, Literal(0.5, "double")))))) == "(x <= 1.0) OR (x IS NULL)"


class _Teens(Filter):
    """A plug-in's filter, which knows an object of teens only: no row fails."""

    def __init__(self, *served: str) -> None:
        self.index = MinMaxIndex("age")
        self.served = served

    def label_node(self, node: Expression) -> Any:
        return NeverClause() if str(node) in self.served else None


@pytest.mark.parametrize(
    ("served", "known"),
    [
        (("NOT (is_teen(age))",), False),
        (("is_teen(age) IS NULL",), False),
        (("NOT (is_teen(age))", "is_teen(age) IS NULL"), True),
        (("(NOT (is_teen(age))) OR (is_teen(age) IS NULL)",), True),
    ],
)
def test_an_index_declares_that_all_rows_match_a_function(served, known):
    predicate = Call("is_teen", (Column("age", "int"),), "boolean", "python")
    assert (generate_clause(failing(predicate), [_Teens(*served)]).clause is not None) is known
