"""The user's handle on a dataset: thin, every verb delegates to the stage that does it."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, overload

from skipstone import registry
from skipstone.engines.spark.attach import attach, planner_of
from skipstone.engines.spark.client import Client, is_predicate, is_query, said_by
from skipstone.engines.spark.connect import classic_frame
from skipstone.engines.spark.described import described
from skipstone.engines.spark.sampling import SampledSource
from skipstone.engines.spark.served import files, is_served, not_from_a_client, served_table
from skipstone.engines.spark.session_store import store_for
from skipstone.engines.spark.source import SparkSource
from skipstone.errors import DatasetError, IndexingError, SkipstoneError
from skipstone.indexing.create import create_indexes
from skipstone.indexing.describe import DESCRIBE_COLUMNS, DESCRIBE_SCHEMA, describe_rows
from skipstone.indexing.drop import drop_indexes
from skipstone.indexing.ensure import ensure_indexes, missing_indexes
from skipstone.indexing.estimate import Estimate, estimate_indexes
from skipstone.indexing.index import Index
from skipstone.indexing.refresh import refresh
from skipstone.indexing.target import Target
from skipstone.reporting.audit import Audit, audit_queries
from skipstone.reporting.explain import Explanation, explain_scans
from skipstone.reporting.indicators import Indicators, WorkloadIndicators
from skipstone.reporting.measuring import measure_indicators
from skipstone.settings import get_setting, own_settings
from skipstone.showing.notebook import Html, card, facts, note, table
from skipstone.stores.parquet.store import ParquetStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from skipstone.indexing.objects import DataObject
    from skipstone.indexing.report import IndexingReport
    from skipstone.reporting.report.make import Report
    from skipstone.stores.metadata_store import MetadataStore

__all__ = ["Dataset"]


class Dataset:
    """A folder of files, read in one way, whose objects can be indexed.

    Parameters
    ----------
    df
        A DataFrame that is a plain file scan: what a reader or a table gives, nothing applied to it.

    Raises
    ------
    DatasetError
        When the DataFrame is anything else, or has not exactly one root folder.

    Examples
    --------
    >>> logs = Dataset.for_path(spark, "/lake/logs", format="parquet")  # doctest: +SKIP
    >>> logs.create_indexes(MinMaxIndex("ts"), ValueListIndex("db_name"))  # doctest: +SKIP
    """

    def __init__(self, df: DataFrame) -> None:
        self._df = df
        self._served = served_table(df)
        if self._served is not None:
            self._served.check()
            return
        self._spark: SparkSession = attach(df.sparkSession)
        self._scan = Client(self._spark).scan(classic_frame(df))
        self._relation = self._scan.describe().relation

    @classmethod
    def for_path(
        cls,
        spark: SparkSession,
        path: str,
        *,
        format: str = "parquet",  # noqa: A002  (Spark's own word)
        schema: StructType | str | None = None,
        **options: Any,
    ) -> Dataset:
        """Return the dataset in a folder; ``schema`` and ``options`` go to Spark's reader as they are."""
        served = is_served(spark)
        if served:
            files(spark, path, format, schema, options)  # raises for what a client cannot ask for
        else:
            attach(spark)
        reader = spark.read.format(format).options(**options)
        if schema is not None:
            reader = reader.schema(schema)
        try:
            df = reader.load(path)
            if not served:
                classic_frame(df)  # Connect looks at the files no earlier
        except Exception as error:
            msg = f"{path} cannot be read as {format}: {said_by(error)}"
            raise DatasetError(msg) from error
        return cls(df)

    @classmethod
    def for_table(cls, spark: SparkSession, name: str) -> Dataset:
        """Return the dataset behind a table of the catalog."""
        served = is_served(spark)
        if not served:
            attach(spark)
        try:
            df = spark.table(name)
            if not served:
                classic_frame(df)
        except Exception as error:
            msg = f"the table {name} cannot be read: {said_by(error)}"
            raise DatasetError(msg) from error
        return cls(df)

    @property
    def root(self) -> str:
        """The folder under which the dataset's objects lie, and beside which its metadata is kept."""
        if self._served is not None:
            return self._served.root()
        return self._relation.root

    @property
    def dataframe(self) -> DataFrame:
        """The DataFrame that reads the dataset."""
        return self._df

    @property
    def is_indexed(self) -> bool:
        """Whether the dataset has any index."""
        if self._served is not None:
            return bool(self._served.rows())
        snapshot = self._store().latest(self.root)
        return snapshot is not None and bool(snapshot.indexes)

    def create_indexes(self, *indexes: Index) -> IndexingReport:
        """Build indexes on every object, in one Spark job, and commit them together.

        Raises
        ------
        SkipstoneError
            When a column is unknown or of a type that its index does not take, an index exists already, the metadata
            cannot be written, or collecting fails; nothing is committed then.
        """
        _refuse_what_is_no_index("create_indexes", indexes)
        if self._served is not None:
            return self._served.create_indexes(indexes)
        return create_indexes(self._target(), indexes)

    def ensure_indexes(self, *indexes: Index) -> IndexingReport:
        """Refresh the dataset's indexes, and create those of the given ones that it does not have.

        It may be called every night: what is there and up to date costs a listing.  When the metadata is gone, since
        the dataset was overwritten, all given indexes are created.

        Raises
        ------
        SkipstoneError
            As ``create_indexes`` does, and when an index of the same name was made in another way; nothing is changed
            then.
        """
        _refuse_what_is_no_index("ensure_indexes", indexes)
        if self._served is not None:
            return self._served.ensure_indexes(indexes)
        return ensure_indexes(self._target(), indexes)

    def missing_indexes(self, *indexes: Index) -> tuple[Index, ...]:
        """Return what ``ensure_indexes`` would create, and change nothing."""
        if self._served is not None:
            there = {row["name"] for row in self._served.rows()}
            return tuple(index for index in indexes if index.name not in there)
        return missing_indexes(self._target(), indexes)

    def estimate(self, *indexes: Index, objects: int = 32) -> Estimate:
        """Estimate what indexes would cost, by building them on a sample: bytes of metadata, their share, seconds.

        Nothing is kept of it.

        Parameters
        ----------
        indexes
            What ``create_indexes`` would be given.
        objects
            How many objects to look at.

        Raises
        ------
        SkipstoneError
            As ``create_indexes`` does.
        """
        _refuse_what_is_no_index("estimate", indexes)
        if self._served is not None:
            raise not_from_a_client("an estimate", "run 'skipstone index --estimate' where the data can be read")
        with TemporaryDirectory(prefix="skipstone-estimate-") as folder:
            numbers = count()

            def trial(sample: Sequence[DataObject]) -> Target:
                place = Path(folder, str(next(numbers)))
                place.mkdir()
                return Target(SampledSource(self._scan, sample), self.root, ParquetStore(location=place.as_uri()))

            return estimate_indexes(SparkSource(self._scan), indexes, objects, trial)

    def refresh(self, paths: Iterable[str] | None = None, *, indexes: Iterable[Index] = ()) -> IndexingReport:
        """Index new and changed objects and drop the metadata of vanished ones; writes nothing when nothing changed.

        Parameters
        ----------
        paths
            Only these objects or folders, without listing the rest: what an ingestion job has just written.  A
            relative path is one below the dataset's root.
        indexes
            Indexes that keep SQL of yours, such as a ``FeatureIndex``, stated once more as they were made.  SQL is
            never run only because the metadata has it, so without this such an index does not get to know new objects.
            A protected index whose key is lost is made anew when it is stated here.
        """
        if self._served is not None:
            return self._served.refresh(None if paths is None else tuple(paths), tuple(indexes))
        return refresh(self._target(), None if paths is None else tuple(paths), tuple(indexes))

    def drop_indexes(self, *names: str) -> None:
        """Drop indexes by name, or, without names, all of the dataset's metadata."""
        if self._served is not None:
            self._served.drop_indexes(names)
        else:
            drop_indexes(self._target(), names)

    def describe(self) -> DataFrame:
        """Return a row per index: what it is, how many objects it covers, how large it is, when it was refreshed."""
        if self._served is not None:
            return described(self._served.describe())
        rows = describe_rows(self._target())
        made = self._df.sparkSession.createDataFrame(rows, DESCRIBE_SCHEMA)
        return described(made, [dict(zip(DESCRIBE_COLUMNS, row, strict=True)) for row in rows])

    def explain(self, df: DataFrame | Column | str, *, indicators: bool = False) -> Explanation:
        """Explain what skipping does to a query: labelled tree, clause, what is kept, what was not used and why.

        The query is planned, not run.  With ``indicators`` its predicate is run over every object, and what limits
        skipping, the layout or the metadata, is said too.

        Parameters
        ----------
        df
            A query, or a predicate on this dataset.
        indicators
            Whether to measure what limits skipping.
        """
        df = self._query(df)
        if self._served is not None:
            return Explanation(self._served.explain(df), (), self.indicators(df) if indicators else None)
        explanation = explain_scans(planner_of(self._spark), classic_frame(df), self.root)
        return explanation.with_indicators(self.indicators(df)) if indicators and explanation.scans else explanation

    @overload
    def indicators(self, queries: DataFrame | Column | str) -> Indicators: ...  # type: ignore[overload-overlap]
    @overload
    def indicators(self, queries: Iterable[DataFrame | Column | str]) -> WorkloadIndicators: ...
    def indicators(
        self, queries: DataFrame | Column | str | Iterable[DataFrame | Column | str]
    ) -> Indicators | WorkloadIndicators:
        """Measure the paper's indicators of skipping effectiveness: selectivity, layout, metadata and scanning factor.

        The predicate of each scan of this dataset is run over every object that Spark's own partition pruning leaves,
        with skipping off, so this takes as long as the query would without skipping; a workload's predicates over the
        same files are run together.  Relevant are the rows that satisfy the condition of their scan: of a join, those
        that its filters leave, whether or not they find a partner.

        Parameters
        ----------
        queries
            A query, or the queries of a workload, whose geometric means come with their indicators.  A predicate on
            this dataset may stand for a query.

        Raises
        ------
        SoundnessError
            When an object that holds a relevant row was skipped.  This must never happen: report it.
        DatasetError
            When a query does not scan this dataset.

        Examples
        --------
        >>> logs.indicators(df.where("db_name = 'a'")).scanning_factor  # doctest: +SKIP
        0.0125
        >>> logs.indicators([df.where("db_name = 'a'"), df.where("status = 500")]).limit  # doctest: +SKIP
        'layout'
        """
        if self._served is not None:
            raise not_from_a_client("measuring indicators", "run 'skipstone indicators' where the data can be read")
        if is_query(queries) or is_predicate(queries):
            return measure_indicators(self._scan, self.root, [classic_frame(self._query(queries))])[0]
        frames = [classic_frame(self._query(query)) for query in list(queries)]
        return WorkloadIndicators(measure_indicators(self._scan, self.root, frames))

    def audit(
        self,
        queries: DataFrame | Column | str | Iterable[DataFrame | Column | str],
        *,
        objects: int = 16,
        max_bytes: int | str = "256m",
        seed: int = 0,
    ) -> Audit:
        """Look into some of the objects that queries leave out, for rows that they ask for.

        This guards what tests of Skipstone cannot: promises made by ``udf_filter``, index types of your own, functions
        that changed unseen.  The condition of each scan of this dataset is run over a random sample of the objects
        that it leaves out, with skipping off.  What keys of joins, ``ORDER BY … LIMIT`` and counts leave out besides is
        not looked into.

        Parameters
        ----------
        queries
            Queries, or predicates on this dataset.
        objects, max_bytes
            How much to read at most, for each scan: so many objects, of so many bytes (``"256m"``), but one at least.
        seed
            Which objects; another seed looks into others.

        Raises
        ------
        SoundnessError
            When an object that holds a row that a query asks for was skipped.
        DatasetError
            When a query does not scan this dataset, or a bound makes no sense.

        Examples
        --------
        >>> print(logs.audit("status = 500", objects=100))  # doctest: +SKIP
        100 of 3,900 skipped objects (2.6%) were looked into, 1.3 GB of 52.0 GB: no row is lost
        """
        if self._served is not None:
            raise not_from_a_client("an audit", "run 'skipstone audit' where the data can be read")
        asked = [queries] if is_query(queries) or is_predicate(queries) else list(queries)
        frames = [classic_frame(self._query(query)) for query in asked]
        return audit_queries(self._scan, self.root, frames, objects=objects, max_bytes=max_bytes, seed=seed)

    def report(
        self,
        queries: Iterable[str | DataFrame] = (),
        *,
        measure: bool = True,
        compare: Report | str | Path | None = None,
    ) -> Report:
        """Report on the dataset and a workload: what to do first, what each index does, what limits each query.

        A notebook shows the summary; ``report(…).write("report.html")`` writes the whole page.

        Parameters
        ----------
        queries
            SQL in which the dataset is called ``dataset``, predicates on it, or DataFrames that read it.
        measure
            Whether to measure the indicators, for which Spark reads the columns of the conditions in every object.
        compare
            An earlier report, or the file of its page: what has changed since is said too.
        """
        from skipstone.reporting.report.make import make_report

        if self._served is not None:
            raise not_from_a_client("a report", "run 'skipstone report' where the data can be read")
        return make_report(self, list(queries), measure=measure, compare=compare)

    def _query(self, query: DataFrame | Column | str) -> DataFrame:
        """Return a query; a predicate is one on this dataset.

        Raises
        ------
        DatasetError
            When it is neither.
        """
        if is_query(query):
            return query
        if is_predicate(query):
            try:
                return self._df.where(query)
            except Exception as error:
                msg = f"{query} is not a predicate on {self.root}: {said_by(error)}"
                raise DatasetError(msg) from error
        msg = f'a DataFrame is wanted, or a predicate such as "status = 500", not {query!r}'
        raise DatasetError(msg)

    def _target(self) -> Target:
        """Return what index jobs work on: the dataset as the session reads it at this moment."""
        return Target(SparkSource(self._scan), self.root, self._store())

    def _store(self) -> MetadataStore:
        """Return the store that the session's settings choose at this moment."""
        for name in ("location", "store", "cacheBytes"):
            get_setting(self._spark, name)  # raises for one that makes no sense
        registry.load_plugins(get_setting(self._spark, "plugins"))
        return store_for(self._spark, own_settings(self._spark))

    def __repr__(self) -> str:
        if self._served is not None:
            return f"Dataset({self._served.name})"
        return f"Dataset({self.root!r}, format={self._relation.format!r})"

    def __str__(self) -> str:
        return self._served.name if self._served is not None else f"{self.root} ({self._relation.format})"

    def _repr_html_(self) -> str:
        """Show what the dataset is and which indexes it has; its objects are not listed."""
        try:
            return card("Dataset", *self._shown(), about=str(self))
        except SkipstoneError as error:
            return card("Dataset", note(f"The indexes cannot be read: {error}", warning=True), about=str(self))

    def _shown(self) -> list[Html]:
        """Return the parts of what a notebook shows."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self._df.dtypes)
        rows: list[tuple[str, str]]
        if self._served is not None:
            rows = [(row["name"], ", ".join(row["columns"])) for row in self._served.rows()]
        else:
            snapshot = self._store().latest(self.root)
            records = snapshot.indexes if snapshot is not None else ()
            rows = [(record.name, ", ".join(column.name for column in record.columns)) for record in records]
        none = note("No index: every query reads every object. create_indexes(MinMaxIndex('column'), …) makes some.")
        return [facts([("columns", columns)]), table(["index", "on"], rows) if rows else none]


def _refuse_what_is_no_index(verb: str, given: Iterable[Any]) -> None:
    """Raise when a column's name, or anything else, stands where an index is wanted."""
    for one in given:
        if not isinstance(one, Index):
            example = f"MinMaxIndex({one!r})" if isinstance(one, str) else "MinMaxIndex('ts')"
            msg = f"{verb} takes indexes, for example {example}, not {one!r}"
            raise IndexingError(msg)
