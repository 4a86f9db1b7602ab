"""What tests need from package registries beyond the Python environment: fetched once, kept in a cache folder.

A download that fails is a failure where ``CI`` is set in the environment, and a visible skip elsewhere.
"""

from __future__ import annotations

import os
import subprocess
import uuid
import zipfile
from pathlib import Path

import pytest

__all__ = ["CACHE", "maven", "unavailable", "unpacked"]

CACHE = Path(os.environ.get("SKIPSTONE_TEST_CACHE") or Path.home() / ".cache" / "skipstone-tests")


def unavailable(what: str, error: object) -> None:
    """Fail in CI, skip elsewhere."""
    text = f"{what} cannot be fetched: {error}"
    if os.environ.get("CI"):
        pytest.fail(text)
    pytest.skip(text)


def maven(coordinate: str) -> Path:
    """Return the file of ``group:artifact:version[:type]``, fetched by Maven unless the cache has it."""
    _, artifact, version, *kind = coordinate.split(":")
    name = f"{artifact}-{version}.{kind[0] if kind else 'jar'}"
    kept = CACHE / "maven" / name
    if not kept.exists():
        fresh = CACHE / f"{name}-{uuid.uuid4().hex}"
        command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={coordinate}", f"-DoutputDirectory={fresh}"]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=900, stdin=subprocess.DEVNULL)
            kept.parent.mkdir(parents=True, exist_ok=True)
            (fresh / name).replace(kept)
            fresh.rmdir()
        except (OSError, subprocess.SubprocessError) as error:
            unavailable(coordinate, getattr(error, "stdout", None) or error)
    return kept


def unpacked(archive: Path) -> Path:
    """Return the folder that a zip file was unpacked to, once, with the modes of its files."""
    folder = CACHE / "unpacked" / archive.stem
    if not folder.exists():
        fresh = folder.with_name(f"{archive.stem}-{uuid.uuid4().hex}")
        with zipfile.ZipFile(archive) as file:
            for entry in file.infolist():
                written = Path(file.extract(entry, fresh))
                if not entry.is_dir() and entry.external_attr >> 16:
                    written.chmod(entry.external_attr >> 16 & 0o777)
        try:
            fresh.rename(folder)
        except OSError:  # another worker was first
            if not folder.exists():
                raise
    return folder
