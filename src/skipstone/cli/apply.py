"""``skipstone apply``: the indexes of datasets as a file says, for people who keep such files under version control."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skipstone.cli.indexes import make_index, parse_index
from skipstone.cli.output import Output, print_json
from skipstone.cli.session import quiet_session
from skipstone.cli.support import ConfOption, OutputOption, failing_politely
from skipstone.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from skipstone.dataset import Dataset
    from skipstone.indexing.index import Index

__all__ = ["Stated", "add_apply", "read_file"]


@dataclass(frozen=True)
class Stated:
    """What a file says of a dataset: where it is, how it is read, and the indexes that it should have."""

    indexes: tuple[Any, ...]
    path: str | None = None
    table: str | None = None
    format: str = "parquet"
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def called(self) -> str:
        """What people call it."""
        return str(self.table or self.path)

    def dataset(self, spark: SparkSession) -> Dataset:
        """Return the dataset."""
        from skipstone.dataset import Dataset

        if self.table is not None:
            return Dataset.for_table(spark, self.table)
        return Dataset.for_path(spark, str(self.path), format=self.format, schema=self.schema, **self.options)

    def made(self) -> list[Index]:
        """Return the indexes."""
        return [_index(one, self.called) for one in self.indexes]


def read_file(file: Path) -> list[Stated]:
    """Read a file of datasets and their indexes, in YAML or JSON.

    Raises
    ------
    SettingError
        When it cannot be read, or does not say what it should.
    """
    import yaml

    try:
        told = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"{file} cannot be read: {error.strerror or error}"
        raise SettingError(msg) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        msg = f"{file} is not YAML: {' '.join(str(error).split())}"
        raise SettingError(msg) from error
    datasets = told.get("datasets") if isinstance(told, dict) else None
    if not isinstance(datasets, list) or not datasets or set(told) != {"datasets"}:
        msg = f"{file} should have a list of datasets, as in datasets: [{{path: /lake/logs, indexes: [minmax(ts)]}}]"
        raise SettingError(msg)
    return [_stated(one, f"dataset {number} of {file}") for number, one in enumerate(datasets, 1)]


def _stated(told: Any, which: str) -> Stated:
    """Read what is said of one dataset."""
    allowed = [f.name for f in fields(Stated)]
    if not isinstance(told, dict):
        msg = f"{which} should have the keys path (or table) and indexes, not be {told!r}"
        raise SettingError(msg)
    for key in told:
        if key not in allowed:
            close = difflib.get_close_matches(str(key), allowed, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(allowed))}"
            msg = f"{which} has the key {key!r}: {hint}"
            raise SettingError(msg)
    if ("path" in told) == ("table" in told):
        msg = f"{which} should have a path or a table, one of the two"
        raise SettingError(msg)
    if not isinstance(told.get("indexes"), list) or not told["indexes"]:
        msg = f"{which} should have a list of indexes, such as [minmax(ts)]"
        raise SettingError(msg)
    options = told.get("options") or {}
    if not isinstance(options, dict):
        msg = f"{which} should have options as key: value"
        raise SettingError(msg)
    spelled = {str(k): _spelled(v) for k, v in options.items()}
    return Stated(**{**told, "indexes": tuple(told["indexes"]), "options": spelled})


def _spelled(value: Any) -> str:
    """Return the text of a reader's option: YAML's true is Spark's."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _index(told: Any, called: str) -> Index:
    """Make an index of its name, or of a mapping with its type, its columns and its options."""
    if isinstance(told, str):
        return parse_index(told)
    if not isinstance(told, dict) or not isinstance(told.get("type"), str):
        msg = f"{called}: an index is written minmax(ts), or as a mapping with type, columns and options, not {told!r}"
        raise SettingError(msg)
    options = {str(k): v for k, v in told.items() if k not in {"type", "columns"}}
    columns = told.get("columns", [])
    return make_index(told["type"].lower(), [columns] if isinstance(columns, str) else columns, options, str(told))


def add_apply(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def apply(
        file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML: datasets and the indexes they should have.")],
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
        location: Annotated[
            str | None,
            typer.Option("--location", metavar="FOLDER", help="Where metadata is kept; else beside the data."),
        ] = None,
        conf: ConfOption = None,
        output: OutputOption = Output.TEXT,
    ) -> None:
        """Create the indexes that a file names and a dataset lacks, and refresh the others.

        Indexes that the file does not name are kept, and said; drop them with: skipstone drop.
        """
        with failing_politely(output):
            stated = read_file(file)
            hive = any(one.table is not None for one in stated)
            spark = quiet_session(conf or (), location=location, hive=hive)
            done = [_applied(spark, one, dry_run=dry_run) for one in stated]
            if output is Output.JSON:
                print_json({"dry_run": dry_run, "datasets": done})
            else:
                typer.echo("\n".join(_told(one, dry_run=dry_run) for one in done))


def _applied(spark: SparkSession, stated: Stated, *, dry_run: bool) -> dict[str, Any]:
    """Ensure the indexes of one dataset, or only look which are missing."""
    from skipstone import registry
    from skipstone.settings import get_setting

    registry.load_plugins(get_setting(spark, "plugins"))
    dataset = stated.dataset(spark)
    indexes = stated.made()
    missing = [index.name for index in dataset.missing_indexes(*indexes)]
    there = [row["name"] for row in dataset.describe().collect()]
    report = None if dry_run else dataset.ensure_indexes(*indexes)
    wanted = {index.name for index in indexes if "*" not in index.columns}
    others = [] if any("*" in index.columns for index in indexes) else [name for name in there if name not in wanted]
    return {"root": dataset.root, "create": missing, "refresh": there, "not_in_file": others, "report": report}


def _told(done: Mapping[str, Any], *, dry_run: bool) -> str:
    """Return what was done, or would be, to one dataset."""
    lines = [str(done["report"])] if not dry_run else [f"{done['root']}:"]
    if dry_run:
        lines += [f"  would create {name}" for name in done["create"]]
        lines += [f"  would refresh {name}" for name in done["refresh"]]
    lines += [f"  not in the file, and kept: {name}" for name in done["not_in_file"]]
    return "\n".join(lines)
