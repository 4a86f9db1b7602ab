"""The Index contract (paper, II-A): which columns to read, what to collect of them, which filters may use it.

A subclass is a frozen dataclass whose fields are its options.  Defining it registers it under its ``type_name``, unless
it is abstract: a base that several types share.  A manifest names index types only by that name, and nothing is ever
imported because a manifest says so.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from skipstone import registry
from skipstone.errors import UnsupportedTypeError
from skipstone.indexing.environment import EVALUATED, groups_of
from skipstone.indexing.facts import aggregates_of_facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from skipstone.indexing.bounds import Bounds
    from skipstone.indexing.facts import Fact
    from skipstone.indexing.metadata_type import MetadataType
    from skipstone.indexing.records import ColumnRecord
    from skipstone.indexing.source import Preparation
    from skipstone.querying.filter import Filter

__all__ = ["Index"]

_BASE_OPTIONS = ("key", "name")


@dataclass(frozen=True)
class Index(ABC):
    """One index on a dataset.

    The built-in types are written against what is documented here, in ``MetadataType``, ``Filter`` and ``Clause``, and
    against nothing else.  Metadata is collected from rows (``inputs``, ``collect_metadata``) or, where that is cheaper,
    made of ``facts`` or ``aggregates``.

    Parameters
    ----------
    key
        Name of the encryption key of this index's metadata; plain when not given.
    name
        Name by which the index is described and dropped; made from the type and its options when not given, or from
        type and columns alone when there is a key: everyone can read names.
    """

    metadata_type: ClassVar[type[MetadataType]]
    type_name: ClassVar[str]

    key: str | None = field(default=None, kw_only=True)
    name: str = field(default="", kw_only=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "type_name" not in cls.__dict__:
            cls.type_name = re.sub(r"Index$", "", cls.__name__).lower()
        if not inspect.isabstract(cls):
            registry.register_index(cls)

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self._made_name())

    def _made_name(self) -> str:
        """Make a name; that of a protected index spells no option, which may hold values of the data."""
        if self.key is None:
            return self._default_name()
        return f"{self.type_name}({', '.join(self.columns) or '…'})"

    def _default_name(self) -> str:
        """Spell the constructor in lower case: the columns, then the options that differ from their default."""
        columns = ", ".join(self.columns)
        changed = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in dataclasses.fields(self)
            if f.name not in (*_BASE_OPTIONS, *self._column_fields())
            and f.repr
            and (f.default is dataclasses.MISSING or getattr(self, f.name) != f.default)
        ]
        return f"{self.type_name}({', '.join([columns, *changed])})"

    def _column_fields(self) -> tuple[str, ...]:
        """Name the dataclass fields that hold column names."""
        return ("column",)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the index describes, spelled as in Spark SQL."""
        return tuple(
            getattr(self, name) for name in self._column_fields() if isinstance(getattr(self, name, None), str)
        )

    def with_columns(self, columns: tuple[str, ...]) -> Self:
        """Return the same index with its columns respelled (resolved against the schema, or ``*`` expanded)."""
        respelled: dict[str, Any] = dict(zip(self._column_fields(), columns, strict=True))
        if self.name == self._made_name():
            respelled["name"] = ""
        return dataclasses.replace(self, **respelled)

    def supports(self, types: tuple[str, ...]) -> bool:  # noqa: ARG002  (part of the contract)
        """Whether columns of these Spark types (catalog strings) can be indexed; every type unless overridden."""
        return True

    def check_types(self, types: tuple[str, ...]) -> None:
        """Raise a clear error when a column's type cannot be indexed."""
        if not self.supports(types):
            found = ", ".join(f"{c} is {t}" for c, t in zip(self.columns, types, strict=True))
            msg = f"{self.name} cannot be built: {found}, a type that a {self.type_name} index does not take"
            raise UnsupportedTypeError(msg)

    @property
    def functions(self) -> tuple[str, ...] | Mapping[str, str] | None:
        """The registered names of the users' functions whose results this index holds.

        Their identity is recorded, and the index is used only while the functions in a query are the recorded ones.
        ``None``, the default, when the index does not say: then every function that is registered while the index is
        made is recorded, and one registered anew under its name is noticed.  An index that computes by itself what a
        function gives maps the function's name to the identity that it must have, ``"version …"`` as it was stated,
        whatever is registered while the index is made.
        """
        return None

    @property
    def runs_sql(self) -> bool:
        """Whether ``inputs`` has SQL of the user's, which is never run because a manifest has it: see ``refresh``."""
        return False

    @property
    def evaluated(self) -> tuple[str, ...]:
        """What Spark's evaluation of ``inputs`` depends on, where they are more than the columns themselves.

        Of ``environment.EVALUATED``: ``"session"`` (its time zone and other settings), ``"machine"`` (zone and locale
        of the JVM, the releases of Java and Spark).  The index is used only where these are as they were.  Both, unless
        overridden; ``()`` for inputs that are the same everywhere, such as a hash of a column.
        """
        return EVALUATED

    def environment_groups(self, columns: Sequence[ColumnRecord]) -> tuple[str, ...]:
        """Return the groups of the reading environment that this index's metadata of some columns depends on."""
        bare = all(expression in self.columns for expression in self.inputs(tuple(c.type for c in columns)))
        return groups_of(columns, () if bare else self.evaluated)

    def prepare(self, scan: Preparation) -> Self:  # noqa: ARG002  (part of the contract)
        """Look at the dataset once, before the index is built; what is found goes into the options."""
        return self

    def inputs(self, types: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG002  (part of the contract)
        """Return the Spark SQL expressions to read for this index, by default its columns as they are.

        Equal expressions of several indexes are read once.
        """
        return self.columns

    @abstractmethod
    def collect_metadata(self, rows: pa.RecordBatch) -> MetadataType:
        """Collect the metadata of some rows of one object.

        ``rows`` has a column per expression of ``inputs``, in that order, with physical values: dates as int32 days,
        timestamps as int64 microseconds, and so on as literals have them (see ``expressions.tree``).
        """

    def facts(self, types: tuple[str, ...]) -> Mapping[str, Fact] | None:  # noqa: ARG002  (part of the contract)
        """Declare facts of an object of which its metadata can be made, for an engine to find as cheaply as it can.

        Spark computes them by aggregates, or takes them from the footers of Parquet files where these prove them all;
        rows do not travel to Python then.  The values, by name, go to ``metadata_type.from_aggregates`` and must give
        the very state that ``collect_metadata`` would.  ``None``, the default, when there are none or not for these
        types.
        """
        return None

    def aggregates(self, types: tuple[str, ...]) -> Mapping[str, str] | None:
        """Return Spark SQL aggregates over an object's rows from which its metadata can be made, where that is cheaper.

        By default those that compute ``facts``.  An index of which more is to be aggregated overrides it; its facts, if
        it has any, are not asked for then.  The results, by name, go to ``metadata_type.from_aggregates`` and must give
        the very state that ``collect_metadata`` would.  ``None`` when there are none or not for these types.
        """
        facts = self.facts(types)
        return None if facts is None else aggregates_of_facts(facts, dict(zip(self.columns, types, strict=True)))

    @abstractmethod
    def filters(self) -> tuple[Filter, ...]:
        """Return the filters that use this index at query time."""

    def bounds(self, column: str) -> Bounds | None:  # noqa: ARG002  (part of the contract)
        """Name the stored fields that bound the values of a column in each object, for ``ORDER BY … LIMIT``.

        ``None``, the default, when there are none.
        """
        return None

    def options(self) -> Mapping[str, Any]:
        """Return what the manifest must keep to make this index again: JSON values by dataclass field."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "name" and f.init}

    @classmethod
    def from_options(cls, name: str, options: Mapping[str, Any]) -> Self:
        """Make the index again from what ``options`` gave, with its lists turned back into tuples."""
        made: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
        return cls(name=name, **made)
