"""Spark's three-valued logic in plain Python: the truth that normalisation and merging are held against.

Rows are mappings from column names to values; ``None`` is NULL and UNKNOWN.  Floats follow Spark: NaN equals itself and
is greater than every other number, and -0.0 equals 0.0.
"""

import math
import random

from hypothesis import strategies as st

from skipstone.expressions.tree import (
    And,
    Call,
    Cast,
    Column,
    Contains,
    EndsWith,
    EqualNullSafe,
    EqualTo,
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

EQUALITIES = (EqualTo, NotEqualTo, EqualNullSafe)
ORDERINGS = (EqualTo, NotEqualTo, LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual)


def rank(value):
    """Make values of one type comparable in Spark's order."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def kleene_not(a):
    return None if a is None else not a


def kleene_and(values):
    values = list(values)
    if any(v is False for v in values):
        return False
    return None if any(v is None for v in values) else True


def kleene_or(values):
    return kleene_not(kleene_and(map(kleene_not, values)))


def equals(left, right):
    return None if left is None or right is None else rank(left) == rank(right)


def evaluate(e, row):
    """Evaluate an expression for one row."""
    match e:
        case Literal(value):
            return value
        case Column(name):
            return row[name]
        case And(terms):
            return kleene_and([evaluate(t, row) for t in terms])
        case Or(terms):
            return kleene_or([evaluate(t, row) for t in terms])
        case Not(child):
            return kleene_not(evaluate(child, row))
        case EqualNullSafe(left, right):
            a, b = evaluate(left, row), evaluate(right, row)
            return (a is None) == (b is None) if a is None or b is None else equals(a, b)
        case In(value, options):
            return kleene_or([equals(evaluate(value, row), evaluate(o, row)) for o in options])
        case NotIn(value, options):
            return kleene_not(kleene_or([equals(evaluate(value, row), evaluate(o, row)) for o in options]))
        case IsNull(value):
            return evaluate(value, row) is None
        case IsNotNull(value):
            return evaluate(value, row) is not None
        case IsNaN(value):
            found = evaluate(value, row)
            return isinstance(found, float) and math.isnan(found)
        case StartsWith(a, b) | EndsWith(a, b) | Contains(a, b):
            text, part = evaluate(a, row), evaluate(b, row)
            if text is None or part is None:
                return None
            return {StartsWith: text.startswith, EndsWith: text.endswith, Contains: lambda p: p in text}[type(e)](part)
        case Cast(child):
            return evaluate(child, row)
        case Call("is_odd", (argument,)):
            number = evaluate(argument, row)
            return None if number is None else number % 2 == 1
        case Call("<EqualTo>" | "<NotEqualTo>" | "<LessThan>" | "<GreaterThanOrEqual>" as name, (left, right)):
            return evaluate({f"<{c.__name__}>": c for c in ORDERINGS}[name](left, right), row)
        case Call("<EqualNullSafe>", (left, right)):
            return evaluate(EqualNullSafe(left, right), row)
    left, right = evaluate(e.left, row), evaluate(e.right, row)
    if left is None or right is None:
        return None
    a, b = rank(left), rank(right)
    return {
        EqualTo: a == b,
        NotEqualTo: a != b,
        LessThan: a < b,
        LessThanOrEqual: a <= b,
        GreaterThan: a > b,
        GreaterThanOrEqual: a >= b,
    }[type(e)]


VALUES = {
    "int": (None, 0, 1, 2),
    "double": (None, -0.0, 0.0, 1.0, math.nan, math.inf, -math.inf),
    "string": (None, "", "a", "ab", "b"),
    "boolean": (None, True, False),
}
COLUMNS = {
    "int": (Column("i", "int"), Column("j", "int")),
    "double": (Column("d", "double"),),
    "string": (Column("s", "string"), Column("t", "string")),
    "boolean": (Column("p", "boolean"), Column("q", "boolean")),
}


def rows(count=20):
    """Random rows over all columns: one draw for all of them, since a hundred would be most of a test's time."""

    def made(seed):
        choose = random.Random(seed).choice
        return [{c.name: choose(VALUES[t]) for t, cs in COLUMNS.items() for c in cs} for _ in range(count)]

    return st.integers(0, 2**32).map(made)


@st.composite
def leaves(draw):
    """Random predicates without AND, OR and NOT."""
    spark_type = draw(st.sampled_from(sorted(VALUES)))
    operand = st.one_of(
        st.sampled_from(COLUMNS[spark_type]),
        st.sampled_from([Literal(v, spark_type) for v in VALUES[spark_type]]),
    )
    kinds = ["compare", "compare", "nullsafe", "in", "notin", "isnull", "isnotnull", "constant"]
    kinds += {"string": ["match"], "double": ["isnan"], "int": ["call"], "boolean": ["flag", "flag"]}[spark_type]
    match draw(st.sampled_from(kinds)):
        case "compare":
            return draw(st.sampled_from(ORDERINGS))(draw(operand), draw(operand))
        case "nullsafe":
            return EqualNullSafe(draw(operand), draw(operand))
        case "in":
            return In(draw(operand), tuple(draw(st.lists(operand, max_size=4))))
        case "notin":
            return NotIn(draw(operand), tuple(draw(st.lists(operand, max_size=4))))
        case "isnull":
            return IsNull(draw(operand))
        case "isnotnull":
            return IsNotNull(draw(operand))
        case "match":
            return draw(st.sampled_from((StartsWith, EndsWith, Contains)))(draw(operand), draw(operand))
        case "isnan":
            return IsNaN(draw(operand))
        case "call":
            call = Call("is_odd", (draw(operand),), "boolean")
            return draw(st.sampled_from((call, EqualTo(call, Literal(True, "boolean")))))
        case "flag":
            return draw(operand)
    return Literal(draw(st.sampled_from((True, False, None))), "boolean")


def _connected(children):
    several = st.lists(children, min_size=2, max_size=3).map(tuple)
    truth = st.sampled_from([Literal(v, "boolean") for v in (True, False, None)])
    return st.one_of(
        several.map(And),
        several.map(Or),
        children.map(Not),
        st.tuples(st.sampled_from((EqualTo, NotEqualTo, EqualNullSafe)), children, truth).map(
            lambda x: x[0](x[1], x[2])
        ),
        children.map(IsNull),
    )


def predicates(max_leaves=8):
    """Random predicates."""
    return st.recursive(leaves(), _connected, max_leaves=max_leaves)


def small_predicates():
    """Single leaves and the smallest trees around them: the quickest way to meet every rule."""
    pairs = st.tuples(leaves(), leaves())
    simple = st.one_of(leaves(), pairs.map(And), pairs.map(Or))
    return st.one_of(leaves(), simple, simple.map(Not))
