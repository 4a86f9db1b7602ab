"""A real S3 server for tests: moto in a process of its own, its requests one at a time and written to a log.

moto looks whether a key is there and then writes it: atomic only while it answers one request at a time.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote

from tests.servers.downloads import maven

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BUCKET", "JARS", "UNCONDITIONAL", "Request", "S3Server", "s3_server", "s3a_settings"]

BUCKET = "lake"
UNCONDITIONAL = "lake-of-old"
"""A bucket of which S3A is told that it knows no conditional creates."""
JARS = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    "software.amazon.awssdk:bundle:2.35.4",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
    "org.wildfly.openssl:wildfly-openssl:2.2.5.Final",
)
_STARTS_WITHIN = 60


@dataclass(frozen=True)
class Request:
    """One request as the server saw it; ``key`` is what it read, wrote or listed."""

    method: str
    key: str
    listing: bool
    status: int


class S3Server:
    """A running server."""

    def __init__(self, url: str, log: Path) -> None:
        self.url = url
        self._log = log

    def requests(self, skip: int = 0) -> list[Request]:
        """Return all requests but the first ``skip``."""
        lines = self._log.read_text().splitlines()[skip:]
        return [Request(**json.loads(line)) for line in lines]

    def put(self, key: str, data: bytes) -> None:
        """Write an object, more quickly than Hadoop does."""
        headers = {"Content-Type": "application/octet-stream"}
        request = urllib.request.Request(f"{self.url}/{BUCKET}/{quote(key)}", data, headers, method="PUT")
        urllib.request.urlopen(request, timeout=30).close()

    def lose_answers(self, count: int) -> None:
        """Carry out the next conditional creates, but close their connections without an answer."""
        self._tell(f"lose-answers/{count}")

    def same_second(self) -> None:
        """Return every object one modification time, as if all had been written within one second."""
        self._tell("same-second")

    def _tell(self, what: str) -> None:
        request = urllib.request.Request(f"{self.url}/-/{what}", method="POST", data=b"")  # no bucket is called "-"
        urllib.request.urlopen(request, timeout=10).close()


def s3a_settings(url: str) -> dict[str, str]:
    """Return the settings with which Spark reaches a server by ``s3a:``, for a session in a process of its own."""
    return {
        "spark.driver.extraClassPath": ":".join(str(maven(jar)) for jar in JARS),
        "spark.hadoop.fs.s3a.endpoint": url,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "spark.hadoop.fs.s3a.access.key": "skipstone",
        "spark.hadoop.fs.s3a.secret.key": "of-no-secret",
        f"spark.hadoop.fs.s3a.bucket.{UNCONDITIONAL}.create.conditional.enabled": "false",
    }


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """Run a server with two empty buckets; its files go to a folder."""
    port, log = folder / "port", folder / "requests"
    log.touch()
    with (folder / "output").open("wb") as output:
        command = [sys.executable, "-m", "tests.servers.s3", str(port), str(log)]
        here = Path(__file__).parents[2]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=here)
    try:
        deadline = time.monotonic() + _STARTS_WITHIN
        while not port.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the S3 server did not start: {(folder / 'output').read_text()[-2000:]}")
            time.sleep(0.05)
        server = S3Server(f"http://127.0.0.1:{port.read_text()}", log)
        for bucket in (BUCKET, UNCONDITIONAL):
            urllib.request.urlopen(urllib.request.Request(f"{server.url}/{bucket}", method="PUT"), timeout=30).close()
        yield server
    finally:
        process.terminate()
        process.wait(timeout=30)


class _Recording:
    """moto as a WSGI application: one request at a time, each a line of the log."""

    def __init__(self, app: Any, log: Path) -> None:
        self._app = app
        self._log = log.open("a", buffering=1)
        self._lock = threading.Lock()
        self._to_lose = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        with self._lock:
            return self._answer(environ, start_response)

    def _answer(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        path = environ["PATH_INFO"].encode("latin-1").decode("utf-8")
        if path.startswith("/-/"):
            self._told(path.removeprefix("/-/"))
            start_response("200 OK", [("Content-Length", "0")])
            return []
        told: list[Any] = []
        body = list(self._app(environ, lambda *answer: told.append(answer)))
        status = int(told[0][0].split()[0])
        query = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
        listing = environ["REQUEST_METHOD"] == "GET" and ("list-type" in query or "prefix" in query)
        key = query.get("prefix", [""])[0] if listing else path.lstrip("/").partition("/")[2]
        line = {"method": environ["REQUEST_METHOD"], "key": key, "listing": listing, "status": status}
        self._log.write(json.dumps(line) + "\n")
        if self._to_lose and environ.get("HTTP_IF_NONE_MATCH") == "*" and status == 200:
            self._to_lose -= 1
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionAbortedError
        start_response(*told[0])
        return body

    def _told(self, what: str) -> None:
        from datetime import UTC, datetime

        from moto.s3.models import s3_backends

        if what.startswith("lose-answers/"):
            self._to_lose = int(what.rpartition("/")[2])
        else:
            for account in s3_backends.values():
                for key in account["aws"].buckets[BUCKET].keys.values():
                    key.last_modified = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


def _serve(port: Path, log: Path) -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    class Handler(MotoRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_expect_100(self) -> bool:
            return True  # werkzeug says it, too, and S3A's client takes the second for the answer

    app = _Recording(DomainDispatcherApplication(create_backend_app), log)
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Handler)
    fresh = port.with_suffix(".new")
    fresh.write_text(str(server.server_port))
    fresh.rename(port)
    server.serve_forever()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), Path(sys.argv[2]))
