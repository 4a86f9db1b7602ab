from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from tests.effort import instructions
from tests.expressions.depth import DEEPEST
from tests.querying.stubs import Known

from skipstone.expressions.tree import (
    And,
    Call,
    Column,
    EqualTo,
    GreaterThan,
    In,
    LessThan,
    Literal,
    Not,
    NotEqualTo,
    Or,
    StartsWith,
)
from skipstone.querying.filter import Filter
from skipstone.querying.generate_clause import generate_clause

x, y, s = Column("x", "int"), Column("y", "int"), Column("s", "string")
rand = Call("rand", (), "double", deterministic=False)
drawn = LessThan(rand, Literal(0.5, "double"))


def i(value):
    return Literal(value, "int")


def index(name):
    return SimpleNamespace(name=name)


@dataclass(frozen=True)
class Asked(Filter):
    """Answers as its function does, and notes what it was shown."""

    index: object
    answer: object = None
    shown: object = None

    def label_node(self, node):
        if self.shown is not None:
            self.shown.append(str(node))
        return self.answer(node) if self.answer else None


def equalities(name, shown=None):
    def answer(node):
        match node:
            case EqualTo(Column(column), Literal(value)):
                return Known((), Known((), None, f"{name}({column}<>{value})"), f"{name}({column}={value})")

    return Asked(index(name), answer, shown)


def test_every_boolean_vertex_is_shown_in_canonical_form():
    shown = []
    tree = Or((Not(And((EqualTo(i(1), x), StartsWith(s, Literal("a", "string"))))), In(x, (i(1), i(2)))))
    labelled = generate_clause(tree, [Asked(index("i"), None, shown)])
    assert sorted(shown) == sorted(
        [
            "(x <> 1) OR (NOT (startswith(s, 'a'))) OR (x IN (1, 2))",
            "x <> 1",
            "NOT (startswith(s, 'a'))",
            "startswith(s, 'a')",
            "x IN (1, 2)",
        ]
    )
    assert labelled.clause is None
    assert not labelled.labels
    assert str(labelled.tree) == "(x <> 1) OR (NOT (startswith(s, 'a'))) OR (x IN (1, 2))"


def test_labels_of_several_filters_are_merged():
    labelled = generate_clause(
        And((EqualTo(x, i(1)), Or((EqualTo(y, i(2)), EqualTo(x, i(3)))))), [equalities("a"), equalities("b")]
    )
    assert str(labelled.clause) == "a(x=1) AND b(x=1) AND ((a(y=2) AND b(y=2)) OR (a(x=3) AND b(x=3)))"
    assert [str(c) for c in labelled.labels[labelled.tree.terms[0]]] == ["a(x=1)", "b(x=1)"]
    assert labelled.problems == ()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (lambda node: None, "None"),
        (lambda node: Known((), None, "C"), "C"),
        (lambda node: [Known((), None, "C"), Known((), None, "D")], "C AND D"),
        (lambda node: (Known((), None, n) for n in "CD"), "C AND D"),
        (lambda node: (), "None"),
    ],
)
def test_what_label_node_may_give(answer, expected):
    labelled = generate_clause(EqualTo(x, i(1)), [Asked(index("i"), answer)])
    assert str(labelled.clause) == expected
    assert labelled.problems == ()


def _raise(error):
    raise error


def _late(node):
    yield Known((), None, "early")
    raise KeyError("late")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda node: _raise(RuntimeError("broken")), "RuntimeError: broken"),
        (_late, "KeyError: 'late'"),
        (lambda node: "text", "TypeError: label_node gave str"),
        (lambda node: 17, "TypeError: label_node gave int"),
        (lambda node: False, "TypeError: label_node gave bool"),
        (lambda node: [None], "TypeError: label_node gave NoneType"),
        (lambda node: _raise(RecursionError("deep")), "RecursionError: deep"),
    ],
)
def test_a_filter_that_fails_is_said_once_and_not_used(answer, reason):
    told = []
    filters = [Asked(index("bad(x)"), answer), equalities("good")]
    tree = And((EqualTo(x, i(1)), EqualTo(y, i(2)), EqualTo(x, i(3))))
    labelled = generate_clause(tree, filters, on_error=lambda f, e: told.append((f, type(e).__name__)))
    assert str(labelled.clause) == "good(x=1) AND good(y=2) AND good(x=3)"
    (problem,) = labelled.problems
    assert problem.startswith("bad(x): Asked raised ")
    assert reason in problem
    assert [f for f, _ in told] == [filters[0]]


def test_what_a_failing_index_said_before_is_withdrawn():
    def answer(node):
        match node:
            case EqualTo(_, Literal(1)):
                return Known((), None, "said before")
            case EqualTo(_, Literal(2)):
                raise ValueError(2)

    shared = index("bad")
    filters = [Asked(shared, lambda node: Known((), None, "other filter")), Asked(shared, answer), equalities("good")]
    labelled = generate_clause(And((EqualTo(x, i(1)), EqualTo(x, i(2)))), filters)
    assert str(labelled.clause) == "good(x=1) AND good(x=2)"
    assert len(labelled.problems) == 1
    assert all(str(c).startswith("good") for clauses in labelled.labels.values() for c in clauses)


def test_a_clause_whose_negation_raises_is_its_indexs_failure():
    class Broken(Known):
        def negate(self, expression):
            raise RuntimeError("cannot negate")

    bad = Asked(index("bad"), lambda node: Broken((), None, "bad") if isinstance(node, StartsWith) else None)
    good = Asked(index("good"), lambda node: Known((), None, "good") if isinstance(node, Not) else None)
    labelled = generate_clause(Not(StartsWith(s, Literal("a", "string"))), [bad, good])
    assert str(labelled.clause) == "good"
    assert labelled.problems == ("bad: Asked raised RuntimeError: cannot negate",)


def test_declared_negations_are_used():
    def answer(node):
        return Known((), Known((), None, "has other"), "has prefix") if isinstance(node, StartsWith) else None

    labelled = generate_clause(Not(StartsWith(s, Literal("a", "string"))), [Asked(index("i"), answer)])
    assert str(labelled.clause) == "has other"


def label_everything(shown=None):
    return Asked(index("eager"), lambda node: Known((), None, f"[{node}]"), shown)


def test_what_is_not_deterministic_is_never_shown():
    shown = []
    for tree in (drawn, Not(drawn), Or((EqualTo(x, i(1)), drawn)), EqualTo(Call("f", (Call("g", (rand,)),)), i(1))):
        labelled = generate_clause(tree, [label_everything(shown)])
        assert labelled.clause is None
    assert set(shown) == {"x = 1"}


def test_an_and_is_shown_without_its_random_terms():
    shown = []
    tree = And((EqualTo(x, i(1)), drawn, GreaterThan(y, i(2)), Or((drawn, EqualTo(y, i(3))))))
    labelled = generate_clause(tree, [label_everything(shown)])
    assert "(x = 1) AND (y > 2)" in shown
    assert not any("rand" in node for node in shown)
    assert str(labelled.clause) == "[x = 1] AND [y > 2] AND [(x = 1) AND (y > 2)]"
    assert labelled.labels[labelled.tree]


def test_one_sure_term_beside_a_random_one_is_used():
    assert str(generate_clause(And((EqualTo(x, i(1)), drawn)), [equalities("a")]).clause) == "a(x=1)"


def test_constants():
    assert str(generate_clause(Or((EqualTo(x, i(1)), Literal(False, "boolean"))), [equalities("a")]).clause) == "a(x=1)"
    assert str(generate_clause(EqualTo(x, Literal(None, "int")), []).clause) == "never"
    assert generate_clause(Literal(True, "boolean"), [label_everything()]).clause is None


def test_opaque_comparisons_reach_no_filter_that_knows_comparisons():
    shown = []
    assert generate_clause(NotEqualTo(x, Literal(1, "bigint")), [equalities("a", shown)]).clause is None
    assert shown == ["<NotEqualTo>(x, 1)"]


def test_five_thousand_terms_and_ten_filters():
    few, many, tree = (Or(tuple(EqualTo(x, i(n)) for n in range(size))) for size in (100, 1000, 5000))
    filters = [equalities("a"), *(Asked(index(str(n))) for n in range(9))]
    assert len(generate_clause(tree, filters).clause.terms) == 5000
    steps = instructions(lambda: generate_clause(few, filters))
    assert instructions(lambda: generate_clause(many, filters)) < 11 * steps


def test_trees_as_deep_as_the_bridge_lets_them_be():
    tree = EqualTo(x, i(-1))
    for n in range(DEEPEST // 3):
        tree = Not(And((Or((tree, EqualTo(x, i(n)))), NotEqualTo(y, i(n)))))
    labelled = generate_clause(tree, [equalities("a")])
    assert labelled.problems == ()
    assert str(labelled.tree)
