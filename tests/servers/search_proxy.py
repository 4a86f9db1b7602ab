"""A proxy in front of a search server that can be slow, busy, strict or rude, speaks TLS, and counts what it sees."""

from __future__ import annotations

import contextlib
import http.client
import ssl
import subprocess
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Proxy", "certificate", "proxy"]


@dataclass
class Proxy:
    """What the proxy does to requests; may be changed while it runs."""

    url: str = ""
    delay: float = 0.0
    busy: int = 0
    """How many of the next requests are answered with ``status`` instead of being passed on."""
    status: int = 503
    authorization: str | None = None
    swallow: str | None = None
    """Requests whose path holds this text are passed on, but their answer is not given."""
    seen: list[tuple[str, str, int]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    """Ends delays: nobody waits for their answers any more."""


@contextlib.contextmanager
def proxy(target: str, tls: tuple[Path, Path] | None = None) -> Iterator[Proxy]:
    """Run a proxy for a block; ``tls`` has the files of a certificate and its key."""
    state = Proxy()
    host = urlsplit(target).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            state.seen.append((self.command, self.path, len(body)))
            if state.delay and state.ended.wait(state.delay):
                self.close_connection = True
                return
            if state.authorization is not None and self.headers.get("Authorization") != state.authorization:
                self.give(401, b'{"error":"missing authentication credentials"}')
                return
            if state.busy:
                state.busy -= 1
                self.give(state.status, b"<html>busy</html>")
                return
            connection = http.client.HTTPConnection(host, timeout=30)
            connection.request(self.command, self.path, body, {"Content-Type": self.headers.get("Content-Type", "")})
            found = connection.getresponse()
            content = found.read()
            connection.close()
            if state.swallow is not None and state.swallow in self.path:
                self.close_connection = True
                return
            self.give(found.status, content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815

        def give(self, status: int, content: bytes) -> None:
            with contextlib.suppress(OSError):  # the other side has given up
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *arguments) -> None:
            """Be quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *arguments: None
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    state.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        state.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for this machine, signed by itself, and its key."""
    files = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return files
