"""The record of the long campaign: what was tried by all processes that ever took part, and its table on the page.

Several processes take part at a time, each with the smallest seed that nobody has tried or is trying.  A seed is
claimed by the lock of a file, which ends with its process: one that was broken off is tried by whoever comes next.
"""

from __future__ import annotations

import fcntl
import json
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.soundness.campaign import Counts

FIRST_SEED = 1_000
"""The seeds below are those of the suites."""
BEGIN, END = "<!-- campaign: begin -->", "<!-- campaign: end -->"
COUNTED = ("pairs", "refused", "not_comparable", "executed", "objects", "skipped", "relevant")


@dataclass(frozen=True)
class Record:
    """A file of counts, and a folder for locks, the same for all processes that add to the file."""

    file: Path

    @property
    def locks(self) -> Path:
        """The folder of the locks."""
        name = str(self.file.resolve()).replace("/", "-").strip("-")
        return Path(tempfile.gettempdir()) / "skipstone-campaign" / name

    def read(self) -> dict[str, Any]:
        """Return what was tried so far."""
        if self.file.exists():
            return dict(json.loads(self.file.read_text(encoding="utf-8")))
        return {"next": FIRST_SEED, "kinds": {}, "commits": {}, "failures": []}

    @contextmanager
    def claim(self) -> Iterator[int]:
        """Give the smallest seed that is neither tried nor being tried; nobody else has it meanwhile."""
        lock: IO[str] | None = None
        with self._locked():
            record = self.read()
            for seed in count(record["next"]):
                if seed not in record.get("ahead", ()) and (lock := self._lock(f"seed-{seed}", wait=False)):
                    break
        try:
            yield seed
        finally:
            assert lock is not None
            lock.close()

    def add(
        self, seed: int, kind: str, counts: Counts, failures: Sequence[str], *, seconds: float, commit: str
    ) -> dict[str, Any]:
        """Add what a dataset gave to whatever others have added meanwhile; return all of it."""
        with self._locked():
            record = self.read()
            of_kind = record["kinds"].setdefault(kind, {})
            for name, more in (
                ("datasets", 1),
                *((name, getattr(counts, name)) for name in COUNTED),
                ("timed_pairs", counts.pairs),
                ("seconds", round(seconds, 1)),
            ):
                of_kind[name] = round(of_kind.get(name, 0) + more, 1)
            for name in ("alone", "skipped_by_values"):
                record[name] = dict(Counter(record.get(name, {})) + getattr(counts, name))
            record["commits"][commit] = record["commits"].get(commit, 0) + counts.pairs
            record["failures"] += [f"seed {seed}, {commit}: {failure}" for failure in failures[:3]]
            ahead = {*record.get("ahead", ()), seed}
            while record["next"] in ahead:
                ahead.remove(record["next"])
                record["next"] += 1
            record["ahead"] = sorted(ahead)
            fresh = self.file.with_suffix(".new")
            fresh.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            fresh.replace(self.file)  # as a whole: a run may be broken off at any time
        return record

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep others from reading and writing the record."""
        lock = self._lock("record", wait=True)
        assert lock is not None
        with lock:
            yield

    def _lock(self, name: str, *, wait: bool) -> IO[str] | None:
        """Return an open file that is locked until it is closed; ``None`` when another process has it."""
        self.locks.mkdir(parents=True, exist_ok=True)
        file = (self.locks / name).open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.close()
            return None
        return file


def pairs(record: dict[str, Any]) -> int:
    """Count the predicates that were compared."""
    return sum(int(kind["pairs"]) for kind in record["kinds"].values())


def table(record: dict[str, Any]) -> str:
    """Lay the counts out for the page."""
    titles = ("predicates on", "datasets", "compared", "run as queries", "objects asked about", "with a matching row")
    lines = [f"| {' | '.join((*titles, 'skipped'))} |", "|---|" + "---:|" * 6]
    names = ("datasets", "pairs", "executed", "objects", "relevant", "skipped")
    rows = [(kind, [counts[name] for name in names]) for kind, counts in sorted(record["kinds"].items())]
    rows.append(("**all**", [sum(column) for column in zip(*(row for _, row in rows), strict=True)]))
    lines += [f"| {kind} | {' | '.join(f'{value:,}' for value in row)} |" for kind, row in rows]
    refused, unlike = (sum(kind[name] for kind in record["kinds"].values()) for name in ("refused", "not_comparable"))
    return "\n".join(
        (
            *lines,
            "",
            f"**{len(record['failures'])} failures.** Besides, {refused:,} predicates did not analyse and "
            f"{unlike:,} raise an error in Spark itself. Skipped by one type of index alone, beyond what its counts of "
            "NULLs skip: "
            + ", ".join(f"{type_} {count:,}" for type_, count in sorted(record["skipped_by_values"].items()))
            + f".{_rate(record)} By commit: "
            + ", ".join(f"{commit} {count:,}" for commit, count in record["commits"].items())
            + ".",
        )
    )


def _rate(record: dict[str, Any]) -> str:
    """Say how long it took, as far as that was recorded."""
    timed, seconds = (sum(k.get(name, 0) for k in record["kinds"].values()) for name in ("timed_pairs", "seconds"))
    if not seconds:
        return ""
    return f" {timed:,.0f} of them took {seconds / 3600:,.1f} hours of processes, {60 * timed / seconds:,.0f} a minute."


def write_page(record: dict[str, Any], page: Path) -> None:
    """Put the table into the page, between its marks."""
    text = page.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        msg = f"{page} has no place for the table: write {BEGIN} and {END} where it goes"
        raise ValueError(msg)
    before, _, rest = text.partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{table(record)}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
