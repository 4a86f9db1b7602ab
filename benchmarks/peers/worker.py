"""The process with Delta and Iceberg, seen from here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks.peers.environment import interpreter, jars

__all__ = ["PeerTables", "linked", "peer_tables"]


class PeerTables:
    """Asks the process; one question at a time."""

    def __init__(self, folder: str, process: subprocess.Popen[str], answers: Any) -> None:
        self.folder = folder
        self._process = process
        self._answers = answers

    def __call__(self, do: str, **asked: Any) -> Any:
        """Ask for one thing that ``tables.Tables`` does."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **asked}) + "\n")
        self._process.stdin.flush()
        line = self._answers.readline()
        if not line:
            msg = f"the process with Delta and Iceberg has ended; {data.folder()}/peers.log has its output"
            raise RuntimeError(msg)
        answer = json.loads(line)
        if "error" in answer:
            msg = f"{do}: {answer['error']}"
            raise RuntimeError(msg)
        return answer["answer"]


@contextmanager
def peer_tables(*, threads: int, settings: dict[str, str] | None = None) -> Iterator[PeerTables]:
    """Run the process; its tables are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="peers-", dir=data.folder()) as folder:
        ours, theirs = os.pipe()
        options = {
            "answers": theirs,
            "folder": folder,
            "jars": jars(),
            "master": f"local[{threads}]",
            "settings": settings or {},
        }
        python = interpreter()
        script = Path(__file__).parent / "tables.py"
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "PYTHONPATH"))}
        with (data.folder() / "peers.log").open("w") as log:
            process = subprocess.Popen(
                [str(python), str(script), json.dumps(options)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=(theirs,),
                text=True,
                cwd=folder,
                env={**environment, "PYSPARK_PYTHON": str(python)},
            )
        os.close(theirs)
        with os.fdopen(ours) as answers:
            try:
                if answers.readline() != "ready\n":
                    msg = f"Spark with Delta and Iceberg did not start; {data.folder()}/peers.log says why"
                    raise RuntimeError(msg)
                yield PeerTables(folder, process, answers)
            finally:
                process.stdin.close()  # type: ignore[union-attr]
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def linked(path: str, folder: str) -> str:
    """Give the same files in a folder of their own, for a format that writes its log beside them; nothing is copied."""
    shutil.copytree(path, folder, copy_function=os.link)
    return folder
