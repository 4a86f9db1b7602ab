"""Building the jar: once, whole, and with errors that say what to do."""

from __future__ import annotations

import threading
import zipfile

import pytest

from skipstone.engines.spark.bridge import build
from skipstone.errors import BridgeBuildError


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("SKIPSTONE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "_PREBUILT", tmp_path / "none.jar")
    return tmp_path / "cache"


def write_jar(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(build._HASH_ENTRY, text)


def test_no_java(monkeypatch, cache, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    with pytest.raises(BridgeBuildError, match=r"Java 17\+ runtime.*JAVA_HOME"):
        build.bridge_jar()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BridgeBuildError, match="found none on the path"):
        build.bridge_jar()


def test_old_java(monkeypatch, cache, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BridgeBuildError, match="is Java 8"):
        build.find_java()


def test_a_prebuilt_jar_serves_only_its_own_sources(monkeypatch, cache, tmp_path):
    built = []
    monkeypatch.setattr(build, "build", lambda jar: (built.append(jar), write_jar(jar, build.source_hash())))
    prebuilt = tmp_path / "none.jar"
    write_jar(prebuilt, build.source_hash())
    assert build.bridge_jar() == prebuilt
    write_jar(prebuilt, "of other sources")
    jar = build.bridge_jar()
    assert jar.parent == cache
    assert build.bridge_jar() == jar
    assert built == [jar]
    jar.write_bytes(b"damaged")
    assert build.bridge_jar() == jar
    assert built == [jar, jar]


def test_two_at_once_build_once(monkeypatch, cache):
    built = []
    first = threading.Event()

    def slow(jar):
        built.append(jar)
        first.wait(0.2)
        write_jar(jar, build.source_hash())

    monkeypatch.setattr(build, "build", slow)
    results = []
    threads = [threading.Thread(target=lambda: results.append(build.bridge_jar())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert len(set(results)) == 1


def test_a_compiler_error_is_one_line_and_leaves_nothing(monkeypatch, cache, tmp_path):
    source = tmp_path / "Bad.scala"
    source.write_text("object Bad { val x: Int = undefined }")
    monkeypatch.setattr(build, "_sources", lambda: [source])
    with pytest.raises(BridgeBuildError, match="not found: value undefined") as error:
        build.build(cache / "out.jar")
    assert "\n" not in str(error.value)
    assert not list(cache.iterdir())


def test_the_first_compilation_says_what_it_does_and_where(monkeypatch, cache, caplog):
    monkeypatch.setattr(build, "build", lambda jar: write_jar(jar, build.source_hash()))
    jar = build.bridge_jar()
    build.bridge_jar()
    (record,) = caplog.records
    assert record.levelname == "WARNING"  # seen where nobody has set up logging
    assert "compiles its bridge" in record.getMessage()
    assert str(jar) in record.getMessage()


def test_a_cache_that_cannot_be_written_to_says_what_to_do(monkeypatch, cache, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SKIPSTONE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(BridgeBuildError, match=r"file/cache cannot be written to.*SKIPSTONE_CACHE.*make wheel"):
        build.bridge_jar()


def test_a_cache_that_cannot_be_written_to_serves_if_the_jar_is_there(monkeypatch, cache):
    monkeypatch.setattr(build, "build", lambda jar: write_jar(jar, build.source_hash()))
    jar = build.bridge_jar()

    def refuse(path):
        raise AssertionError(f"{path} is locked")

    monkeypatch.setattr(build, "_locked", refuse)
    assert build.bridge_jar() == jar
