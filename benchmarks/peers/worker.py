"""The process with Delta and Iceberg, seen from here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import data
from benchmarks.peers.environment import interpreter, jars

if TYPE_CHECKING:
    from benchmarks.conditions import Place

__all__ = ["PeerTables", "linked", "peer_tables"]


OURS = ("spark.skipstone.", "spark.driver.extraClassPath")  # settings that are not for other Sparks


class PeerTables:
    """Asks the process; one question at a time."""

    def __init__(self, process: subprocess.Popen[str], answers: Any) -> None:
        self._process = process
        self._answers = answers

    def __call__(self, do: str, **asked: Any) -> Any:
        """Ask for one thing that ``tables.Tables`` does."""
        line = ""
        with suppress(BrokenPipeError):
            print(json.dumps({"do": do, **asked}), file=self._process.stdin, flush=True)
            line = self._answers.readline()
        if not line:
            ended = self._process.poll()
            msg = f"the process with Delta and Iceberg has ended ({ended}); {data.folder()}/peers.log has its output"
            raise RuntimeError(msg)
        answer = json.loads(line)
        if "error" in answer:
            msg = f"{do}: {answer['error']}"
            raise RuntimeError(msg)
        return answer["answer"]


@contextmanager
def peer_tables(place: Place) -> Iterator[PeerTables]:
    """Run the process, where the data is; its tables are gone with the place's scratch folder."""
    settings = {name: value for name, value in place.settings.items() if not name.startswith(OURS)}
    with tempfile.TemporaryDirectory(prefix="peers-", dir=data.folder()) as folder:
        ours, theirs = os.pipe()
        options = {
            "answers": theirs,
            "folder": folder,
            "warehouse": f"{place.scratch_root}/iceberg",
            "jars": jars(s3a=place.store is not None),
            "settings": settings,
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
                yield PeerTables(process, answers)
            finally:
                with suppress(BrokenPipeError):
                    process.stdin.close()  # type: ignore[union-attr]
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def linked(path: str, folder: str) -> str:
    """Link the files in a folder of their own, for a format that writes its log beside them; nothing is copied."""
    shutil.copytree(path, folder, copy_function=os.link)
    return folder
