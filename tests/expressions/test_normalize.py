import math

import pytest
from hypothesis import Phase, given, settings
from tests.effort import instructions
from tests.expressions.depth import DEEPEST
from tests.expressions.three_valued import evaluate, predicates, rows, small_predicates

from skipstone.expressions import normalize as normalize_module
from skipstone.expressions import rules
from skipstone.expressions.normalize import ALWAYS, NEVER, normalize
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
    Like,
    Literal,
    Not,
    NotEqualTo,
    NotIn,
    Or,
    StartsWith,
)

x, y, d = Column("x", "int"), Column("y", "int"), Column("d", "double")
s, flag = Column("s", "string"), Column("flag", "boolean")
lower = Column("lower", "string collate UTF8_LCASE")
f = Call("f", (x,), "boolean")
null = Literal(None, "int")


def i(value):
    return Literal(value, "int")


def a(text):
    return Literal(text, "string")


TRUE, FALSE, UNKNOWN = Literal(True, "boolean"), Literal(False, "boolean"), Literal(None, "boolean")

PAIRS = [
    # literal on the right
    (LessThan(i(3), x), "x > 3"),
    (GreaterThanOrEqual(i(3), x), "x <= 3"),
    (EqualTo(i(3), x), "x = 3"),
    (LessThan(x, y), "x < y"),
    # NOT at the leaves
    (Not(LessThan(x, i(3))), "x >= 3"),
    (Not(LessThanOrEqual(i(3), x)), "x < 3"),
    (Not(EqualTo(x, i(3))), "x <> 3"),
    (Not(NotEqualTo(x, i(3))), "x = 3"),
    (Not(Not(EqualTo(x, i(3)))), "x = 3"),
    (Not(And((EqualTo(x, i(3)), IsNull(y)))), "(x <> 3) OR (y IS NOT NULL)"),
    (Not(Or((EqualTo(x, i(3)), f))), "(x <> 3) AND (NOT (f(x)))"),
    (Not(Or((And((f, flag)), Not(IsNull(x))))), "((NOT (f(x))) OR (flag = False)) AND (x IS NULL)"),
    (Not(In(x, (i(1), i(2)))), "x NOT IN (1, 2)"),
    (Not(NotIn(x, (i(1), i(2)))), "x IN (1, 2)"),
    (Not(IsNull(x)), "x IS NOT NULL"),
    (Not(IsNotNull(x)), "x IS NULL"),
    (Not(IsNaN(d)), "NOT (isnan(d))"),
    (Not(Like(s, a("a_b"))), "NOT (s LIKE 'a_b')"),
    (Not(StartsWith(s, a("a"))), "NOT (startswith(s, 'a'))"),
    # flat and without duplicates
    (And((And((flag, f)), And((f, IsNull(x))))), "(flag = True) AND (f(x)) AND (x IS NULL)"),
    (Or((EqualTo(x, i(1)), Or((EqualTo(i(1), x), Not(NotEqualTo(x, i(1))))))), "x = 1"),
    (Or((EqualTo(s, a("1")), EqualTo(s, a("2")))), "(s = '1') OR (s = '2')"),
    # NULL literals
    (EqualTo(x, null), "False"),
    (Not(EqualTo(x, null)), "False"),
    (LessThan(null, x), "False"),
    (EqualNullSafe(x, null), "x IS NULL"),
    (EqualNullSafe(null, x), "x IS NULL"),
    (Not(EqualNullSafe(x, null)), "x IS NOT NULL"),
    (Not(EqualNullSafe(null, x)), "x IS NOT NULL"),
    (EqualNullSafe(x, i(3)), "x = 3"),
    (Not(EqualNullSafe(i(3), x)), "(x IS NULL) OR (x <> 3)"),
    (EqualNullSafe(x, y), "x <=> y"),
    (Not(EqualNullSafe(x, y)), "NOT (x <=> y)"),
    (Like(s, Literal(None, "string")), "False"),
    (Not(Like(s, Literal(None, "string"))), "False"),
    (StartsWith(Literal(None, "string"), s), "False"),
    (IsNull(null), "True"),
    (IsNotNull(null), "False"),
    (Not(UNKNOWN), "False"),
    # IN
    (In(x, (i(1), i(2), i(1))), "x IN (1, 2)"),
    (In(x, (i(1), null)), "x = 1"),
    (In(x, (null,)), "False"),
    (In(x, ()), "False"),
    (In(null, (i(1),)), "False"),
    (In(x, (i(1), i(2), y)), "(x IN (1, 2)) OR (x = y)"),
    (In(x, (i(1), y)), "(x = 1) OR (x = y)"),
    (In(x, (y,)), "x = y"),
    (NotIn(x, (i(1), i(2), i(2))), "x NOT IN (1, 2)"),
    (NotIn(x, (i(1), null)), "False"),
    (NotIn(x, (i(1),)), "x <> 1"),
    (NotIn(x, ()), "True"),
    (Not(In(x, (i(1), i(2), y))), "(x NOT IN (1, 2)) AND (x <> y)"),
    (In(d, (Literal(-0.0, "double"), Literal(0.0, "double"))), "d = 0.0"),
    (In(d, (Literal(float("nan"), "double"), Literal(float("nan"), "double"))), "d = nan"),
    (In(d, (Literal(1.0, "double"), Literal(-0.0, "double"))), "d IN (1.0, 0.0)"),
    # booleans
    (flag, "flag = True"),
    (Not(flag), "flag = False"),
    (NotEqualTo(flag, TRUE), "flag = False"),
    (EqualNullSafe(flag, FALSE), "flag = False"),
    (EqualTo(f, TRUE), "f(x)"),
    (EqualTo(FALSE, f), "NOT (f(x))"),
    (NotEqualTo(LessThan(x, i(3)), FALSE), "x < 3"),
    (EqualTo(And((flag, f)), FALSE), "(flag = False) OR (NOT (f(x)))"),
    # constants
    (And((flag, TRUE)), "flag = True"),
    (And((flag, UNKNOWN)), "False"),
    (Or((flag, FALSE, UNKNOWN)), "flag = True"),
    (Or((flag, TRUE)), "True"),
    (Or((FALSE, EqualTo(x, null))), "False"),
    (Not(And((flag, UNKNOWN))), "flag = False"),
    (And((TRUE, Or((f, And((FALSE, flag)))))), "f(x)"),
    # zero
    (EqualTo(d, Literal(-0.0, "double")), "d = 0.0"),
    (LessThan(Literal(-0.0, "double"), d), "d > 0.0"),
    (EqualTo(Column("l", "array<double>"), Literal((1.0, -0.0), "array<double>")), "l = array(1.0, 0.0)"),
    (EqualTo(Call("g", (d, Literal(-0.0, "double")), "int"), i(1)), "g(d, -0.0) = 1"),
    # what binary metadata cannot serve
    (EqualTo(x, Literal(3, "bigint")), "<EqualTo>(x, 3)"),
    (Not(LessThan(x, Literal(3, "bigint"))), "<GreaterThanOrEqual>(x, 3)"),
    (In(x, (i(1), Literal(2, "bigint"))), "<In>(x, 1, 2)"),
    (Not(In(x, (i(1), Literal(2, "bigint")))), "NOT (<In>(x, 1, 2))"),
    (Not(EqualNullSafe(x, Literal(2, "bigint"))), "NOT (<EqualNullSafe>(x, 2))"),
    (EqualTo(lower, Literal("a", "string collate UTF8_LCASE")), "<EqualTo>(lower, 'a')"),
    (In(lower, (Literal("a", "string collate UTF8_LCASE"),)), "<In>(lower, 'a')"),
    (StartsWith(lower, Literal("a", "string collate UTF8_LCASE")), "<StartsWith>(lower, 'a')"),
    (Not(Like(lower, Literal("a", "string collate UTF8_LCASE"))), "NOT (<Like>(lower, 'a'))"),
    (IsNull(lower), "lower IS NULL"),
    (EqualTo(Cast(x, "bigint"), Literal(3, "bigint")), "cast(x as bigint) = 3"),
    # not in a positive position: left alone
    (IsNull(EqualNullSafe(x, i(3))), "x <=> 3 IS NULL"),
    (Call("coalesce", (EqualTo(i(1), x), TRUE), "boolean"), "coalesce(1 = x, True)"),
]


@pytest.mark.parametrize(("given_", "expected"), PAIRS, ids=[f"{e} => {text}" for e, text in PAIRS])
def test_canonical_form(given_, expected):
    result = normalize(given_)
    assert str(result) == expected
    assert str(normalize(result)) == expected


def test_true_is_not_one():
    e = Or((EqualTo(Column("u"), Literal(True)), EqualTo(Column("u"), Literal(1)), EqualTo(Column("u"), Literal(1.0))))
    assert len(normalize(e).terms) == 3
    assert len(normalize(In(Column("u"), (Literal(True), Literal(1), Literal(0), Literal(False)))).options) == 4


def test_zero_keeps_its_sign_where_nothing_is_compared_to_it():
    assert math.copysign(1, normalize(EqualTo(d, Literal(-0.0, "double"))).right.value) == 1
    options = normalize(In(d, (Literal(-0.0, "double"), Literal(1.0, "double")))).options
    assert math.copysign(1, options[0].value) == 1
    argument = normalize(Call("g", (Literal(-0.0, "double"),), "boolean")).arguments[0]
    assert math.copysign(1, argument.value) == -1


def test_two_draws_of_a_random_function_are_two_terms():
    e = Or(tuple(LessThan(Call("rand", (), "double", deterministic=False), Literal(0.5, "double")) for _ in range(2)))
    assert len(normalize(e).terms) == 2


def test_functions_that_differ_only_in_their_definition_are_two_terms():
    assert len(normalize(Or((Call("f", (x,), identity="1"), Call("f", (x,), identity="2")))).terms) == 2


def check_same_rows(e, sample):
    result = normalize(e)
    for row in sample:
        before, after = evaluate(e, row), evaluate(result, row)
        assert (before is True) == (after is True), f"{e} is {before}, {result} is {after} for {row}"


@settings(max_examples=800, deadline=None)
@given(predicates(), rows())
def test_normalisation_keeps_exactly_the_rows_that_are_true(e, sample):
    check_same_rows(e, sample)


def _is_canonical(e: Expression) -> bool:
    waiting = [(e, None)]
    while waiting:
        node, parent = waiting.pop()
        match node:
            case And(terms) | Or(terms):
                if len(terms) < 2 or type(node) is parent:
                    return False
                waiting.extend((t, type(node)) for t in terms)
            case Not(And() | Or() | Not() | In() | NotIn() | IsNull() | IsNotNull() | Literal() | Column()):
                return False
            case Not(EqualTo() | NotEqualTo() | LessThan() | GreaterThan()):
                return False
            case Literal():
                return parent is None and node in (ALWAYS, NEVER)
            case Column():
                return False
            case In(_, options) | NotIn(_, options):
                if len(options) < 2 or any(not isinstance(o, Literal) or o.value is None for o in options):
                    return False
            case EqualTo(Literal(), right) | LessThan(Literal(), right) if not isinstance(right, Literal):
                return False
    return True


@settings(max_examples=300, deadline=None)
@given(predicates())
def test_the_result_is_canonical_and_normalising_again_changes_nothing(e):
    result = normalize(e)
    assert _is_canonical(result), str(result)
    assert str(normalize(result)) == str(result)


def assert_caught():
    """Assert that the property fails; the example need not be a small one."""

    @settings(max_examples=5000, deadline=None, database=None, derandomize=True, phases=[Phase.generate])
    @given(small_predicates(), rows())
    def search(e, sample):
        check_same_rows(e, sample)

    with pytest.raises(AssertionError):
        search()


def _ieee_mirror(vertex):
    """A wrong rule: NOT x < v is x > v."""
    match vertex.child:
        case LessThan(left, right):
            return GreaterThan(left, right)
    return rules.push_not(vertex)


def _no_de_morgan(vertex):
    match vertex.child:
        case And(terms):
            return And(tuple(map(Not, terms)))
    return rules.push_not(vertex)


def _not_in_drops_null(vertex):
    options = tuple(o for o in vertex.options if o != Literal(None, o.type))
    return NotIn(vertex.value, options) if len(options) < len(vertex.options) else None


MUTATIONS = {
    "NOT < is >": (Not, (_ieee_mirror, rules.settle_under_not)),
    "NOT AND is AND": (Not, (_no_de_morgan, rules.settle_under_not)),
    "NOT IN drops NULL": (NotIn, (_not_in_drops_null, rules.not_in_options)),
    "<=> NULL never holds": (EqualNullSafe, (rules.literal_on_the_right, rules.null_compares_to_nothing)),
    "NOT <=> forgets NULL": (
        Not,
        (rules.push_not, lambda v: NotEqualTo(v.child.left, v.child.right) if type(v.child) is EqualNullSafe else None),
    ),
    "NULL is TRUE": (Literal, (lambda v: None if v in (ALWAYS, NEVER) else ALWAYS,)),
    "literal moved without turning": (
        LessThan,
        (lambda v: LessThan(v.right, v.left) if type(v.left) is Literal and type(v.right) is Column else None,),
    ),
    "column alone is IS NOT NULL": (Column, (IsNotNull,)),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_property_catches_a_broken_rule(name, monkeypatch):
    vertex_type, broken = MUTATIONS[name]
    monkeypatch.setitem(rules.RULES, vertex_type, broken)

    assert_caught()


def test_folding_the_wrong_constant_is_caught(monkeypatch):
    monkeypatch.setattr(normalize_module, "NEVER", ALWAYS)

    assert_caught()


def alternating(depth):
    e = EqualTo(x, i(-1))
    for level in range(depth):
        e = Not(And((Or((e, EqualTo(x, i(level)))), GreaterThan(y, i(level)))))
    return e


def test_trees_as_deep_as_the_bridge_lets_them_be():
    assert str(normalize(alternating(DEEPEST // 3))).count("=") >= DEEPEST // 3
    e = x
    for _ in range(DEEPEST):
        e = Call("add", (e, x), "int")
    assert len(normalize(Or((EqualTo(e, i(1)), EqualTo(e, i(2)), EqualTo(e, i(1))))).terms) == 2


def _left_deep(terms):
    e = terms[0]
    for term in terms[1:]:
        e = Or((e, term))
    return e


@pytest.mark.parametrize("make", [lambda terms: Or(tuple(terms)), _left_deep])
def test_wide_trees_take_linear_time(make):
    few, many = (make([EqualTo(x, i(n % (size - 100))) for n in range(size)]) for size in (600, 2400))
    assert len(normalize(many).terms) == 2300
    assert instructions(lambda: normalize(many)) < 4.5 * instructions(lambda: normalize(few))


def test_guards_that_a_predicate_implies_are_dropped():
    x, s = Column("x", "int"), Column("s", "string")
    three = Literal(3, "int")
    assert normalize(And((IsNotNull(x), EqualTo(x, three)))) == EqualTo(x, three)
    assert normalize(And((IsNotNull(x), NotEqualTo(x, three)))) == NotEqualTo(x, three)
    other = And((IsNotNull(s), EqualTo(x, three)))
    assert normalize(other) == other
    safe = And((IsNotNull(x), EqualNullSafe(x, Column("y", "int"))))
    assert normalize(safe) == safe
    inside = And((IsNotNull(x), Or((EqualTo(x, three), IsNull(s)))))
    assert normalize(inside) == inside
