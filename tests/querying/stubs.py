"""Objects, metadata and clauses whose truth is known, for the tests of labelling and merging."""

from dataclasses import dataclass

import pyarrow as pa

from skipstone.querying.clause import Clause


@dataclass(frozen=True)
class Objects:
    """Stands for the metadata of some objects."""

    count: int

    def __len__(self):
        return self.count

    def field(self, index, name):
        raise NotImplementedError

    @property
    def row_count(self):
        raise NotImplementedError


@dataclass(frozen=True)
class Known(Clause):
    """A clause whose answers are given: per object True, False or None for unknown; and so its negation's, if any."""

    answers: tuple
    negation: "Known | None" = None
    name: str = ""

    def might_match(self, metadata):
        assert len(metadata) == len(self.answers)
        return pa.array(self.answers, pa.bool_())

    @property
    def requires(self):
        return ((self.name, "answers"),)

    def negate(self, expression):
        return self.negation

    def __str__(self):
        return self.name or str(self.answers)


def kept(clause, count):
    """Return the positions of the objects that a clause keeps."""
    if clause is None:
        return set(range(count))
    return {i for i, answer in enumerate(clause.might_match(Objects(count)).to_pylist()) if answer is not False}
