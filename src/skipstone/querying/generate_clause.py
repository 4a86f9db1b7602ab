"""Generate-Clause (paper, algorithm 2): normalise, let the filters label every boolean vertex, merge.

Filters may be anyone's.  One that raises, or gives what is no clause, loses its whole index for this query: every label
that the index gave is withdrawn, the reason is said once, and the query goes on with the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from skipstone.expressions.normalize import normalize
from skipstone.expressions.tree import And, Call, Column, Expression, Literal, Not, Or
from skipstone.querying.clause import Clause
from skipstone.querying.implication import NotTheSameFunctionError, with_implied
from skipstone.querying.merge_clause import Labels, merge_clause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skipstone.querying.filter import Filter
    from skipstone.querying.implication import Implication

__all__ = ["Labelled", "generate_clause"]


@dataclass(frozen=True, slots=True)
class Labelled:
    """What became of a predicate.

    Parameters
    ----------
    tree
        The normalised tree, with what its leaves imply beside them.
    labels
        The clauses on its vertices, by identity of the vertex.
    clause
        The clause that represents the whole tree; ``None`` when nothing can be skipped.
    problems
        What could not be used and why, a line per index, beginning with its name.
    implied
        The terms of the tree that a leaf implies, by the leaf's identity.
    """

    tree: Expression
    labels: Labels = field(default_factory=Labels)
    clause: Clause | None = None
    problems: tuple[str, ...] = ()
    implied: Mapping[int, tuple[Expression, ...]] = field(default_factory=dict)


def generate_clause(
    expression: Expression,
    filters: Sequence[Filter],
    implications: Sequence[Implication] = (),
    *,
    on_error: Callable[[Filter, Exception], None] | None = None,
) -> Labelled:
    """Label a predicate's vertices by all filters and merge the labels.

    Parameters
    ----------
    expression
        The predicate, as Spark wrote it.
    filters
        The filters of the indexes that may serve this query.
    implications
        What is known of predicates that the filters need not know: terms that they imply are labelled beside them.
    on_error
        Told of the first error of an index, for a log; ``Labelled.problems`` says it in any case.

    Notes
    -----
    The merged clause represents the normalised tree (``merge_clause``), which is TRUE for the same rows as the
    predicate (``normalize``, ``with_implied``), hence it represents the predicate (paper, theorem 1).

    What is not deterministic is never labelled: a clause speaks of the rows of an object, not of one evaluation.  An
    AND that has such terms is shown without them: where it is TRUE, the AND of the others is TRUE too, so whatever
    represents that one represents it.
    """
    failures = _Failures(on_error)
    unheard: dict[str, None] = {}
    tree, implied = with_implied(
        normalize(expression),
        implications,
        lambda who, error: unheard.setdefault(_unheard(who, error)),
    )
    shown = _shown_vertices(tree)
    given: list[tuple[Filter, list[tuple[Expression, tuple[Clause, ...]]]]] = []
    for labelling in filters:
        if not failures.has(labelling):
            try:
                given.append((labelling, _labels_of(labelling, shown)))
            except Exception as error:  # noqa: BLE001  a plug-in's code: its index is not used, which is said
                failures.add(labelling, error)
    while True:
        given = [(labelling, pairs) for labelling, pairs in given if not failures.has(labelling)]
        labels = Labels(pair for _, pairs in given for pair in pairs)
        owners = {id(c): labelling for labelling, pairs in given for _, clauses in pairs for c in clauses}
        before = len(failures)
        clause = merge_clause(tree, labels, on_error=partial(_blame, owners, failures))
        if len(failures) == before:
            return Labelled(tree, labels, clause, (*failures.problems, *unheard), implied)


def _unheard(implication: Implication, error: Exception) -> str:
    """Return why nothing is known of what a predicate implies."""
    if isinstance(error, NotTheSameFunctionError):
        return f"{implication}: {error}"
    return f"{implication}: raised {type(error).__name__}: {error}"


class _Failures:
    """Which indexes failed in this query, and why: the first error of each."""

    def __init__(self, on_error: Callable[[Filter, Exception], None] | None) -> None:
        self._on_error = on_error
        self._problems: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._problems)

    @property
    def problems(self) -> tuple[str, ...]:
        """The errors in words."""
        return tuple(self._problems.values())

    def has(self, labelling: Filter) -> bool:
        """Whether a filter, or another of its index, failed."""
        return id(getattr(labelling, "index", labelling)) in self._problems

    def add(self, labelling: Filter, error: Exception) -> None:
        """Note an error, unless its index has one already."""
        index = getattr(labelling, "index", labelling)
        if id(index) not in self._problems:
            name = getattr(index, "name", type(index).__name__)
            said = f"{name}: {type(labelling).__name__} raised {type(error).__name__}: {error}"
            self._problems[id(index)] = said
            if self._on_error is not None:
                self._on_error(labelling, error)


def _blame(owners: Mapping[int, Filter], failures: _Failures, clause: Clause, error: Exception) -> None:
    """Note that a clause failed to negate, at the index whose filter gave it."""
    failures.add(owners[id(clause)], error)


def _labels_of(
    labelling: Filter, shown: list[tuple[Expression, Expression]]
) -> list[tuple[Expression, tuple[Clause, ...]]]:
    """Ask one filter about all vertices."""
    label = labelling.label_node
    pairs: list[tuple[Expression, tuple[Clause, ...]]] = []
    for vertex, node in shown:
        found = label(node)
        if found is None:
            continue
        clauses = (found,) if isinstance(found, Clause) else _checked(found)
        if clauses:
            pairs.append((vertex, clauses))
    return pairs


def _checked(found: Any) -> tuple[Clause, ...]:
    """Take an iterable of clauses; a filter is anyone's, so see that it is one."""
    clauses = tuple(found) if isinstance(found, Iterable) else (found,)
    for clause in clauses:
        if not isinstance(clause, Clause):
            msg = f"label_node gave {type(clause).__name__} where a Clause, several, or None is due"
            raise TypeError(msg)
    return clauses


def _shown_vertices(tree: Expression) -> list[tuple[Expression, Expression]]:
    """Return the boolean vertices that may be labelled, each with what the filters are shown in its place."""
    vertices: dict[int, Expression] = {}
    for vertex in tree.walk(lambda vertex: isinstance(vertex, And | Or | Not)):
        vertices.pop(id(vertex), None)  # a vertex in several places comes last: below all of its parents
        vertices[id(vertex)] = vertex
    unsteady: set[int] = set()
    shown: list[tuple[Expression, Expression]] = []
    for vertex in reversed(vertices.values()):
        children = _boolean_children(vertex)
        if any(id(child) in unsteady for child in children) or (not children and not _is_deterministic(vertex)):
            unsteady.add(id(vertex))
            if isinstance(vertex, And):
                steady = tuple(term for term in vertex.terms if id(term) not in unsteady)
                if len(steady) > 1:
                    shown.append((vertex, And(steady)))
        elif not isinstance(vertex, Literal):
            shown.append((vertex, vertex))
    return shown[::-1]


def _boolean_children(vertex: Expression) -> tuple[Expression, ...]:
    """Return the predicates that a predicate is made of."""
    if isinstance(vertex, And | Or):
        return vertex.terms
    return (vertex.child,) if isinstance(vertex, Not) else ()


def _is_deterministic(leaf: Expression) -> bool:
    """Whether no part of a leaf may change its mind."""
    if isinstance(leaf, Call) and not leaf.deterministic:
        return False
    return all(_is_deterministic(child) for child in leaf.children if not isinstance(child, Column | Literal))
