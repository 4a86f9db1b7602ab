"""Merge-Clause (paper, algorithm 1): from the clauses on the vertices of a tree to one clause that represents it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from skipstone.expressions.tree import And, Expression, Literal, Not, Or
from skipstone.querying.clause import AndClause, Clause, NeverClause, OrClause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    OnError: TypeAlias = Callable[[Clause, Exception], None]

__all__ = ["Labels", "merge_clause"]


class Labels(Mapping[Expression, tuple[Clause, ...]]):
    """The clauses on the vertices of one tree (the paper's ``CS(v)``).

    A vertex is known by *identity*: comparing trees that are thousands of levels deep is neither cheap nor possible
    without recursion.  An unlabelled vertex is not in the mapping: ``labels.get(v, ())``.
    """

    def __init__(self, pairs: Iterable[tuple[Expression, Iterable[Clause]]] = ()) -> None:
        self._by_identity: dict[int, tuple[Expression, tuple[Clause, ...]]] = {}
        for vertex, clauses in pairs:
            found = (*self.get(vertex, ()), *clauses)
            if found:
                self._by_identity[id(vertex)] = (vertex, found)

    def __getitem__(self, vertex: Expression) -> tuple[Clause, ...]:
        return self._by_identity[id(vertex)][1]

    def __contains__(self, vertex: object) -> bool:
        return id(vertex) in self._by_identity

    def __iter__(self) -> Iterator[Expression]:
        return (vertex for vertex, _ in self._by_identity.values())

    def __len__(self) -> int:
        return len(self._by_identity)


def merge_clause(
    expression: Expression, labels: Mapping[Expression, tuple[Clause, ...]], *, on_error: OnError | None = None
) -> Clause | None:
    """Merge the clauses on a tree's vertices into one that represents the tree.

    Parameters
    ----------
    expression
        The tree, normalised or not.
    labels
        The clauses on its vertices, each of which represents its vertex.
    on_error
        Told when a clause's ``negate`` raises; that negation is then done without.  Not given: it is raised.

    Returns
    -------
    Clause or None
        ``None`` represents every expression: nothing can be skipped.

    Notes
    -----
    Two functions of a vertex *v*, defined by mutual recursion; ``CS(v)`` are the clauses on *v*, and ``CS*(v)`` the
    negations with respect to *v* that they declare (paper, definition of ``c*``):

    ========================  =====================================  =====================================
    v                         pos(v), represents v                   neg(v), represents NOT v
    ========================  =====================================  =====================================
    ``AND(a, b)``             pos(a) and pos(b) and CS(v)                (neg(a) or neg(b)) and CS*(v)
    ``OR(a, b)``              (pos(a) or pos(b)) and CS(v)              neg(a) and neg(b) and CS*(v)
    ``NOT(a)``                neg(a) and CS(v)                         pos(a) and CS*(v)
    ``TRUE``                  None                                   never
    ``FALSE``                 never                                  None
    ``NULL``                  never                                  never
    any leaf                  CS(v)                                  CS*(v)
    ========================  =====================================  =====================================

    A conjunction leaves None out; a disjunction with None is None, since None holds for every object.

    *Correctness*, by induction on the depth as in the paper's lemma 4.  Every clause in ``CS(v)`` represents *v* by
    assumption, every one in ``CS*(v)`` represents ``NOT v`` by definition, and their conjunction does by lemma 1: two
    negations of one vertex are two proofs about ``NOT v``, of which either is enough to skip.  (They are *not* joined
    by OR: De Morgan speaks of the negation of a clause, but ``c*`` is no such thing.  It is a statement about the rows
    that fail *v*, and is given for each clause by itself.)  pos of AND and OR follow from lemmas 2 and 3.  A row makes
    ``NOT(a AND b)`` TRUE exactly when it makes ``NOT a`` or ``NOT b`` TRUE, and ``NOT(a OR b)`` exactly when both, in
    Kleene's logic as well, so neg follows from the same two lemmas; ``NOT NOT a`` is TRUE where *a* is.  No row makes
    a constant TRUE that is not, so the clause that holds for no object represents it, and None represents anything.
    Lemma 1 once more joins what a vertex carries itself to what its children give.

    Linear in the size of the tree; equal parts of the result are one object.
    """
    joiner = _Joiner()

    def merged(vertex: Expression, *, negated: bool) -> Clause | None:
        """Return pos(vertex), or neg(vertex) if it is negated."""
        match vertex:
            case And(terms) | Or(terms):
                found = [merged(term, negated=negated) for term in terms]
            case Not(child):
                found = [merged(child, negated=not negated)]
            case _:
                found = []
        own = labels.get(vertex, ())
        if negated:
            own = _negations(vertex, own, on_error)
        return joiner.conjunction([_from_below(vertex, found, joiner, negated=negated), *own])

    return merged(expression, negated=False)


def _from_below(vertex: Expression, found: list[Clause | None], joiner: _Joiner, *, negated: bool) -> Clause | None:
    """Join what the children give, or say what a constant is worth; the vertex's own clauses come later."""
    match vertex:
        case And():
            return joiner.disjunction(found) if negated else joiner.conjunction(found)
        case Or():
            return joiner.conjunction(found) if negated else joiner.disjunction(found)
        case Not():
            return found[0]
        case Literal(bool(value)):
            return NeverClause() if value is negated else None
        case Literal(None):
            return NeverClause()
    return None


def _negations(vertex: Expression, clauses: tuple[Clause, ...], on_error: OnError | None) -> tuple[Clause, ...]:
    """Return the declared negations, with respect to a vertex, of the clauses on it."""
    found: list[Clause] = []
    for clause in clauses:
        try:
            negation = clause.negate(vertex)
            if negation is not None and not isinstance(negation, Clause):
                msg = f"negate gave {type(negation).__name__} where a Clause or None is due"
                raise TypeError(msg)
        except Exception as error:  # a plug-in's code: whatever it raises, less is skipped
            if on_error is None:
                raise
            on_error(clause, error)
        else:
            if negation is not None:
                found.append(negation)
    return tuple(found)


class _Joiner:
    """Joins clauses flat and without duplicates; what it joined itself it tells by identity, without comparing it."""

    def __init__(self) -> None:
        self._by_key: dict[Any, Clause] = {}
        self._made: set[int] = set()

    def conjunction(self, clauses: Iterable[Clause | None]) -> Clause | None:
        """Join clauses that all hold; one that never does settles it."""
        terms = self._flat([clause for clause in clauses if clause is not None], AndClause)
        never = next((term for term in terms if type(term) is NeverClause), None)
        return never or self._joined(terms, AndClause)

    def disjunction(self, clauses: list[Clause | None]) -> Clause | None:
        """Join clauses of which some must hold; one that is missing might."""
        present = [clause for clause in clauses if clause is not None]
        if len(present) < len(clauses):
            return None
        terms = self._flat(present, OrClause)
        return self._joined([term for term in terms if type(term) is not NeverClause] or terms, OrClause)

    def _flat(self, clauses: list[Clause], connective: type[AndClause | OrClause]) -> list[Clause]:
        """Return the distinct terms, those of nested joins of the same kind among them."""
        if len(clauses) == 1:
            return [self._one(clauses[0])]
        terms: dict[int, Clause] = {}
        for clause in clauses:
            if not isinstance(clause, connective):
                one = self._one(clause)
                terms.setdefault(id(one), one)
            elif id(clause) in self._made:
                terms.update(zip(map(id, clause.terms), clause.terms, strict=True))
            else:
                terms.update((id(one), one) for one in map(self._one, clause.terms))
        return list(terms.values())

    def _joined(self, terms: list[Clause], connective: type[AndClause | OrClause]) -> Clause | None:
        """Make one clause of distinct terms."""
        if len(terms) < 2:
            return terms[0] if terms else None
        joined = self._by_key.setdefault((connective, tuple(map(id, terms))), connective(tuple(terms)))
        self._made.add(id(joined))
        return joined

    def _one(self, clause: Clause) -> Clause:
        """Return the first clause that equals this one; what was joined here is the first of its kind already."""
        if id(clause) in self._made:
            return clause
        try:
            return self._by_key.setdefault((type(clause), clause), clause)
        except (TypeError, RecursionError):  # one that cannot be hashed or compared equals itself only
            return self._by_key.setdefault(id(clause), clause)
