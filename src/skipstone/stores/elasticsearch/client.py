"""Talking to the server: JSON over HTTP, with bounded time, repetition where that helps, and errors in plain words.

Everything that is sent may be sent twice: documents have ids of their own, and what must happen once is conditional.
"""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skipstone.errors import MetadataStoreError, SettingError
from skipstone.stores.timing import timed_read

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skipstone.stores.elasticsearch.settings import ServerSettings

__all__ = ["Answer", "Client", "reason_of"]

_log = logging.getLogger(__name__)
_JSON = "application/json"
_LINES = "application/x-ndjson"
_BUSY = (429, 502, 503, 504)
_CONNECT_SECONDS = 3.0
_WRITE_SECONDS = 120.0
_PAUSE_SECONDS = 5.0
"""For how long a server that did not answer is not asked again by queries."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said: the status, the JSON, and how many bytes that was."""

    status: int
    content: dict[str, Any]
    size: int


class Client:
    """Sends requests to one server.

    Parameters
    ----------
    settings
        Where it is, and how long to wait.

    Raises
    ------
    SettingError
        When the extra that brings the HTTP client is not installed, or a certificate file cannot be read.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self.url = settings.url
        self.requests = 0
        self._settings = settings
        self._lock = threading.Lock()
        self._silent: tuple[float, str] = (0.0, "")
        self._pool = _pool(settings)

    @timed_read
    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        lines: Iterable[Any] | bytes | None = None,
        accepts: tuple[int, ...] = (),
        write: bool = False,
    ) -> Answer:
        """Send a request and return the answer.

        Parameters
        ----------
        method, path
            The HTTP method, and what follows the server's address.
        body
            What is sent as JSON.
        lines
            What is sent as a JSON text per line instead, or the bytes of that.
        accepts
            Statuses of 400 and above that are answers to the caller and not errors.
        write
            Whether this belongs to a commit: it may take longer, and a server that was silent a moment ago is asked.

        Raises
        ------
        MetadataStoreError
            When the server does not answer, does not let us in, or says that the request failed.
        """
        data, kind = _encoded(body, lines)
        seconds = max(_WRITE_SECONDS, self._settings.timeout_seconds) if write else self._settings.timeout_seconds
        if not write:
            self._refuse_silent()
        answer = self._repeated(method, path, data, kind, time.monotonic() + seconds)
        if answer.status in (401, 403):
            msg = (
                f"the search server {self.url} refuses the credentials (status {answer.status}): check "
                "spark.skipstone.elasticsearch.user and .password, or .apiKey, and what they may do"
            )
            raise MetadataStoreError(msg)
        if answer.status >= 300 and answer.status not in accepts:
            msg = f"the search server {self.url} answered {method} {path.partition('?')[0]} with {answer.status}: "
            raise MetadataStoreError(msg + reason_of(answer.content))
        return answer

    def _repeated(self, method: str, path: str, data: bytes | None, kind: str, deadline: float) -> Answer:
        """Send until the server answers, it was tried often enough, or time is up."""
        tries = 0
        while True:
            try:
                answer = self._once(method, path, data, kind, deadline)
                if answer.status not in _BUSY:
                    self._silent = (0.0, "")
                    return answer
                problem = f"it is busy or unavailable (status {answer.status})"
            except _NoAnswerError as error:
                problem = str(error)
            pause = (0.1 * 2**tries) * (0.5 + random.random())  # noqa: S311  (spreads repetitions, guards nothing)
            tries += 1
            if tries > self._settings.retries or time.monotonic() + pause >= deadline:
                self._silent = (time.monotonic() + _PAUSE_SECONDS, problem)
                msg = f"the search server {self.url} does not answer: {problem}"
                raise MetadataStoreError(msg)
            time.sleep(pause)

    def _once(self, method: str, path: str, data: bytes | None, kind: str, deadline: float) -> Answer:
        """Send once, within what is left of the time."""
        import urllib3

        left = max(0.05, deadline - time.monotonic())
        with self._lock:
            self.requests += 1
        try:
            found = self._pool.request(
                method,
                f"{self.url}/{path}",
                body=data,
                headers={**_credentials(self._settings), "Content-Type": kind, "Accept": _JSON},
                timeout=urllib3.Timeout(connect=min(_CONNECT_SECONDS, left), read=left),
                retries=False,
                redirect=False,
            )
        except urllib3.exceptions.NewConnectionError as error:
            msg = "it cannot be reached"
            raise _NoAnswerError(msg) from error
        except urllib3.exceptions.TimeoutError as error:
            msg = f"no answer within {left:.1f} s"
            raise _NoAnswerError(msg) from error
        except urllib3.exceptions.SSLError as error:
            msg = f"the search server {self.url} could not prove who it is: {_short(error)}; "
            raise MetadataStoreError(msg + "check spark.skipstone.elasticsearch.caFile") from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            msg = f"it cannot be reached ({type(error).__name__})"
            raise _NoAnswerError(msg) from error
        content = found.data
        try:
            parsed = json.loads(content) if content else {}
        except ValueError as error:
            if found.status in _BUSY or found.status in (401, 403):  # from something in front of the server
                return Answer(found.status, {}, len(content))
            msg = f"the search server {self.url} answered with something that is not JSON (status {found.status})"
            raise MetadataStoreError(msg) from error
        if not isinstance(parsed, dict):
            msg = f"the search server {self.url} answered with something else than an object (status {found.status})"
            raise MetadataStoreError(msg)
        return Answer(found.status, parsed, len(content))

    def _refuse_silent(self) -> None:
        """Let queries go on at once while a server is known to be silent, instead of each waiting for it."""
        until, problem = self._silent
        if time.monotonic() < until:
            msg = f"the search server {self.url} did not answer a moment ago: {problem}"
            raise MetadataStoreError(msg)


class _NoAnswerError(Exception):
    """The server did not answer; asking again may help."""


def reason_of(content: Any) -> str:
    """Return what an error answer says, shortened."""
    found = content.get("error", content) if isinstance(content, dict) else content
    if isinstance(found, dict):
        causes = found.get("root_cause")
        cause = causes[0] if isinstance(causes, list) and causes and isinstance(causes[0], dict) else found
        found = f"{cause.get('type', 'error')}: {cause.get('reason', '')}"
    return str(found)[:300]


def _encoded(body: Any, lines: Iterable[Any] | bytes | None) -> tuple[bytes | None, str]:
    """Return the bytes to send and their type."""
    if isinstance(lines, bytes):
        return lines, _LINES
    if lines is not None:
        return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines), _LINES
    return (None if body is None else json.dumps(body, separators=(",", ":")).encode()), _JSON


def _credentials(settings: ServerSettings) -> Mapping[str, str]:
    """Return the header that lets us in, made where it is used and kept nowhere."""
    import urllib3

    if settings.api_key:
        return {"Authorization": f"ApiKey {settings.api_key}"}
    if settings.user:
        pair = f"{settings.user}:{settings.password}"
        return dict(urllib3.make_headers(basic_auth=pair.encode().decode("latin-1")))
    return {}


def _pool(settings: ServerSettings) -> Any:
    """Make the connections; without the extra, say how to get it."""
    try:
        import urllib3
    except ImportError:
        msg = "the metadata store 'elasticsearch' needs an HTTP client: pip install 'skipstone[elasticsearch]'"
        raise SettingError(msg) from None
    if settings.verify:
        if settings.ca_file:
            _check_certificates(settings.ca_file)
        return urllib3.PoolManager(maxsize=8, cert_reqs="CERT_REQUIRED", ca_certs=settings.ca_file or None)
    _log.warning("%s: the search server need not prove who it is (elasticsearch.verify is false)", settings.url)
    urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    return urllib3.PoolManager(maxsize=8, cert_reqs="CERT_NONE", assert_hostname=False)


def _check_certificates(file: str) -> None:
    import ssl

    try:
        ssl.create_default_context(cafile=file)
    except (OSError, ssl.SSLError) as error:
        msg = f"spark.skipstone.elasticsearch.caFile is {file!r}, which cannot be read as certificates: {error}"
        raise SettingError(msg) from error


def _short(error: object) -> str:
    return str(error)[:200]
