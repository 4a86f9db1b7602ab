"""A real Elasticsearch or OpenSearch for tests: fetched once, started on a free port, stopped by its pid.

``SKIPSTONE_TEST_ELASTICSEARCH`` and ``SKIPSTONE_TEST_OPENSEARCH`` may name a server that is running already.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.servers.downloads import maven, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["KINDS", "search_server"]

HEAP = "512m"
START_SECONDS = 120
NOBODY = 65534


@dataclass(frozen=True)
class Distribution:
    coordinate: str
    variables: str
    settings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.coordinate.split(":")[1]


KINDS = {
    "elasticsearch": Distribution(
        "org.elasticsearch.distribution.integ-test-zip:elasticsearch:8.19.21:zip",
        "ES",
        ("xpack.security.enabled: false",),
    ),
    "opensearch": Distribution("org.opensearch.distribution.integ-test-zip:opensearch:2.19.6:zip", "OPENSEARCH"),
}


@contextlib.contextmanager
def search_server(kind: str) -> Iterator[str]:
    """Run one server of a kind for a block; gives its URL."""
    chosen = KINDS[kind]
    running = os.environ.get(f"SKIPSTONE_TEST_{kind.upper()}")
    if running:
        yield running
        return
    home = _home(chosen)
    folder = Path(tempfile.mkdtemp(prefix=f"skipstone-{kind}-"))
    port = _free_port()
    uid = NOBODY if os.getuid() == 0 else None  # neither server runs as root
    _configure(chosen, home, folder, port)
    if uid is not None:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, uid, uid)
    environment = {
        **os.environ,
        f"{chosen.variables}_PATH_CONF": str(folder / "config"),
        f"{chosen.variables}_TMPDIR": str(folder / "tmp"),
        f"{chosen.variables}_JAVA_HOME": _java_home(),
        f"{chosen.variables}_JAVA_OPTS": f"-Xms{HEAP} -Xmx{HEAP} -XX:TieredStopAtLevel=1",
        "HOME": str(folder),
    }
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(
            [str(home / "bin" / chosen.name)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=folder,
            user=uid,
            group=uid,
            extra_groups=None if uid is None else [],
            start_new_session=True,
            preexec_fn=_end_with_parent,  # noqa: PLW1509  (nothing else is done between fork and exec)
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url, process, folder / "output")
        yield url
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _end_with_parent() -> None:
    """Have the kernel stop the server when whoever started it is gone, however that ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def _home(chosen: Distribution) -> Path:
    """Return the folder of the unpacked server, readable for whoever runs it."""
    folder = unpacked(maven(chosen.coordinate))
    home = next(path.parent.parent for path in sorted(folder.glob(f"*/bin/{chosen.name}")))
    if os.getuid() != 0 or _is_reachable(home):
        return home
    copy = Path(tempfile.gettempdir()) / f"skipstone-{home.name}"  # a home folder that only root may enter
    if not copy.exists():
        fresh = Path(tempfile.mkdtemp(prefix=f"skipstone-{home.name}-"))
        shutil.copytree(home, fresh / home.name)
        fresh.chmod(0o755)
        with contextlib.suppress(OSError):  # another worker was first
            (fresh / home.name).rename(copy)
        shutil.rmtree(fresh, ignore_errors=True)
    return copy


def _is_reachable(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in (path, *path.parents))


def _configure(chosen: Distribution, home: Path, folder: Path, port: int) -> None:
    shutil.copytree(home / "config", folder / "config")
    for name in ("data", "logs", "tmp"):
        (folder / name).mkdir()
    options = folder / "config" / "jvm.options"
    lines = options.read_text().splitlines(keepends=True)
    options.write_text("".join(n for n in lines if not re.search(r"gc\.log|logs/|HeapDumpPath", n)))
    (folder / "config" / f"{chosen.name}.yml").write_text(
        "\n".join(
            [
                "discovery.type: single-node",
                f"path.data: {folder / 'data'}",
                f"path.logs: {folder / 'logs'}",
                "http.host: 127.0.0.1",
                "transport.host: 127.0.0.1",
                f"http.port: {port}",
                "transport.port: 0",
                "cluster.routing.allocation.disk.threshold_enabled: false",
                *chosen.settings,
                "",
            ]
        )
    )


def _wait(url: str, process: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/_cluster/health?wait_for_status=yellow", timeout=10):
                return
        except OSError:  # not yet
            pass
        if process.poll() is not None:
            break
        time.sleep(0.1)
    tail = output.read_text(errors="replace")[-3000:]
    msg = f"the search server did not start; its output ends with:\n{tail}"
    raise RuntimeError(msg)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _java_home() -> str:
    found = os.environ.get("JAVA_HOME")
    if found:
        return found
    java = shutil.which("java")
    if java is None:
        msg = "there is no java on the path, which the search servers need"
        raise RuntimeError(msg)
    return str(Path(java).resolve().parent.parent)
