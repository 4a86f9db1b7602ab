"""Going over trees: every vertex once, in order, at any depth, and nothing made anew that did not change."""

from __future__ import annotations

from dataclasses import replace

from skipstone.expressions.tree import And, Call, Column, Element, EqualTo, In, IsNull, Literal, Not, Or

X, Y = Column("x", "int"), Column("y", "int")
ONE, LIST = Literal(1, "int"), Literal((1, 2), "array<int>")
TREE = And((EqualTo(X, ONE), Or((Not(IsNull(Y)), In(X, (ONE, Y)))), EqualTo(Element(X, "elements"), LIST)))
DEPTH = 20_000


def deep():
    vertex = Call("f", (X, ONE))
    for _ in range(DEPTH):
        vertex = Not(vertex)
    return vertex


def upper(vertex):
    return replace(vertex, name=vertex.name.upper()) if isinstance(vertex, Column) else vertex


def test_walk_goes_from_above_and_from_the_left():
    assert [str(v) for v in TREE.terms[1].walk()] == [
        "(NOT (y IS NULL)) OR (x IN (1, y))",
        "NOT (y IS NULL)",
        "y IS NULL",
        "y",
        "x IN (1, y)",
        "x",
        "1",
        "y",
    ]


def test_walk_goes_only_where_it_is_told_to():
    terms = [*TREE.walk(lambda vertex: isinstance(vertex, And | Or))]
    assert terms == [TREE, TREE.terms[0], TREE.terms[1], *TREE.terms[1].terms, TREE.terms[2]]
    assert [*TREE.walk(lambda _: False)] == [TREE]


def test_map_children_changes_one_level():
    assert str(EqualTo(X, Y).map_children(upper)) == "X = Y"
    assert str(In(X, (ONE, Y)).map_children(upper)) == "X IN (1, Y)"
    assert str(Not(IsNull(X)).map_children(upper)) == "NOT (x IS NULL)"
    assert str(Element(X, "keys").map_children(upper)) == "some key of X"


def test_what_does_not_change_stays_itself():
    assert TREE.map_children(lambda child: child) is TREE
    assert TREE.rebuilt(lambda vertex: vertex) is TREE
    assert LIST.map_children(lambda _: X) is LIST
    assert X.map_children(lambda _: Y) is X
    changed = TREE.rebuilt(lambda vertex: Column("z", "int") if vertex is Y else vertex)
    assert changed.terms[0] is TREE.terms[0]


def test_rebuilt_changes_every_level():
    assert str(TREE.terms[1].rebuilt(upper)) == "(NOT (Y IS NULL)) OR (X IN (1, Y))"
    assert TREE.rebuilt(lambda v: v.child if isinstance(v, Not) else v).terms[1].terms[0] == IsNull(Y)


def test_a_vertex_in_two_places_is_changed_once():
    shared, asked = IsNull(X), []
    tree = And((shared, Not(shared)))
    made = tree.rebuilt(lambda vertex: asked.append(vertex) or upper(vertex))
    assert len(asked) == 4
    assert made.terms[0] is made.terms[1].child


def test_deep_trees():
    tree = deep()
    assert sum(1 for _ in tree.walk()) == DEPTH + 3
    made = tree.rebuilt(upper)
    assert [*made.walk()][-2] == Column("X", "int")
