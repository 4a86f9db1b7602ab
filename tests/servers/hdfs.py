"""A real HDFS for tests: a name node and a data node of Hadoop's mini cluster, in a JVM of their own."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from skipstone.engines.spark.bridge.build import find_java
from tests.servers.downloads import maven
from tests.shared_classes import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["hdfs_cluster"]

_JAR = "org.apache.hadoop:hadoop-client-minicluster:3.5.0"
_STARTS_WITHIN = 120


@contextmanager
def hdfs_cluster(folder: Path) -> Iterator[str]:
    """Run a cluster whose files go to a folder; gives the address of its root, without a slash at the end."""
    details, output = folder / "details.json", folder / "output"
    jars = [str(maven(_JAR)), str(Path(pyspark.__file__).parent / "jars" / "*")]
    command = [
        str(find_java()),
        "-Xmx512m",
        *OPTIONS.split(),
        "-cp",
        ":".join(jars),
        "org.apache.hadoop.test.MiniDFSClusterManager",
    ]
    command += ["-format", "-datanodes", "1", "-nnport", "0", "-writeDetails", str(details)]
    command += ["-D", f"hdfs.minidfs.basedir={folder / 'data'}", "-D", "dfs.namenode.fs-limits.min-block-size=0"]
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=folder)
    try:
        deadline = time.monotonic() + _STARTS_WITHIN
        while not details.exists() or not details.read_text().strip().endswith("}"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"HDFS did not start: {output.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)
        yield f"hdfs://127.0.0.1:{json.loads(details.read_text())['namenode_port']}"
    finally:
        process.terminate()
        process.wait(timeout=60)
