"""Keys for tests: a local key file, and the stores of users who have some of its keys."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from skipstone.stores.parquet.encryption import Keys
from skipstone.stores.parquet.store import ParquetStore

if TYPE_CHECKING:
    from pathlib import Path

PROVIDER = "skipstone.kms:LocalFileKeys"


def key_bytes(name: str, version: int = 0) -> bytes:
    """Return the bytes of a test's key: always the same for the same name and version."""
    return hashlib.sha256(f"{name} {version}".encode()).digest()


def key_file(path: Path, *names: str, **versions: list[bytes | None]) -> Path:
    """Write a key file: one version of each named key, or the given versions."""
    keys: dict[str, list[bytes | None]] = {name: [key_bytes(name)] for name in names} | versions
    encoded = {n: [None if k is None else base64.b64encode(k).decode() for k in given] for n, given in keys.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(encoded))
    return path


def kms_settings(file: Path, **others: str) -> dict[str, str]:
    """Return the settings of a user of a key file, without any prefix."""
    return {"class": PROVIDER, "file": str(file), **others}


def store_with(base: str, file: Path | None, footer_key: str = "", **options) -> ParquetStore:
    """Make the store of a user: of whoever has the keys of that file, or of someone who has none."""
    others = {"footerKey": footer_key} if footer_key else {}
    return ParquetStore(location=base, keys=Keys(kms_settings(file, **others)) if file else None, **options)


class EverythingProtected(ParquetStore):
    """A store that protects every index by one key, whatever the caller says: for the contract's suite."""

    def commit(self, root, base, change, **options):
        protected = tuple(replace(r, key="k") for r in change.indexes)
        return super().commit(root, base, replace(change, indexes=protected), **options)
