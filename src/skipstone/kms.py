"""Key providers: who wraps and unwraps the keys that metadata is encrypted with (docs/security.md).

A provider is chosen by ``spark.skipstone.kms.class`` and by nothing else: metadata names keys, never a class.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import io
import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.errors import KeyProviderError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["KeyProvider", "LocalFileKeys", "allow_providers", "load_provider"]

_KEY = b"key"


class KeyProvider(ABC):
    """Wraps keys with the master keys of a key management service, and unwraps them again.

    Skipstone makes a fresh key for what it encrypts, and has it wrapped by the master key that an index names.  Master
    keys never reach Skipstone.  Any exception means "no key": the index is not used, and the query reads what it would
    have skipped.  The text of a ``KeyProviderError`` is shown to the user; of any other exception only its class is.

    Parameters
    ----------
    settings
        The session's ``spark.skipstone.kms.*`` settings without that prefix.  Sessions with equal settings share what
        was decrypted, so that whatever tells users apart (a token, a role) has to be among them.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = settings

    @abstractmethod
    def wrap_key(self, key: bytes, master_key: str) -> str:
        """Encrypt a key with the newest version of a master key; the text must say which version that was."""

    @abstractmethod
    def unwrap_key(self, wrapped: str, master_key: str) -> bytes:
        """Decrypt what ``wrap_key`` gave."""


class LocalFileKeys(KeyProvider):
    """Master keys in a JSON file, for tests and for trying things out: whoever can read the file has the keys.

    The file that ``spark.skipstone.kms.file`` names maps a key's name to its 16, 24 or 32 bytes in base64, or to a list
    of versions, the newest last: ``{"pii": ["MDEyMzQ1Njc4OWFiY2RlZg==", "ZmVkY2JhOTg3NjU0MzIxMA=="]}``.  A version that
    is destroyed becomes null, so that the others keep their places.
    """

    def wrap_key(self, key: bytes, master_key: str) -> str:
        """Encrypt with the newest version in the file."""
        versions = self._versions(master_key)
        number = len(versions) - 1
        return f"{number}:{base64.b64encode(_encrypted(key, self._version(versions, number, master_key))).decode()}"

    def unwrap_key(self, wrapped: str, master_key: str) -> bytes:
        """Decrypt with the version that encrypted."""
        number, _, text = wrapped.partition(":")
        if not number.isdigit():
            msg = f"this was not wrapped by the key {master_key!r} of a local file"
            raise KeyProviderError(msg)
        version = self._version(self._versions(master_key), int(number), master_key)
        try:
            return _decrypted(base64.b64decode(text, validate=True), version)
        except (OSError, ValueError, KeyError, pa.ArrowException):
            msg = f"the key file's {master_key!r} is not the key that was used"
            raise KeyProviderError(msg) from None

    def _versions(self, master_key: str) -> list[Any]:
        """Read a key's versions; the file is read each time, since keys come and go."""
        file = self.settings.get("file", "")
        try:
            versions = json.loads(Path(file).read_text(encoding="utf-8")).get(master_key)
        except (OSError, ValueError, AttributeError):
            msg = f"the key file {file!r} that spark.skipstone.kms.file names cannot be read as JSON"
            raise KeyProviderError(msg) from None
        if not versions:
            msg = f"the key file {file!r} has no key {master_key!r}"
            raise KeyProviderError(msg)
        return versions if isinstance(versions, list) else [versions]

    @staticmethod
    def _version(versions: list[Any], number: int, master_key: str) -> bytes:
        """Decode one version of a key."""
        if number >= len(versions) or versions[number] is None:
            msg = f"version {number} of the key {master_key!r} is not in the key file any more"
            raise KeyProviderError(msg)
        try:
            key = base64.b64decode(versions[number], validate=True)
        except (TypeError, ValueError, binascii.Error):
            key = b""
        if len(key) not in (16, 24, 32):
            msg = f"version {number} of the key {master_key!r} in the key file is not 16, 24 or 32 bytes in base64"
            raise KeyProviderError(msg)
        return key


_allowed: set[str] | None = None


def allow_providers(names: Iterable[str]) -> None:
    """Let settings name no other providers than these from now on: sessions of this process may be anyone's."""
    global _allowed  # noqa: PLW0603
    _allowed = set(names)


def load_provider(settings: Mapping[str, str]) -> KeyProvider:
    """Make the provider that the ``kms.*`` settings (without that prefix) describe.

    Raises
    ------
    KeyProviderError
        When there is none, or it cannot be made.
    """
    name = settings.get("class", "")
    if not name:
        msg = "spark.skipstone.kms.class is not set: name a key provider, such as skipstone.kms:LocalFileKeys"
        raise KeyProviderError(msg)
    if _allowed is not None and name not in _allowed:
        msg = (
            f"spark.skipstone.kms.class of this session names {name!r}: a server's companion takes only the one that "
            "the server's own settings name"
        )
        raise KeyProviderError(msg)
    module, _, attribute = name.replace(":", ".").rpartition(".")
    try:
        provider = getattr(importlib.import_module(module), attribute)(settings)
    except KeyProviderError:
        raise
    except Exception as error:
        msg = f"the key provider {name!r} of spark.skipstone.kms.class cannot be made: {type(error).__name__}"
        raise KeyProviderError(msg) from error
    if not callable(getattr(provider, "wrap_key", None)) or not callable(getattr(provider, "unwrap_key", None)):
        msg = f"{name!r} of spark.skipstone.kms.class is no key provider: it needs wrap_key and unwrap_key"
        raise KeyProviderError(msg)
    return provider


def _encrypted(data: bytes, key: bytes) -> bytes:
    """Encrypt bytes by AES-GCM, the way Parquet does it: in the footer of a file without rows."""
    from pyarrow.parquet import encryption

    made = io.BytesIO()
    schema = pa.schema([pa.field("nothing", pa.null())], metadata={_KEY: base64.b64encode(data)})
    with pq.ParquetWriter(made, schema, encryption_properties=_direct(encryption, "create_encryption_properties")(key)):
        pass  # the footer is all there is, and it is encrypted
    return made.getvalue()


def _decrypted(data: bytes, key: bytes) -> bytes:
    """Decrypt what ``_encrypted`` gave."""
    from pyarrow.parquet import encryption

    properties = _direct(encryption, "create_decryption_properties")(key)
    return base64.b64decode(pq.read_metadata(io.BytesIO(data), decryption_properties=properties).metadata[_KEY])


def _direct(encryption: Any, name: str) -> Any:
    """Return the function that takes a key itself, which older releases of pyarrow lack."""
    found = getattr(encryption, name, None)
    if found is None:
        msg = "LocalFileKeys needs a later pyarrow: `pip install --upgrade pyarrow`"
        raise KeyProviderError(msg)
    return found
