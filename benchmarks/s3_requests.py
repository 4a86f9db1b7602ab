"""What a needle query asks of S3: requests counted from the server's log, with and without skipping.

Data and metadata lie on a real S3 server on this machine (moto); one process makes the indexes and another, which has
seen nothing of them, asks.  Counts do not depend on how fast the machine is.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measures import Row

sys.path.insert(0, str(Path(__file__).parent.parent))  # the servers are those of the tests

from tests.servers.s3 import BUCKET, s3_server, s3a_settings
from tests.storage import steps
from tests.storage.workers import workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.s3 import Request, S3Server

COLD, WARM = 10, 2
ROOT = f"s3a://{BUCKET}/lake/tables/events"
PLAIN = f"s3a://{BUCKET}/lake/tables/plain"
STREAMS = {"analytics": "Hadoop's default input stream", "classic": "the classic input stream"}


def measure(*, small: bool) -> list[Row]:
    """Count with each of S3A's input streams, each in a process that has seen nothing."""
    objects = 100 if small else 2_000
    with tempfile.TemporaryDirectory(prefix="skipstone-s3-") as scratch:
        folder = Path(scratch)
        with s3_server(folder) as server:
            settings = s3a_settings(server.url)
            with workers(1, folder, settings) as (writer,):
                for n in range(objects):
                    server.put(f"lake/tables/events/part-{n:05d}.parquet", steps.content(n))
                server.put("lake/tables/plain/part.parquet", steps.content(0))
                writer.run(steps.create, ROOT)
            rows = []
            for stream, spelled in STREAMS.items():
                with workers(1, folder, {**settings, "spark.hadoop.fs.s3a.input.stream.type": stream}) as (asker,):
                    conditions = f"{objects:,} objects of 10 rows, MinMax and ValueList, three folders deep; {spelled}"
                    rows += _counted(server, asker.run, objects, conditions)
    return rows


def _counted(server: S3Server, run: Callable[..., int], objects: int, conditions: str) -> list[Row]:
    """Ask cold, warm and without skipping."""

    def requests(root: str, number: int, *, skipping: bool = True) -> list[Request]:
        before = len(server.requests())
        assert run(steps.find, root, number, skipping) == 1
        return server.requests(before)

    cold, warm = requests(ROOT, objects // 3), requests(ROOT, objects // 2)
    absent, remembered = requests(PLAIN, 0), requests(PLAIN, 0)
    without = requests(ROOT, objects // 4, skipping=False)
    opened = {r.key for r in [*cold, *warm] if r.key.endswith(".parquet")}
    assert len(opened) == 2, "each query was to open the one object that it needs"
    return [
        Row("requests for metadata, cold", _metadata(cold), "", COLD, conditions, details=_kinds(cold)),
        Row("… warm", _metadata(warm), "", WARM, conditions, details=_kinds(warm)),
        Row("… of a dataset without metadata, first", _metadata(absent), "", None, conditions),
        Row("… and again", _metadata(remembered), "", WARM, conditions),
        Row("all requests of the needle query, warm", len(warm), "", None, conditions),
        Row("… without skipping", len(without), "", None, conditions, details=_kinds(without)),
    ]


def _metadata(requests: list[Request]) -> int:
    return sum("_skipstone" in r.key for r in requests)


def _kinds(requests: list[Request]) -> dict[str, int]:
    """Count requests by what they are for."""
    found: dict[str, int] = {}
    for r in requests:
        place = "metadata" if "_skipstone" in r.key else "objects" if r.key.endswith(".parquet") else "folders"
        kind = f"{place}: {'LIST' if r.listing else r.method}"
        found[kind] = found.get(kind, 0) + 1
    return found
