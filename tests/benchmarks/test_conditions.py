"""The delay proxy: it delays, paces, counts and passes on; the S3 server behind it accepts what was signed for it."""

from __future__ import annotations

import asyncio
import http.client
import io
import shutil
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from benchmarks.conditions import Conditions, Count
from benchmarks.servers.delay_proxy import DelayProxy
from benchmarks.servers.s3 import S3Store, object_store, proxy
from tests.servers.downloads import CACHE, unavailable

BODY = bytes(range(256)) * 4_096  # 1 MiB


class _Handler(BaseHTTPRequestHandler):
    """A server with one object; it knows ranges, chunks, and a few ways to misbehave."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    seen: ClassVar[list[tuple[str, str, str]]] = []

    def do_GET(self) -> None:
        self.seen.append((self.command, self.path, self.headers["Host"]))
        if self.path == "/bucket/dies":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif self.path == "/bucket/short":
            self._head(200, 1_000)
            self.wfile.write(b"x" * 10)
            self.close_connection = True
        elif self.path == "/bucket/chunks":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")
        elif self.path == "/bucket/until-closed":
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"to the end")
        elif self.path.startswith("/bucket/absent"):
            self._head(404, 4)
            self.wfile.write(b"none")
        else:
            spelled = self.headers.get("Range")
            first, last = map(int, spelled.removeprefix("bytes=").split("-")) if spelled else (0, len(BODY) - 1)
            body = BODY[first : last + 1]
            self._head(206 if spelled else 200, len(body))
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self._head(200, len(BODY))

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._head(200, len(answer := str(len(body)).encode()))
        self.wfile.write(answer)

    def _head(self, status: int, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, *said: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # with the default of 5, some of many connections at once are made a second later
    daemon_threads = True


@pytest.fixture(scope="module")
def server():
    serving = _Server(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    yield serving.server_port
    serving.shutdown()
    serving.server_close()
    thread.join(10)


@pytest.fixture(scope="module")
def far(server, tmp_path_factory):
    with proxy(server, tmp_path_factory.mktemp("far"), latency=0.1, bandwidth=4e6) as store:
        yield store


@pytest.fixture(scope="module")
def near(server, tmp_path_factory):
    with proxy(server, tmp_path_factory.mktemp("near"), latency=0.0, bandwidth=0.0) as store:
        yield store


def _connect(store: S3Store) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(store.url.removeprefix("http://"), timeout=60)


def _ask(connection: http.client.HTTPConnection, method: str, path: str, **options) -> tuple[int, bytes]:
    connection.request(method, path, **options)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_the_first_byte_comes_late_and_the_rest_slowly(far):
    far.requests()
    connection = _connect(far)
    started = time.perf_counter()
    connection.request("GET", "/bucket/object")
    answer = connection.getresponse()
    first = time.perf_counter() - started
    assert answer.read() == BODY
    whole = time.perf_counter() - started
    assert first >= 0.1
    assert whole - first >= 0.9 * len(BODY) / 4e6
    (request,) = far.requests()
    assert (request.method, request.bucket, request.key) == ("GET", "bucket", "object")
    assert (request.status, request.bytes, request.whole) == (200, len(BODY), True)
    assert request.first >= 0.1
    assert request.seconds >= request.first


def test_requests_on_different_connections_wait_at_the_same_time(far):
    far.requests()
    threads = 32

    def ask(_):
        return _ask(_connect(far), "GET", "/bucket/object", headers={"Range": "bytes=10-19"})

    with ThreadPoolExecutor(threads) as pool:
        answers = list(pool.map(ask, range(threads)))
    assert answers == [(206, BODY[10:20])] * threads
    requests = far.requests()
    assert [(r.range, r.bytes) for r in requests] == [("bytes=10-19", 10)] * threads
    # Were one served after the other, no two would be under way at once, however slow the machine.
    assert max(sum(r.at <= other.at < r.at + r.seconds for r in requests) for other in requests) > threads / 4


def test_a_connection_is_kept_and_the_host_is_not_touched(near):
    near.requests()
    _Handler.seen.clear()
    connection = _connect(near)
    for _ in range(3):
        assert _ask(connection, "GET", "/bucket/object", headers={"Range": "bytes=0-0"}) == (206, BODY[:1])
        local = connection.sock.getsockname()
        assert _ask(connection, "HEAD", "/bucket/object") == (200, b"")
        assert connection.sock.getsockname() == local
    assert {host for _, _, host in _Handler.seen} == {near.url.removeprefix("http://")}
    counted = [(r.method, r.bytes) for r in near.requests()]
    assert counted == [("GET", 1), ("HEAD", 0)] * 3


def test_every_way_to_end_a_body_is_passed_on(near):
    near.requests()
    connection = _connect(near)
    assert _ask(connection, "GET", "/bucket/chunks") == (200, b"hello world")
    assert _ask(connection, "GET", "/bucket/absent") == (404, b"none")
    assert _ask(connection, "PUT", "/bucket/new", body=b"x" * 200_000) == (200, b"200000")
    assert _ask(connection, "PUT", "/bucket/new", body=b"x", headers={"Expect": "100-continue"}) == (200, b"1")
    assert _ask(connection, "GET", "/bucket/until-closed") == (200, b"to the end")
    assert [(r.status, r.bytes, r.sent) for r in near.requests()] == [
        (200, 11, 0),
        (404, 4, 0),
        (200, 6, 200_000),
        (200, 1, 1),
        (200, 10, 0),
    ]


def test_listings_are_told_from_objects(near):
    near.requests()
    connection = _connect(near)
    _ask(connection, "GET", "/bucket/?list-type=2&prefix=a%2Fb&delimiter=%2F")
    _ask(connection, "GET", "/bucket/a%20b/c%3Dd", headers={"Range": "bytes=0-3"})
    listed, read = near.requests()
    assert (listed.listing, listed.bucket, listed.key) == (True, "bucket", "a/b")
    assert (read.listing, read.bucket, read.key) == (False, "bucket", "a b/c=d")


@pytest.mark.parametrize("path", ["/bucket/dies", "/bucket/short"])
def test_a_server_that_breaks_off_hangs_nobody(near, path):
    near.requests()
    connection = _connect(near)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        _ask(connection, "GET", path)
    assert [r.whole for r in near.requests()] == [False]
    assert _ask(_connect(near), "GET", "/bucket/object") == (200, BODY)


def test_a_client_that_breaks_off_is_counted_and_hangs_nobody(far):
    far.requests()
    connection = _connect(far)
    connection.request("GET", "/bucket/object")
    answer = connection.getresponse()
    answer.read(1_000)
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()
    answer.close()
    (request,) = far.requests()
    assert not request.whole
    assert 1_000 <= request.bytes < len(BODY)
    with socket.create_connection(("127.0.0.1", int(far.url.rpartition(":")[2]))) as rude:
        rude.sendall(b"not HTTP at all\r\n")
    assert _ask(_connect(far), "HEAD", "/bucket/object") == (200, b"")


@pytest.mark.parametrize(("latency", "bandwidth"), [(0.0, 0.0), (2.0, 0.0), (0.0, 1e6)])
def test_only_what_was_asked_for_is_waited_for(server, monkeypatch, latency, bandwidth):
    """Without delay it costs little: no timer, and no acknowledgement that TCP holds back."""
    waits, undelayed = [], []

    async def ask() -> None:
        delaying = DelayProxy("127.0.0.1", server, io.StringIO(), latency=latency, bandwidth=bandwidth)

        async def serve(reader, writer) -> None:
            undelayed.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            await delaying.serve(reader, writer)
            served.set()

        served = asyncio.Event()
        listening = await asyncio.start_server(serve, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(b"GET /bucket/object HTTP/1.1\r\nHost: here\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert await reader.readexactly(len(BODY)) == BODY
        writer.close()
        await asyncio.gather(writer.wait_closed(), served.wait())
        listening.close()

    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda seconds, *more: waits.append(seconds) or sleep(seconds, *more))
    asyncio.run(asyncio.wait_for(ask(), 120))
    assert bool(waits) == bool(latency or bandwidth)
    assert undelayed == [1]


@pytest.mark.long  # builds the gateway on first use, for minutes; only experiments use it
def test_the_gateway_serves_folders_to_who_signs(tmp_path):
    if not (CACHE / "go" / "versitygw").exists() and shutil.which("go") is None:
        unavailable("the Versity gateway", "there is no Go to build it")
    botocore = pytest.importorskip("botocore.session")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a b=1.parquet").write_bytes(BODY)
    (tmp_path / "metadata").mkdir()
    buckets = {"data": str(tmp_path / "data"), "metadata": str(tmp_path / "metadata")}
    with object_store(buckets, latency=0.05, bandwidth=50e6) as store:

        def client(secret: str):
            return botocore.get_session().create_client(
                "s3", "us-east-1", endpoint_url=store.url, aws_access_key_id="skipstone", aws_secret_access_key=secret
            )

        right = client("of-no-secret")
        listed = right.list_objects_v2(Bucket="data")["Contents"]
        assert [(entry["Key"], entry["Size"]) for entry in listed] == [("a b=1.parquet", len(BODY))]
        read = right.get_object(Bucket="data", Key="a b=1.parquet", Range="bytes=5-9")
        assert read["Body"].read() == BODY[5:10]
        assert read["ETag"]
        right.put_object(Bucket="metadata", Key="x/y", Body=b"kept", IfNoneMatch="*")
        assert (tmp_path / "metadata" / "x" / "y").read_bytes() == b"kept"
        with pytest.raises(right.exceptions.ClientError, match="PreconditionFailed"):
            right.put_object(Bucket="metadata", Key="x/y", Body=b"again", IfNoneMatch="*")
        with pytest.raises(right.exceptions.ClientError, match="SignatureDoesNotMatch"):
            client("guessed").list_objects_v2(Bucket="data")
        requests = store.requests()
        assert [r.status for r in requests] == [200, 206, 200, 412, 403]
        assert all(r.first >= 0.05 for r in requests)


def test_conditions_say_what_they_are():
    s3 = Conditions("s3", latency=0.02, bandwidth=10e6, threads=6)
    assert s3.described == (
        "S3A against a local S3 server, 20 ms to the first byte of an answer, 10 MB/s per answer, 6 threads"
    )
    assert Conditions("local", threads=3).described.endswith("3 threads")
    with pytest.raises(ValueError, match="choose local or s3"):
        Conditions("tape")


def test_traffic_is_counted_by_kind(server, tmp_path):
    from benchmarks.conditions import _s3_traffic

    with proxy(server, tmp_path, latency=0.0, bandwidth=0.0) as store:
        connection = _connect(store)
        _ask(connection, "GET", "/data/part", headers={"Range": "bytes=0-99"})
        _ask(connection, "HEAD", "/data/part")
        _ask(connection, "GET", "/metadata/part", headers={"Range": "bytes=0-9"})
        _ask(connection, "GET", "/data?list-type=2&prefix=", headers={"Range": "bytes=0-999"})
        traffic = _s3_traffic(store)
        assert traffic.by_kind == {"objects": Count(2, 100), "metadata": Count(1, 10), "listing": Count(1, 1_000)}
        assert (traffic.requests, traffic.bytes) == (4, 1_110)
        assert _s3_traffic(store).requests == 0
