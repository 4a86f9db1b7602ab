"""A proxy that makes a server on this machine as far away as an object store: ``python -m … delay_proxy FOLDER …``.

Every answer's first byte leaves no earlier than ``latency`` seconds after its request came in, and its bytes leave no
faster than ``bandwidth`` a second; requests on different connections do not slow each other down.  Requests are passed
on as they are, ``Host`` included, so that signatures hold.  Each is one line of JSON in the log.

A client's connection has one connection to the server behind it; both are kept alive.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO
from urllib.parse import parse_qs, unquote, urlsplit

__all__ = ["DelayProxy"]

CHUNK = 1 << 16
HEAD_LIMIT = 1 << 20
SETTLE = b"/-/settle"
SETTLES_WITHIN = 5.0
NO_BODY = (204, 304)


class _ClosedError(ConnectionError):
    """One side closed its connection where it may: between an answer and the next request."""


@dataclass(frozen=True, slots=True)
class _Head:
    """The first lines of a request or an answer, as they came."""

    raw: bytes
    first: tuple[bytes, bytes, bytes]
    headers: dict[bytes, bytes]

    @property
    def chunked(self) -> bool:
        return b"chunked" in self.headers.get(b"transfer-encoding", b"").lower()

    @property
    def length(self) -> int | None:
        found = self.headers.get(b"content-length")
        return None if found is None else int(found)

    @property
    def closes(self) -> bool:
        return self.headers.get(b"connection", b"").lower() == b"close" or self.first[0] == b"HTTP/1.0"


async def _head(reader: asyncio.StreamReader) -> _Head:
    """Read a head; a connection that ends before it began is no error."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        raise _ClosedError from None
    line, *lines = raw[:-4].split(b"\r\n")
    words = (*line.split(b" ", 2), b"", b"")
    pairs = (line.partition(b":") for line in lines)
    return _Head(raw, words[:3], {name.strip().lower(): value.strip() for name, _, value in pairs})


class _Pace:
    """Holds bytes back so that they leave no faster than a rate; counts them."""

    def __init__(self, rate: float, started: float) -> None:
        self._rate = rate
        self._started = started
        self.bytes = 0

    async def passed(self, count: int) -> None:
        self.bytes += count
        if self._rate:
            ahead = self._started + self.bytes / self._rate - time.monotonic()
            if ahead > 0.001:
                await asyncio.sleep(ahead)


async def _relay(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, head: _Head, pace: _Pace, *, until_closed: bool
) -> None:
    """Pass a body on, whichever way its end is told."""
    if head.chunked:
        await _relay_chunks(source, target, pace)
    elif head.length is not None:
        await _relay_exactly(source, target, head.length, pace)
    elif until_closed:
        while data := await source.read(CHUNK):
            await _pass(target, data, pace)


async def _relay_exactly(source: asyncio.StreamReader, target: asyncio.StreamWriter, left: int, pace: _Pace) -> None:
    while left:
        data = await source.read(min(CHUNK, left))
        if not data:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(data)
        await _pass(target, data, pace)


async def _relay_chunks(source: asyncio.StreamReader, target: asyncio.StreamWriter, pace: _Pace) -> None:
    while True:
        line = await source.readuntil(b"\r\n")
        target.write(line)
        size = int(line.split(b";")[0], 16)
        if size == 0:
            break
        await _relay_exactly(source, target, size, pace)
        target.write(await source.readexactly(2))
    while line != b"\r\n":  # trailers, and the empty line after them
        line = await source.readuntil(b"\r\n")
        target.write(line)


async def _pass(target: asyncio.StreamWriter, data: bytes, pace: _Pace) -> None:
    target.write(data)
    await target.drain()
    await pace.passed(len(data))


class DelayProxy:
    """The proxy: who is connected, what is under way, and the log."""

    def __init__(self, host: str, port: int, log: TextIO, *, latency: float, bandwidth: float) -> None:
        self._server = (host, port)
        self._log = log
        self._latency = latency
        self._bandwidth = bandwidth
        self._under_way = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until it, or the server behind, closes."""
        behind: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            while True:
                request = await _head(reader)
                if request.first[1] == SETTLE:
                    await self._settle(writer)
                    continue
                if behind is None or behind[0].at_eof():
                    behind = await asyncio.open_connection(*self._server, limit=HEAD_LIMIT)
                if not await self._exchange(request, (reader, writer), behind):
                    break
        except (_ClosedError, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # closed, aborted or not HTTP: both connections end, which is what either side sees of the other
        finally:
            for open_writer in (writer, *(behind or ())[1:]):
                open_writer.close()
                with suppress(ConnectionError):
                    await open_writer.wait_closed()

    async def _exchange(
        self,
        request: _Head,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> bool:
        """Pass one request on and its answer back; say whether the connections stay open."""
        arrived, wall = time.monotonic(), time.time()
        pace, status, first, whole = _Pace(self._bandwidth, arrived), 0, 0.0, False
        upload = _Pace(self._bandwidth, arrived)
        self._under_way += 1
        try:
            server[1].write(request.raw)
            if request.headers.get(b"expect", b"").lower() == b"100-continue":
                client[1].write(b"HTTP/1.1 100 Continue\r\n\r\n")  # the server's own is dropped below
            await _relay(client[0], server[1], request, upload, until_closed=False)
            answer = await _head(server[0])
            while int(answer.first[1]) < 200:
                answer = await _head(server[0])
            status = int(answer.first[1])
            while (left := arrived + self._latency - time.monotonic()) > 0:  # a timer may be a little early
                await asyncio.sleep(left)
            first = time.monotonic() - arrived
            pace = _Pace(self._bandwidth, arrived + first)
            client[1].write(answer.raw)
            if request.first[0] != b"HEAD" and status not in NO_BODY:
                await _relay(server[0], client[1], answer, pace, until_closed=True)
            await client[1].drain()
            whole = True
            ends = answer.closes or request.closes or (answer.length is None and not answer.chunked)
            return not ends or request.first[0] == b"HEAD" or status in NO_BODY
        finally:
            self._under_way -= 1
            self._note(request, status, pace.bytes, upload.bytes, (wall, first, time.monotonic() - arrived), whole)

    def _note(
        self, request: _Head, status: int, received: int, sent: int, times: tuple[float, float, float], whole: bool
    ) -> None:
        """Write the line of one request."""
        method = request.first[0].decode("ascii", "replace")
        target = urlsplit(request.first[1].decode("latin-1"))
        bucket, _, key = unquote(target.path).lstrip("/").partition("/")
        query = parse_qs(target.query, keep_blank_values=True)
        listing = method == "GET" and not key and ("list-type" in query or "prefix" in query)
        line = {
            "method": method,
            "bucket": bucket,
            "key": query.get("prefix", [""])[0] if listing else key,
            "listing": listing,
            "range": request.headers.get(b"range", b"").decode("latin-1") or None,
            "status": status,
            "bytes": received,
            "sent": sent,
            "whole": whole,
            "at": round(times[0], 6),
            "first": round(times[1], 6),
            "seconds": round(times[2], 6),
        }
        self._log.write(json.dumps(line) + "\n")

    async def _settle(self, writer: asyncio.StreamWriter) -> None:
        """Answer when nothing is under way and the log is written."""
        deadline = time.monotonic() + SETTLES_WITHIN
        while self._under_way and time.monotonic() < deadline:
            await asyncio.sleep(0.002)
        self._log.flush()
        body = str(self._under_way).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()


async def _run(arguments: argparse.Namespace) -> None:
    with (arguments.folder / "requests").open("a", buffering=1 << 16) as log:
        proxy = DelayProxy("127.0.0.1", arguments.server, log, latency=arguments.latency, bandwidth=arguments.bandwidth)
        listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=HEAD_LIMIT, backlog=1024)
        fresh = arguments.folder / "port.new"
        fresh.write_text(str(listening.sockets[0].getsockname()[1]))
        fresh.rename(arguments.folder / "port")
        await listening.serve_forever()


def main() -> None:
    """Serve until stopped; the port and the log are files of the folder."""
    parser = argparse.ArgumentParser(description="Delay the answers of an HTTP server.")
    parser.add_argument("folder", type=Path, help="where the port and the log of requests are written")
    parser.add_argument("--server", type=int, required=True, help="port of the server on this machine")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds to the first byte of an answer")
    parser.add_argument(
        "--bandwidth", type=float, default=0.0, help="bytes a second of one answer; 0: as fast as may be"
    )
    arguments = parser.parse_args()
    try:
        import uvloop
    except ImportError:
        asyncio.run(_run(arguments))
    else:
        uvloop.run(_run(arguments))


if __name__ == "__main__":
    main()
