"""The bridge matches the planner's answer with a listing as ``querying.prune`` does, only faster."""

from __future__ import annotations

import os
import random
import time
import uuid
from collections import Counter
from dataclasses import replace
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engines.spark.bridge.fake import records_of
from tests.support import conf

from skipstone import Dataset, MinMaxIndex, skipping_stats
from skipstone.engines.spark import planning
from skipstone.indexing.objects import DataObject
from skipstone.querying.plan import Decision, Plan
from skipstone.querying.prune import prune
from skipstone.stores.metadata_store import Evaluation, Snapshot

OLD = 1_700_000_000
KINDS = ("kept", "skipped", "stale", "unindexed")


def write(file, ids, modified=OLD):
    """Write an object with these ids; its time is given, so that no index job waits for it to age."""
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), file)
    os.utime(file, (modified, modified))


def listed(spark, df, folder):
    """List a scan's objects as the bridge does."""
    return [DataObject(*record) for record in records_of(spark, df, folder / f"{uuid.uuid4()}.listing")]


def counts_if_equal(spark, query, listing, answer):
    """Hold what the bridge does to a query against ``prune``; count the objects of each kind."""
    with skipping_stats(spark) as stats:
        read = {unquote(file).replace("file:///", "file:/") for file in query.inputFiles()}
    (entry,) = stats
    assert entry.error is None
    plan, objects = answer()
    expected = prune(plan, listing, objects)
    # Where nothing is skipped, inputFiles names other partitions too.
    assert read & {o.path for o in listing} == {o.path for o in expected.kept}
    counts = Counter({kind: len(getattr(expected, kind)) for kind in KINDS})
    assert {kind: getattr(entry.objects, kind) for kind in KINDS} == counts
    assert (entry.objects.total, entry.bytes_total) == (len(listing), sum(o.length for o in listing))
    assert entry.bytes_skipped == sum(o.length for o in expected.skipped)
    return counts


# --- any answer that the planner could give ---------------------------------------------------------------------------


class Given:
    """Stands for planner and store: one plan, and the objects of its snapshots."""

    def __init__(self, answers):
        self.tables = {}
        decisions = []
        for rows, kept in answers:
            snapshot = Snapshot(str(uuid.uuid4()), "", "", 1, (), len(rows))
            self.tables[snapshot.id] = pa.table(
                {
                    "digest": pa.array([r.digest for r in rows], pa.binary(16)),
                    **{name: [getattr(r, name) for r in rows] for name in ("length", "modified")},
                    "etag": pa.array([r.etag for r in rows], pa.string()),
                },
                schema=pa.schema(
                    [("digest", pa.binary(16)), ("length", pa.int64()), ("modified", pa.int64()), ("etag", pa.string())]
                ),
            )
            evaluation = None if kept is None else Evaluation(np.array(kept, np.bool_), 0)
            decisions.append(Decision(snapshot, None, evaluation))
        self.plan = Plan(tuple(decisions))

    def objects(self, snapshot, columns=None):
        return self.tables[snapshot.id]


@pytest.fixture(scope="module")
def partitioned(spark, tmp_path_factory):
    """A dataset in two partitions, with odd names and files of metadata that are shown; its objects."""
    scratch = tmp_path_factory.mktemp("prune")
    for part in (0, 1):
        for number, name in enumerate(("a", "b c", "ü", "d%20e", "_skipstone/f")):
            write(scratch / "data" / f"p={part}" / f"{name}.parquet", range(number + 1))
    with conf(spark, {"spark.sql.files.ignoredPathSegmentRegex": "^[.]"}):
        df = spark.read.option("recursiveFileLookup", "true").parquet(str(scratch / "data"))
        shown = listed(spark, df, scratch)
        assert any("_skipstone" in o.path for o in shown) or spark.version < "4.3"  # which always hides them
    plain = spark.read.parquet(str(scratch / "data"))
    return {"plain": (plain, listed(spark, plain, scratch)), "shown": (df, shown)}


def recorded(draw, listing):
    """Draw what a snapshot has of some listed objects, and of objects that are gone."""
    rows = []
    for one in listing:
        times = replace(one, modified=one.modified + draw(st.sampled_from((-1, 1))))
        length = replace(one, length=draw(st.sampled_from((0, one.length + 1))))
        rows += draw(st.sampled_from(([], [one], [one], [one], [times], [length], [replace(one, etag="e")], [one] * 2)))
    rows += [DataObject(f"file:/gone/{n}", 1, 1) for n in range(draw(st.integers(0, 2)))]
    return draw(st.permutations(rows))


@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_answer(spark, partitioned, data):
    dataset = data.draw(st.sampled_from(("plain", "shown")))
    df, listing = partitioned[dataset]
    answers = []
    for _ in range(data.draw(st.integers(0, 3))):
        rows = recorded(data.draw, listing)
        bits = st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))
        answers.append((rows, data.draw(st.one_of(st.none(), bits, bits, bits))))
    query = df.where("id >= 0")
    if dataset == "plain" and data.draw(st.booleans()):
        query, listing = df.where("id >= 0 AND p = 1"), [o for o in listing if "/p=1/" in o.path]
    given_ = Given(answers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "plan_scan", lambda *_, **__: given_.plan)
        patch.setattr(planning, "store_for", lambda *_: given_)
        counts_if_equal(spark, query, listing, lambda: (given_.plan, given_.objects))


# --- what the planner gives -------------------------------------------------------------------------------------------


class Lake:
    """A dataset in two partitions, of which one may be indexed by itself as well, and what happens to its objects."""

    def __init__(self, spark, folder, seed):
        self.spark, self.folder, self.random = spark, folder / "data", random.Random(seed)
        self.number = 0
        for part in (0, 1):
            for _ in range(self.random.randint(2, 4)):
                self.add(part)

    def add(self, part):
        self.number += 1
        self.put(self.folder / f"p={part}" / f"{self.number}.parquet", OLD + self.number)

    def put(self, file, modified):
        first = self.random.randrange(100)
        write(file, range(first, first + self.random.randint(1, 5)), modified)

    def happen(self):
        """Let something happen to each object, or not; and let new ones come."""
        for file in sorted(self.folder.glob("p=*/*.parquet")):
            match self.random.choice(("", "", "", "touch", "replace", "delete", "future")):
                case "touch":
                    os.utime(file, (OLD - 5, OLD - 5))
                case "replace":
                    self.put(file, OLD + 1_000)
                case "delete" if len(list(file.parent.iterdir())) > 2:
                    file.unlink()
                case "future":  # an index job does not trust it
                    os.utime(file, (time.time() + 7_200,) * 2)
        for part in range(self.random.randrange(3)):
            self.add(part)

    def index(self, folder):
        dataset = Dataset.for_path(self.spark, str(folder))
        report = dataset.refresh() if dataset.is_indexed else dataset.create_indexes(MinMaxIndex("id"))
        return report.untrusted


def test_what_the_planner_gives(spark, tmp_path, monkeypatch):
    heard = []
    plan_scan = planning.plan_scan

    def listening(relation, condition, store, *rest, **named):
        heard.append((plan_scan(relation, condition, store, *rest, **named), store.objects))
        return heard[-1][0]

    monkeypatch.setattr(planning, "plan_scan", listening)
    seen, snapshots, untrusted = Counter(), Counter(), 0
    for seed in range(8):
        lake = Lake(spark, tmp_path / str(seed), seed)
        inner = lake.folder / "p=1"
        for indexed in lake.random.sample([lake.folder, inner, lake.folder], lake.random.randint(1, 3)):
            lake.happen()
            untrusted += lake.index(indexed)
        lake.happen()
        for folder in (lake.folder, inner):
            df = spark.read.parquet(str(folder))
            listing = listed(spark, df, tmp_path)
            for _ in range(3):
                low = lake.random.randrange(110)
                query = df.where(f"id BETWEEN {low} AND {low + lake.random.randrange(60)}")
                seen += counts_if_equal(spark, query, listing, lambda: heard[-1])
                snapshots[len(heard[-1][0].decisions)] += 1
    assert min(seen[kind] for kind in KINDS) > 10, seen
    assert untrusted > 3
    assert snapshots.keys() == {0, 1, 2}
