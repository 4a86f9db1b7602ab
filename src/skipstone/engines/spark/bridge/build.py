"""Build the bridge jar, once for each Spark version and source, with nothing but pyspark and a Java runtime.

The Scala compiler is among pyspark's own jars. A wheel may carry a jar built beforehand; it is used while its recorded
source hash is that of the sources beside it. ``python -m skipstone.engines.spark.bridge.build OUT.jar`` makes that jar.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from skipstone import __version__
from skipstone.errors import BridgeBuildError
from skipstone.settings import cache_folder

__all__ = ["bridge_jar", "build", "find_java", "source_hash"]

_LOG = logging.getLogger("skipstone")
_HERE = Path(__file__).parent
_PREBUILT = _HERE / "skipstone-bridge.jar"
_HASH_ENTRY = "META-INF/skipstone-source-hash"
_VERSION_ENTRY = "META-INF/skipstone-version"
_MINIMAL_JAVA = 17
# Compiled against, never packed: what is called of table formats that a session may have or not (``stubs``).
_STUBS = ("org/apache/spark/sql/delta/",)


def bridge_jar() -> Path:
    """Return the path of a jar that fits the sources, building it when there is none.

    Returns
    -------
    Path
        The jar inside the package if it was built from these very sources, else one in the user's cache
        (``$SKIPSTONE_CACHE`` or ``~/.cache/skipstone``).

    Raises
    ------
    BridgeBuildError
        If there is no Java runtime, the compiler refuses, or the cache cannot be written to.
    """
    if _recorded_hash(_PREBUILT) == source_hash():
        return _PREBUILT
    cached = cache_folder() / f"skipstone-bridge-{_spark_version()}-{source_hash()[:16]}.jar"
    if _recorded_hash(cached) == source_hash():
        return cached
    try:
        with _locked(cached.with_suffix(".lock")):
            # Another process may have built it while this one waited for the lock.
            if _recorded_hash(cached) != source_hash():
                # A warning, so that it is seen: the first session takes its time, and files appear.
                _LOG.warning(
                    "Skipstone compiles its bridge for Spark %s, once on this machine (ten to twenty seconds), to %s",
                    _spark_version(),
                    cached,
                )
                build(cached)
    except OSError as error:
        msg = (
            f"Skipstone's bridge is not compiled yet, and {cached.parent} cannot be written to ({error}): let "
            "SKIPSTONE_CACHE name a folder that can be written to, or one that has the jar already, or install a wheel "
            "that carries it (`make wheel`); docs/installing.md says how."
        )
        raise BridgeBuildError(msg) from error
    return cached


def build(jar: Path) -> None:
    """Compile the Scala sources and pack them; the jar appears whole or not at all.

    Parameters
    ----------
    jar : Path
        Where to put it.

    Raises
    ------
    BridgeBuildError
        If there is no Java runtime, or the compiler refuses.
    """
    java = find_java()
    jar.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="skipstone-build-") as folder:
        classes, log = Path(folder, "classes"), Path(folder, "log")
        classes.mkdir()
        command = [java, "-Xss8m", "-cp", str(_spark_jars() / "*"), "scala.tools.nsc.Main"]
        command += ["-usejavacp", "-nowarn", "-d", str(classes), *map(str, _sources())]
        # To a file: a JVM that inherits a pipe keeps whoever reads it waiting.
        with log.open("wb") as output:
            code = subprocess.run(
                command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, check=False
            ).returncode
        if code != 0:
            text = log.read_text(errors="replace")
            first = next((line for line in text.splitlines() if "error" in line.lower()), text.strip()[:300])
            raise BridgeBuildError(f"Compiling Skipstone's bridge for Spark {_spark_version()} failed: {first}")
        _pack(classes, jar)


def find_java() -> str:
    """Find a Java runtime that is new enough.

    Returns
    -------
    str
        ``$JAVA_HOME/bin/java``, or the ``java`` of the path.

    Raises
    ------
    BridgeBuildError
        If there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    candidate = str(Path(home, "bin", "java")) if home else "java"
    java = shutil.which(candidate)
    if java is None:
        where = f"$JAVA_HOME/bin/java ({candidate})" if home else "on the path"
        raise BridgeBuildError(
            f"Skipstone needs a Java {_MINIMAL_JAVA}+ runtime and found none {where}: "
            "install one (as Spark itself needs it) or set JAVA_HOME to its folder."
        )
    version = _java_version(java)
    if version is not None and version < _MINIMAL_JAVA:
        raise BridgeBuildError(
            f"Skipstone needs a Java {_MINIMAL_JAVA}+ runtime, but {java} is Java {version}: "
            "set JAVA_HOME to the folder of a newer one."
        )
    return java


@functools.cache
def source_hash() -> str:
    """Hash the Scala sources, names included.

    Returns
    -------
    str
        64 hex digits.
    """
    digest = hashlib.sha256()
    for source in _sources():
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()


def _sources() -> list[Path]:
    sources = sorted([*_HERE.glob("*.scala"), *_HERE.glob("stubs/*.scala")])
    if not sources:
        raise BridgeBuildError(
            f"Skipstone's installation is damaged: no Scala sources in {_HERE}. Reinstall skipstone."
        )
    return sources


def _java_version(java: str) -> int | None:
    with tempfile.TemporaryFile() as output:
        subprocess.run([java, "-version"], stdout=output, stderr=output, stdin=subprocess.DEVNULL, check=False)
        output.seek(0)
        found = re.search(rb'version "(?:1\.)?(\d+)', output.read())
    return int(found.group(1)) if found else None


def _spark_jars() -> Path:
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    if not any(jars.glob("scala-compiler*.jar")):
        # pyspark from a Spark distribution keeps its jars elsewhere.
        jars = Path(os.environ.get("SPARK_HOME", jars.parent)) / "jars"
    if not any(jars.glob("scala-compiler*.jar")):
        raise BridgeBuildError(f"No Scala compiler in {jars}: install pyspark by pip, or set SPARK_HOME.")
    return jars


def _spark_version() -> str:
    import pyspark

    return pyspark.__version__


def _recorded_hash(jar: Path) -> str | None:
    # A damaged jar is as good as none: it is built again.
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.read(_HASH_ENTRY).decode()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _pack(classes: Path, jar: Path) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{jar.name}-", dir=jar.parent)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for entry in sorted(path for path in classes.rglob("*") if path.is_file()):
                name = str(entry.relative_to(classes))
                if not name.startswith(_STUBS):
                    archive.writestr(_entry(name), entry.read_bytes())
            archive.writestr(_entry(_HASH_ENTRY), source_hash())
            archive.writestr(_entry(_VERSION_ENTRY), __version__)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(jar)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _entry(name: str) -> zipfile.ZipInfo:
    # A fixed time: the same sources give the same bytes.
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info


def _main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m skipstone.engines.spark.bridge.build OUT.jar\n")
        return 2
    try:
        build(Path(arguments[0]))
    except BridgeBuildError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
