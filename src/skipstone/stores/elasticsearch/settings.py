"""What ``spark.skipstone.elasticsearch.*`` says: where the server is, how to be let in, how long to wait."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from skipstone.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PREFIX", "ServerSettings"]

PREFIX = "elasticsearch."
"""How the settings begin, after ``spark.skipstone.``."""

_KNOWN = ("url", "index", "user", "password", "apiKey", "caFile", "verify", "timeoutSeconds", "retries")
_DEFAULT_INDEX = "skipstone"
_INDEX = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How a server is reached; credentials are in no text that is made of it.

    Parameters
    ----------
    url
        ``http://host:port`` or ``https://host:port``, with a path if the server is behind one.
    index
        How the names of the indices begin.
    user, password
        For basic authentication.
    api_key
        For ``Authorization: ApiKey …``, in place of user and password.
    ca_file
        Certificates to trust, in place of the machine's.
    verify
        Whether the server must prove who it is.
    timeout_seconds
        How long one request of a query may take, repetitions included.
    retries
        How often a request is repeated when the server is busy or cannot be reached.
    """

    url: str
    index: str = _DEFAULT_INDEX
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    api_key: str = field(default="", repr=False)
    ca_file: str = ""
    verify: bool = True
    timeout_seconds: float = 8.0
    retries: int = 3

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.username is not None or parts.password is not None:
            _refuse("url", "has a user in it: give spark.skipstone.elasticsearch.user and .password instead")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            _refuse("url", f"is {self.url!r}: give the server's address, for example https://search.example:9200")
        if not _INDEX.fullmatch(self.index):
            _refuse("index", f"is {self.index!r}: give lower-case letters, digits, '_', '-' and '.'")
        if self.api_key and self.user:
            _refuse("apiKey", "is given beside a user: give the one or the other")
        if bool(self.user) != bool(self.password):
            _refuse("user", "and .password belong together: give both or none")
        if any(not c.isprintable() for c in self.user + self.password + self.api_key) or ":" in self.user:
            _refuse("user", "or .password or .apiKey has a character that no HTTP header can carry")
        object.__setattr__(self, "url", self.url.rstrip("/"))

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Self:
        """Read a session's settings, given without ``spark.skipstone.``.

        Raises
        ------
        SettingError
            When one is missing, not known, or makes no sense.
        """
        own = {k.removeprefix(PREFIX): v.strip() for k, v in settings.items() if k.startswith(PREFIX)}
        unknown = sorted(own.keys() - set(_KNOWN))
        if unknown:
            _refuse(unknown[0], f"is no setting of this store: there are {', '.join(_KNOWN)}")
        if not own.get("url"):
            _refuse("url", "is not set: give the server's address, for example https://search.example:9200")
        verify = own.get("verify") or "true"
        if verify.lower() not in ("true", "false"):
            _refuse("verify", f"is {verify!r}: give true or false")
        return cls(
            url=own["url"],
            index=own.get("index") or _DEFAULT_INDEX,
            user=own.get("user", ""),
            password=own.get("password", ""),
            api_key=own.get("apiKey", ""),
            ca_file=own.get("caFile", ""),
            verify=verify.lower() == "true",
            timeout_seconds=_number(own, "timeoutSeconds", "8", 0.1, 600),
            retries=int(_number(own, "retries", "3", 0, 20)),
        )


def _number(own: Mapping[str, str], name: str, default: str, least: float, most: float) -> float:
    text = own.get(name) or default
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        _refuse(name, f"is {text!r}: give a number from {least:g} to {most:g}")
    return number


def _refuse(name: str, what: str) -> None:
    msg = f"spark.skipstone.{PREFIX}{name} {what}"
    raise SettingError(msg)
