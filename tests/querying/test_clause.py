import pytest
from tests.querying.stubs import Known, Objects

from skipstone.querying.clause import AndClause, NeverClause, OrClause, conjunction, disjunction

T, F, U = True, False, None
A, B = Known((T, T, T, F, F, F, U, U, U), None, "A"), Known((T, F, U, T, F, U, T, F, U), None, "B")


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        (AndClause((A, B)), [T, F, U, F, F, F, U, F, U]),
        (OrClause((A, B)), [T, T, T, T, F, U, T, U, U]),
        (AndClause((A, OrClause((A, B)), B)), [T, F, U, F, F, F, U, F, U]),
        (OrClause((AndClause((A, B)), AndClause((B, A)), NeverClause())), [T, F, U, F, F, F, U, F, U]),
        (NeverClause(), [F] * 9),
        (AndClause((A, NeverClause())), [F] * 9),
        (OrClause((A,)), list(A.answers)),
    ],
    ids=str,
)
def test_unknown_is_carried_by_kleenes_rules(clause, expected):
    assert clause.might_match(Objects(9)).to_pylist() == expected


def test_never_needs_no_metadata():
    assert NeverClause().requires == ()
    assert NeverClause().might_match(Objects(0)).to_pylist() == []
    assert NeverClause() == NeverClause()


def test_what_a_join_reads_and_how_it_is_written():
    clause = AndClause((A, OrClause((B, AndClause((A, B))))))
    assert clause.requires == (("A", "answers"), ("B", "answers"))
    assert str(clause) == "A AND (B OR (A AND B))"


def test_joining_by_hand():
    assert conjunction([]) is None
    assert disjunction([A]) is A
    assert conjunction([A, AndClause((B, A))]) == AndClause((A, B))
    assert disjunction([OrClause((A, B)), B]) == OrClause((A, B))
