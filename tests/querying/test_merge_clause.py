import random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.expressions.depth import DEEPEST
from tests.expressions.three_valued import COLUMNS, VALUES, evaluate, predicates, small_predicates
from tests.querying.stubs import Known, kept

from skipstone.expressions.normalize import normalize
from skipstone.expressions.tree import And, Column, EqualTo, Literal, Not, Or
from skipstone.querying import merge_clause as module
from skipstone.querying.clause import AndClause, NeverClause, OrClause
from skipstone.querying.merge_clause import Labels, merge_clause

a, b, c = (EqualTo(Column(name, "int"), Literal(1, "int")) for name in "abc")
TRUE, FALSE, NULL = (Literal(value, "boolean") for value in (True, False, None))


def k(name, negation=None):
    return Known((), negation and Known((), None, negation), name)


A, B, C, D = map(k, "ABCD")
A_, B_ = k("A", "not A"), k("B", "not B")
na, oab, aab = Not(a), Or((a, b)), And((a, b))
nab = Not(oab)

CASES = [
    ("leaf", a, {a: [A]}, "A"),
    ("leaf without a clause", a, {}, "None"),
    ("leaf with two clauses", a, {a: [A, B]}, "A AND B"),
    ("and", aab, {a: [A], b: [B]}, "A AND B"),
    ("and with a hole", aab, {b: [B]}, "B"),
    ("labelled and", aab, {a: [A], aab: [D]}, "A AND D"),
    ("or", oab, {a: [A], b: [B]}, "A OR B"),
    ("or with a hole", oab, {b: [B]}, "None"),
    ("labelled or with a hole", oab, {b: [B], oab: [D]}, "D"),
    ("labelled or", oab, {a: [A, C], b: [B], oab: [D]}, "((A AND C) OR B) AND D"),
    ("equal clauses", oab, {a: [A], b: [A]}, "A"),
    ("not without a negation", na, {a: [A]}, "None"),
    ("not", na, {a: [A_]}, "not A"),
    ("not with two clauses: either is enough to skip", na, {a: [A_, B_]}, "not A AND not B"),
    ("not with two clauses of which one negates", na, {a: [A_, B]}, "not A"),
    ("labelled not", na, {a: [A_], na: [D]}, "not A AND D"),
    ("labelled not whose child has nothing", na, {na: [D]}, "D"),
    ("not and: the dual", Not(aab), {a: [A_], b: [B_]}, "not A OR not B"),
    ("not and with a hole", Not(aab), {a: [A_], b: [B]}, "None"),
    ("not or: the dual", nab, {a: [A_], b: [B_]}, "not A AND not B"),
    ("not or with a hole", nab, {a: [A], b: [B_]}, "not B"),
    ("not of a labelled or", nab, {a: [A_], oab: [k("D", "not D")], nab: [C]}, "not A AND not D AND C"),
    ("not not", Not(na), {a: [A]}, "A"),
    ("not not, labelled between", Not(na), {a: [A], na: [k("N", "not N")]}, "A AND not N"),
    ("true", TRUE, {}, "None"),
    ("false", FALSE, {}, "never"),
    ("null", NULL, {}, "never"),
    ("not true", Not(TRUE), {}, "never"),
    ("not false", Not(FALSE), {}, "None"),
    ("not null", Not(NULL), {}, "never"),
    ("or false", Or((a, FALSE, NULL)), {a: [A]}, "A"),
    ("or true", Or((a, TRUE)), {a: [A]}, "None"),
    ("and false", And((a, FALSE)), {a: [A]}, "never"),
    ("and true", And((a, TRUE)), {a: [A]}, "A"),
    ("or of nothing that can be true", Or((FALSE, NULL)), {}, "never"),
]


@pytest.mark.parametrize(("tree", "labels", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_merging(tree, labels, expected):
    assert str(merge_clause(tree, Labels(labels.items()))) == expected


def test_labels_know_a_vertex_by_identity():
    labels = Labels([(a, [A]), (a, [B]), (b, [])])
    twin = EqualTo(a.left, a.right)
    assert labels[a] == (A, B)
    assert twin == a
    assert twin not in labels
    assert labels.get(b) is None
    assert list(labels) == [a]
    assert len(labels) == 1


def test_a_negation_that_raises():
    class Broken(Known):
        def negate(self, expression):
            raise RuntimeError("no")

    class Odd(Known):
        def negate(self, expression):
            return "text"

    told = []
    for clause in (Broken((), None, "X"), Odd((), None, "Y")):
        labels = Labels([(a, [clause, A_])])
        assert str(merge_clause(na, labels, on_error=lambda c, e: told.append((c.name, type(e))))) == "not A"
        with pytest.raises((RuntimeError, TypeError)):
            merge_clause(na, labels)
    assert told == [("X", RuntimeError), ("Y", TypeError)]


def test_clauses_that_cannot_be_hashed_are_taken_as_they_are():
    class Unhashable(Known):
        __hash__ = None

    clauses = [Unhashable(((), []), None, "U"), Unhashable(((), []), None, "U")]
    assert len(merge_clause(a, Labels([(a, clauses)])).terms) == 2


# --- against brute force ---------------------------------------------------------------------------------------------


def boolean_vertices(tree):
    """All vertices that are predicates in the tree's own logic, each once."""
    found, waiting = {}, [tree]
    while waiting:
        vertex = waiting.pop()
        found[id(vertex)] = vertex
        match vertex:
            case And(terms) | Or(terms):
                waiting.extend(terms)
            case Not(child):
                waiting.append(child)
    return list(found.values())


def truthful(choose, relevant, count):
    """A clause that keeps all relevant objects, in some way, and some or all others; perhaps with a negation."""
    answers = [choose((True, None)) if i in relevant else choose((False, False, True, None)) for i in range(count)]
    return Known(tuple(answers))


def labelled_example(tree, seed):
    """Make random objects and labels that truly represent the tree's vertices."""
    choose = random.Random(seed).choice
    count = 6
    objects = [
        [{col.name: choose(VALUES[t]) for t, cols in COLUMNS.items() for col in cols} for _ in range(choose((1, 1, 2)))]
        for _ in range(count)
    ]

    def holding(vertex, value):
        return {i for i, rows in enumerate(objects) if any(evaluate(vertex, row) is value for row in rows)}

    pairs = []
    for vertex in boolean_vertices(tree):
        if isinstance(vertex, Literal):
            continue
        true, false = holding(vertex, True), holding(vertex, False)
        clauses = []
        for _ in range(choose((0, 1, 1, 2))):
            clause = truthful(choose, true, count)
            negation = truthful(choose, false, count) if choose((True, True, False)) else None
            clauses.append(Known(clause.answers, negation))
        pairs.append((vertex, clauses))
    return Labels(pairs), holding(tree, True), count


def reference(vertex, labels, negated, count):
    """The table of ``merge_clause`` in terms of sets of kept objects."""
    everything = set(range(count))
    own = labels.get(vertex, ())
    if negated:
        own = [clause.negation for clause in own if clause.negation is not None]
    result = everything.intersection(*(kept(clause, count) for clause in own))
    match vertex:
        case And(terms) | Or(terms):
            below = [reference(term, labels, negated, count) for term in terms]
            joined = set.intersection(*below) if isinstance(vertex, And) is not negated else set.union(*below)
            return result & joined
        case Not(child):
            return result & reference(child, labels, not negated, count)
        case Literal(None):
            return set()
        case Literal(value):
            return result if value is not negated else set()
    return result


def check(tree, seed):
    for e in (tree, normalize(tree)):
        labels, relevant, count = labelled_example(e, seed)
        merged = kept(merge_clause(e, labels), count)
        assert merged >= relevant, f"lost {relevant - merged} of {e}"
        assert merged == reference(e, labels, False, count), f"not what the table says for {e}"


@settings(max_examples=400, deadline=None)
@given(predicates(max_leaves=6), st.integers(0, 2**32))
def test_no_relevant_object_is_lost(tree, seed):
    check(tree, seed)


@pytest.mark.parametrize("connective", [And, Or])
def test_objects_are_skipped_at_all(connective):
    """Otherwise the property above would say nothing."""
    one, other = EqualTo(COLUMNS["int"][0], Literal(1, "int")), EqualTo(COLUMNS["string"][0], Literal("a", "string"))
    skipped = 0
    for seed in range(100):
        tree = connective((one, Not(other)))
        labels, relevant, count = labelled_example(tree, seed)
        merged = kept(merge_clause(tree, labels), count)
        assert merged >= relevant
        skipped += count - len(merged)
    assert skipped > 50


def _caught(error=AssertionError):
    @settings(max_examples=3000, deadline=None, database=None, derandomize=True, phases=[Phase.generate])
    @given(small_predicates(), st.integers(0, 2**32))
    def search(tree, seed):
        check(tree, seed)

    with pytest.raises(error):
        search()


def _or_of_negations(vertex, clauses, on_error):
    found = [clause.negation for clause in clauses if clause.negation is not None]
    return (OrClause(tuple(found)),) if len(found) > 1 else tuple(found)


def _negated_answers(vertex, clauses, on_error):
    return tuple(Known(tuple(None if x is None else not x for x in clause.answers)) for clause in clauses)


def _undeclared_negations(vertex, clauses, on_error):
    return tuple(clauses)


class _Holed(module._Joiner):
    def disjunction(self, clauses):
        return super().disjunction([clause for clause in clauses if clause is not None])


class _AllNever(module._Joiner):
    def disjunction(self, clauses):
        return NeverClause() if any(isinstance(c, NeverClause) for c in clauses) else super().disjunction(clauses)


_from_below = module._from_below


def _no_dual(vertex, found, joiner, *, negated):
    return _from_below(vertex, found, joiner, negated=False)


def _null_is_false_under_not(vertex, found, joiner, *, negated):
    return None if isinstance(vertex, Literal) and negated else _from_below(vertex, found, joiner, negated=negated)


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("_negations", _or_of_negations),
        ("_negations", _negated_answers),
        ("_negations", _undeclared_negations),
        ("_Joiner", _Holed),
        ("_Joiner", _AllNever),
        ("_from_below", _no_dual),
        ("_from_below", _null_is_false_under_not),
    ],
)
def test_the_property_catches_a_broken_merge(name, broken, monkeypatch):
    monkeypatch.setattr(module, name, broken)
    _caught()


# --- depth -----------------------------------------------------------------------------------------------------------


def test_trees_as_deep_as_the_bridge_lets_them_be_merge_evaluate_and_spell():
    depth = DEEPEST
    tree, pairs = a, [(a, [Known((True, False), None, "A")])]
    for level in range(depth):
        leaf = EqualTo(Column("x"), Literal(level))
        tree = Or((tree, leaf)) if level % 2 else And((tree, leaf))
        pairs.append((leaf, [Known((level % 2 == 0, False), None, f"L{level}")]))
    clause = merge_clause(tree, Labels(pairs))
    assert kept(clause, 2) == {0}
    assert len(clause.requires) == depth + 1
    assert str(clause).count("L") == depth
    negative = tree
    for _ in range(depth):
        negative = Not(negative)
    assert kept(merge_clause(negative, Labels(pairs)), 2) == {0}


def test_equal_parts_of_a_deep_clause_are_one_object():
    parts = []
    for _ in range(2):
        tree, pairs = a, [(a, [A])]
        for level in range(DEEPEST):
            leaf = EqualTo(Column("x"), Literal(level))
            tree = Or((tree, leaf)) if level % 2 else And((tree, leaf))
            pairs.append((leaf, [Known((), None, f"L{level}")]))
        parts.append((tree, pairs))
    (one, first), (other, second) = parts
    clause = merge_clause(And((one, other)), Labels(first + second))
    assert isinstance(clause, OrClause)


def test_wide_trees():
    terms = tuple(EqualTo(Column("x"), Literal(n)) for n in range(5000))
    clause = merge_clause(Or(terms), Labels((t, [Known((), None, str(n))]) for n, t in enumerate(terms)))
    assert len(clause.terms) == 5000
    assert isinstance(merge_clause(And(terms), Labels((t, [A, B]) for t in terms)), AndClause)
