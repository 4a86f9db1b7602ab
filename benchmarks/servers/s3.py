"""An S3 server over folders of this machine, behind the delay proxy: nothing is uploaded, a folder is a bucket.

The server is the Versity gateway, built once by ``go install`` into the cache of the tests.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers.downloads import CACHE
from tests.servers.s3 import s3a_settings

__all__ = ["Request", "S3Store", "gateway", "object_store", "proxy", "running"]

MODULE = "github.com/versity/versitygw/cmd/versitygw@latest"
ACCESS, SECRET = "skipstone", "of-no-secret"  # the server lives as long as the experiment, on the loopback interface
ETAG = "generated"  # of every object that was not written through the server; S3A insists on one
_STARTS_WITHIN = 30


@dataclass(frozen=True)
class Request:
    """One request as the proxy saw it; ``bytes`` of its answer's body were sent, ``whole`` unless it was aborted."""

    method: str
    bucket: str
    key: str
    listing: bool
    range: str | None
    status: int
    bytes: int
    sent: int
    whole: bool
    at: float
    first: float
    seconds: float


class S3Store:
    """A running server, seen through its proxy."""

    def __init__(self, url: str, log: Path) -> None:
        self.url = url
        self._log = log
        self._read = 0

    def requests(self) -> list[Request]:
        """Return the requests since this was last asked, once nothing is under way."""
        with urllib.request.urlopen(f"{self.url}/-/settle", timeout=30) as answer:
            answer.read()
        with self._log.open("rb") as log:
            log.seek(self._read)
            lines = log.read()
        self._read += len(lines)
        return [Request(**json.loads(line)) for line in lines.splitlines()]

    def s3a_settings(self, *, connections: int) -> dict[str, str]:
        """Return the settings of a session that reads from here; its input streams neither prefetch nor cache."""
        return {
            **s3a_settings(self.url),
            "spark.hadoop.fs.s3a.access.key": ACCESS,
            "spark.hadoop.fs.s3a.secret.key": SECRET,
            "spark.hadoop.fs.s3a.input.stream.type": "classic",
            "spark.hadoop.fs.s3a.connection.maximum": str(max(100, connections)),
        }

    def client_options(self) -> dict[str, str]:
        """Return the options with which other clients read from here."""
        return {
            "aws_endpoint_url": self.url,
            "aws_region": "us-east-1",
            "aws_access_key_id": ACCESS,
            "aws_secret_access_key": SECRET,
            "aws_allow_http": "true",
        }


@contextmanager
def object_store(buckets: Mapping[str, str], latency: float, bandwidth: float) -> Iterator[S3Store]:
    """Serve folders as buckets, each answer late and slow."""
    with tempfile.TemporaryDirectory(prefix="skipstone-s3-") as scratch:
        folder = Path(scratch)
        with (
            gateway(buckets, folder) as port,
            proxy(port, folder, latency=latency, bandwidth=bandwidth) as store,
        ):
            yield store


@contextmanager
def gateway(buckets: Mapping[str, str], folder: Path) -> Iterator[int]:
    """Run the gateway; gives its port."""
    root = folder / "buckets"
    root.mkdir()
    for name, path in buckets.items():
        (root / name).symlink_to(path)
    port = _free_port()
    command = [
        *(str(_binary()), "--port", f"127.0.0.1:{port}", "--keep-alive", "--quiet"),
        *("posix", "--bucketlinks", "--sidecar", str(_made(folder / "sidecar")), "--default-etag", ETAG, str(root)),
    ]
    environment = {**os.environ, "ROOT_ACCESS_KEY": ACCESS, "ROOT_SECRET_KEY": SECRET}
    with running(command, folder / "gateway.log", environment=environment) as process:
        _wait(lambda: _answers(port), process, folder / "gateway.log")
        yield port


@contextmanager
def proxy(port: int, folder: Path, *, latency: float, bandwidth: float) -> Iterator[S3Store]:
    """Run the delay proxy in front of a port."""
    command = [sys.executable, "-m", "benchmarks.servers.delay_proxy", str(folder), "--server", str(port)]
    command += ["--latency", str(latency), "--bandwidth", str(bandwidth)]
    told = folder / "port"
    with running(command, folder / "proxy.log") as process:
        _wait(told.exists, process, folder / "proxy.log")
        yield S3Store(f"http://127.0.0.1:{told.read_text()}", folder / "requests")


@contextmanager
def running(
    command: Sequence[str], output: Path, *, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server for a block; it ends with the block, and with whoever started it."""
    with output.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            cwd=Path(__file__).parents[2],
            preexec_fn=_end_with_parent,  # noqa: PLW1509  (nothing else is done between fork and exec)
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def _binary() -> Path:
    """Return the gateway, built unless the cache has it."""
    kept = CACHE / "go" / "versitygw"
    if kept.exists():
        return kept
    if shutil.which("go") is None:
        msg = "object-storage conditions need the Versity gateway: install Go, which builds it once, and run again"
        raise RuntimeError(msg)
    kept.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "GOBIN": str(kept.parent)}
    done = subprocess.run(
        ["go", "install", MODULE], env=environment, capture_output=True, text=True, check=False, timeout=1_800
    )
    if done.returncode:
        msg = f"go install {MODULE} failed: {done.stderr[-1000:]}"
        raise RuntimeError(msg)
    return kept


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _wait(ready: Callable[[], bool], process: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + _STARTS_WITHIN
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            msg = f"{output.stem} did not start: {output.read_text(errors='replace')[-2000:]}"
            raise RuntimeError(msg)
        time.sleep(0.02)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
