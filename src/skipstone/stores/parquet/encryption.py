"""Encrypting metadata: what a store asks of keys, by Parquet modular encryption and a key provider.

Indexes with a key have their fields in sections of parts that are encrypted as a whole, each with a data key of its own
that only the master key unwraps, and their options sealed in the manifest in the same way.  No cryptography of our own:
a sealed text is the encrypted footer of a Parquet file without rows.
"""

from __future__ import annotations

import base64
import io
import json
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.errors import KeyProviderError, KeyUnavailableError, SettingError
from skipstone.kms import load_provider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skipstone.kms import KeyProvider
    from skipstone.stores.metadata_store import IndexRecord

__all__ = ["Keys", "protected_ids"]

_TIMEOUT = 10.0
"""Seconds that a provider may take for one answer."""
_MEMORY = 30.0
"""Seconds for which a refusal is remembered, so that not every query asks again."""
_DATA_KEY_BITS = 256
_MOST_OPENED = 10_000
_SEALED = b"skipstone.sealed"
_PYARROW = 20
"""The first pyarrow of which several threads may decrypt at once; before, that ended the process."""


class Keys:
    """The keys of one store, for one user: all that this user may encrypt and decrypt goes through it.

    Parameters
    ----------
    settings
        The session's ``spark.skipstone.kms.*`` settings without that prefix.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.footer_key = settings.get("footerKey", "")
        self._settings = dict(settings)
        self._timeout = _seconds(settings.get("timeoutSeconds", ""))
        self._provider: KeyProvider | None = None
        self._factories: dict[str, Any] = {}
        self._refusals: dict[tuple[str, ...], tuple[float, str]] = {}
        self._opened: dict[tuple[str, str, int], dict[str, Any]] = {}
        self._lock = threading.Lock()

    def encryption(self, key: str) -> Any:
        """Return what makes Parquet's writer encrypt a whole file with a new data key.

        Raises
        ------
        KeyUnavailableError
            When the master key cannot be had.
        """
        from pyarrow.parquet import encryption

        wanted = encryption.EncryptionConfiguration(
            footer_key=key, uniform_encryption=True, plaintext_footer=False, data_key_length_bits=_DATA_KEY_BITS
        )
        return self._factory(key).file_encryption_properties(encryption.KmsConnectionConfig(), wanted)

    def decryption(self, key: str) -> Any:
        """Return what makes Parquet's reader decrypt files of a key; the provider is asked when one is read.

        Files say by which master key they were encrypted: any other than this one is refused.
        """
        from pyarrow.parquet import encryption

        return self._factory(key).file_decryption_properties(encryption.KmsConnectionConfig())

    def sealed(self, record: IndexRecord, *, anew: bool = False) -> IndexRecord:
        """Return a record as a manifest may hold it: of an index with a key, options and functions are sealed.

        One that is sealed already stays as it is, unless it is to be sealed ``anew``, with the newest master key.
        """
        if record.key is None:
            return record
        sealed = record.sealed
        if not sealed or (anew and record.options):
            content = {
                "id": record.id,
                "options": dict(record.options),
                "functions": dict(record.functions),
                "reads_as": [column.reads_as for column in record.columns],
            }
            sealed = self._seal(json.dumps(content), record.key)
        return self.shut(replace(record, sealed=sealed))

    @staticmethod
    def shut(record: IndexRecord) -> IndexRecord:
        """Return a sealed record without what is sealed."""
        columns = tuple(replace(column, reads_as="") for column in record.columns)
        return replace(record, options={}, functions={}, columns=columns)

    def opened(self, record: IndexRecord) -> IndexRecord:
        """Return a record with what was sealed in its place.

        Raises
        ------
        KeyUnavailableError
            When the key cannot be had, or does not open it.
        """
        if record.key is None or not record.sealed:
            return record
        known = (record.sealed, record.id, len(record.columns))  # a seal is checked against the record that it is in
        content = self._opened.get(known)
        if content is None:
            content = self._open(record)
            with self._lock:
                if len(self._opened) >= _MOST_OPENED:
                    self._opened.clear()
                self._opened[known] = content
        columns = tuple(
            replace(column, reads_as=text) for column, text in zip(record.columns, content["reads_as"], strict=True)
        )
        return replace(record, options=content["options"], functions=content["functions"], columns=columns)

    def _seal(self, text: str, key: str) -> str:
        made = io.BytesIO()
        schema = pa.schema([pa.field("nothing", pa.null())], metadata={_SEALED: text})
        with pq.ParquetWriter(made, schema, encryption_properties=self.encryption(key)):
            pass  # the footer is all there is, and it is encrypted
        return base64.b64encode(made.getvalue()).decode("ascii")

    def _open(self, record: IndexRecord) -> dict[str, Any]:
        """Open and check a record's seal: it is data from outside, even if whoever wrote it had the key."""
        assert record.key is not None  # noqa: S101  (the caller has asked)
        try:
            data = io.BytesIO(base64.b64decode(record.sealed, validate=True))
            content = json.loads(
                pq.read_metadata(data, decryption_properties=self.decryption(record.key)).metadata[_SEALED]
            )
            fits = (
                content["id"] == record.id
                and isinstance(content["options"], dict)
                and all(isinstance(text, str) for text in (*content["functions"].values(), *content["reads_as"]))
                and len(content["reads_as"]) == len(record.columns)
            )
        except KeyUnavailableError:
            raise
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, pa.ArrowException) as error:
            msg = f"the key {record.key!r} does not open what {record.name} was sealed with ({type(error).__name__})"
            raise KeyUnavailableError(msg) from error
        if not fits:
            msg = f"what {record.name} was sealed with belongs to something else"
            raise KeyUnavailableError(msg)
        return content

    def _factory(self, key: str) -> Any:
        """Return Parquet's factory of encryption properties for one key; it remembers the keys that it was given."""
        if not key:
            msg = "no key '': a key needs a name; leave key= out for plain metadata"
            raise KeyUnavailableError(msg)
        with self._lock:
            known = self._factories.get(key)
            if known is None:
                _require_pyarrow(key)
                known = self._factories[key] = _factory(key, self._ask)
            return known

    def _ask(self, key: str, method: str, value: bytes | str) -> Any:
        """Have the provider wrap or unwrap; every failure is a ``KeyUnavailableError``, remembered for a while."""
        question = (key, method, value if isinstance(value, str) else "")
        for remembered in (question, ()):
            since, text = self._refusals.get(remembered, (0.0, ""))
            if text and time.monotonic() - since < _MEMORY:
                raise KeyUnavailableError(text)
        answer = _bounded(lambda: getattr(self._get_provider(), method)(value, key), self._timeout)
        if isinstance(answer, _Refusal):
            text = f"no key {key!r}: {answer.text}"
            with self._lock:
                # A provider that hangs is not asked for any key: queries would wait for each.
                self._refusals[() if answer.hangs else question] = (time.monotonic(), text)
                if len(self._refusals) > _MOST_OPENED:
                    self._refusals.clear()
            raise KeyUnavailableError(text)
        expected = str if method == "wrap_key" else bytes
        if not isinstance(answer, expected):
            msg = f"no key {key!r}: the provider's {method} gave no {expected.__name__}"
            raise KeyUnavailableError(msg)
        return answer

    def _get_provider(self) -> KeyProvider:
        if self._provider is None:
            self._provider = load_provider(self._settings)
        return self._provider

    def forget_refusals(self) -> None:
        """Ask the provider again even where it has just refused: what a user waits for is worth it."""
        with self._lock:
            self._refusals.clear()


def protected_ids(indexes: Sequence[IndexRecord]) -> dict[str, str]:
    """Return the key of each index that has one, by index id."""
    return {record.id: record.key for record in indexes if record.key is not None}


class _Refusal:
    """Why a provider gave no answer."""

    def __init__(self, text: str, *, hangs: bool = False) -> None:
        self.text = text
        self.hangs = hangs


def _factory(key: str, ask: Callable[[str, str, bytes | str], Any]) -> Any:
    """Make a factory whose client asks for one master key only, whatever a file says."""
    from pyarrow.parquet import encryption

    class Client(encryption.KmsClient):
        def wrap_key(self, key_bytes: bytes, master_key: str) -> str:
            _require(key, master_key)
            return ask(key, "wrap_key", key_bytes)

        def unwrap_key(self, wrapped: str, master_key: str) -> bytes:
            _require(key, master_key)
            return ask(key, "unwrap_key", wrapped)

    return encryption.CryptoFactory(lambda _: Client())


def _require_pyarrow(key: str) -> None:
    if int(pa.__version__.partition(".")[0]) < _PYARROW:
        msg = f"no key {key!r}: encryption needs pyarrow {_PYARROW} or later, this is {pa.__version__}; upgrade it"
        raise KeyUnavailableError(msg)


def _require(key: str, asked: str) -> None:
    if asked != key:
        msg = f"no key {key!r}: the file was encrypted with another, {asked[:80]!r}"
        raise KeyUnavailableError(msg)


def _bounded(call: Callable[[], Any], seconds: float) -> Any:
    """Run a provider's method for a bounded time; nothing but the text of a ``KeyProviderError`` is repeated."""
    answers: list[Any] = []

    def run() -> None:
        try:
            answers.append(call())
        except KeyProviderError as error:
            answers.append(_Refusal(str(error)))
        except BaseException as error:  # noqa: BLE001  a provider is a plug-in: whatever it raises, there is no key
            answers.append(_Refusal(f"the key provider raised {type(error).__name__}"))

    thread = threading.Thread(target=run, name="skipstone-key-provider", daemon=True)
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else _Refusal(f"the key provider gave no answer within {seconds:g} s", hangs=True)


def _seconds(text: str) -> float:
    """Read how long a provider may take."""
    try:
        seconds = float(text or _TIMEOUT)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        msg = f"spark.skipstone.kms.timeoutSeconds is {text!r}: give a number of seconds above 0, for example 10"
        raise SettingError(msg)
    return seconds
