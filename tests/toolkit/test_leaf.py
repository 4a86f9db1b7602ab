"""What was read of a vertex is remembered by the vertex itself, and of a bounded number of them."""

from __future__ import annotations

import pytest

from skipstone.expressions.tree import Column, EqualTo, In, Literal
from skipstone.toolkit import leaf
from skipstone.toolkit.leaf import Among, read_leaf

X = Column("x")


def test_vertices_that_python_holds_equal_are_read_apart():
    vertices = [EqualTo(X, Literal(value)) for value in (1, 1.0, True)]
    assert vertices[0] == vertices[1] == vertices[2]
    found = [read_leaf(vertex) for vertex in vertices * 2]
    assert [type(one.test.values[0]) for one in found] == [int, float, bool] * 2
    assert [one.floating for one in found] == [False, True, False] * 2


def test_a_vertex_that_took_the_place_of_another_is_read_anew():
    for number in range(3 * leaf._MOST_KNOWN):  # the memory of those that nobody holds is used again
        assert read_leaf(In(X, (Literal(number), Literal(-1)))).test == Among((number, -1))
        assert len(leaf._known) <= leaf._MOST_KNOWN


@pytest.mark.parametrize("vertex", [X, In(X, (Literal(1), X)), EqualTo(X, Literal("\ud800"))])
def test_what_is_no_leaf_stays_none(vertex):
    assert (read_leaf(vertex), read_leaf(vertex)) == (None, None)
