"""The servers, and stores in them with a prefix of their own."""

from __future__ import annotations

import contextlib
import json
import urllib.error
import urllib.request
import uuid

import pytest
from tests.servers.search_server import KINDS, search_server

from skipstone.stores.elasticsearch.settings import ServerSettings
from skipstone.stores.elasticsearch.store import ElasticsearchStore

_running = contextlib.ExitStack()
_urls: dict[str, str] = {}


def server(kind: str) -> str:
    """Return the URL of a server, started when it is first asked for."""
    if kind not in _urls:
        _urls[kind] = _running.enter_context(search_server(kind))
    return _urls[kind]


def fresh_prefix() -> str:
    return f"t{uuid.uuid4().hex[:12]}"


_shared = fresh_prefix()


def make(url: str, prefix: str | None = None, **options) -> ElasticsearchStore:
    own = {name: options.pop(name) for name in list(options) if name in ServerSettings.__dataclass_fields__}
    own.setdefault("timeout_seconds", 60.0)  # servers of tests share two cores with the tests
    return ElasticsearchStore(ServerSettings(url, prefix or fresh_prefix(), **own), **options)


def send(url: str, method: str, path: str, body=None):
    """Talk to a server behind the store's back."""
    request = urllib.request.Request(
        f"{url}/{path}", json.dumps(body).encode() if body is not None else None, {"Content-Type": "application/json"}
    )
    request.get_method = lambda: method
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.loads(answer.read() or b"null")


def remove_indices(url: str, prefix: str) -> None:
    for name in ("heads", "chunks", "objects"):
        with contextlib.suppress(urllib.error.HTTPError):
            send(url, "DELETE", f"{prefix}-{name}")


@pytest.fixture(scope="session", autouse=True)
def servers():
    """Stop what was started."""
    yield
    for url in _urls.values():
        remove_indices(url, _shared)
    _running.close()
    _urls.clear()


# What holds of both servers is asked of one of them in every run: a second server takes as long to start as all these
# tests take. With ``--long`` both are asked.
EACH = [pytest.param(kind, marks=() if kind == "elasticsearch" else pytest.mark.long) for kind in KINDS]


@pytest.fixture(params=EACH)
def url(request) -> str:
    return server(request.param)


# For tests of what does not depend on the server: the one or, with ``--long``, the other too.
on_elasticsearch = pytest.mark.parametrize("url", ["elasticsearch"], indirect=True)
on_opensearch = pytest.mark.parametrize("url", EACH, indirect=True)


@pytest.fixture
def shared_prefix(url) -> str:
    """A prefix that tests have in common, where the making of indices would take longer than the tests."""
    return _shared


@pytest.fixture
def prefix(url):
    """A prefix of index names for one test; what it made is deleted."""
    name = fresh_prefix()
    yield name
    remove_indices(url, name)
