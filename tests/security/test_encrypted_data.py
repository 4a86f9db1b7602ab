"""Skipping over encrypted Parquet data: Spark decrypts, Skipstone's metadata has keys of its own."""

from __future__ import annotations

import base64
import subprocess
import zipfile
from pathlib import Path

import pyspark
import pytest
from tests.stores.keys import key_bytes, key_file, kms_settings
from tests.support import assert_same_rows, assert_sound

from skipstone import BloomFilterIndex, Dataset, MinMaxIndex, ValueListIndex, skipping_stats
from skipstone.engines.spark.bridge.build import find_java
from skipstone.errors import IndexingError

KMS = """
package skipstone.tests

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64
import org.apache.hadoop.conf.Configuration
import org.apache.parquet.crypto.KeyAccessDeniedException
import org.apache.parquet.crypto.keytools.{KeyToolkit, KmsClient}

/** Master keys from a setting: name:base64,name:base64. */
class SettingKms extends KmsClient {
  private var keys = Map.empty[String, Array[Byte]]

  override def initialize(conf: Configuration, id: String, url: String, token: String): Unit =
    keys = conf.get("parquet.encryption.skipstone.tests.keys", "").split(",").filter(_.nonEmpty).map { pair =>
      val Array(name, key) = pair.split(":", 2)
      name -> Base64.getDecoder.decode(key)
    }.toMap

  private def key(name: String) = keys.getOrElse(name, throw new KeyAccessDeniedException(name))

  override def wrapKey(bytes: Array[Byte], name: String): String =
    KeyToolkit.encryptKeyLocally(bytes, key(name), name.getBytes(UTF_8))

  override def unwrapKey(wrapped: String, name: String): Array[Byte] =
    KeyToolkit.decryptKeyLocally(wrapped, key(name), name.getBytes(UTF_8))
}
"""
PREDICATES = ("id = 31", "id < 15", "name = 'n42'", "name IN ('n1', 'n2', 'n58')", "salary = 330 AND id > 5")


@pytest.fixture(scope="module")
def kms_jar(tmp_path_factory) -> Path:
    """Compile the KMS client with the Scala compiler among pyspark's jars."""
    folder = tmp_path_factory.mktemp("kms")
    source, classes, log = folder / "SettingKms.scala", folder / "classes", folder / "log"
    source.write_text(KMS)
    classes.mkdir()
    jars = str(Path(pyspark.__file__).parent / "jars" / "*")
    command = [find_java(), "-Xss8m", "-cp", jars, "scala.tools.nsc.Main", "-usejavacp", "-nowarn", "-d", str(classes)]
    with log.open("wb") as output:
        code = subprocess.call([*command, str(source)], stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    assert code == 0, log.read_text()
    with zipfile.ZipFile(folder / "kms.jar", "w") as jar:
        for file in sorted(classes.rglob("*.class")):
            jar.write(file, file.relative_to(classes))
    return folder / "kms.jar"


def reader(spark, kms_jar: Path, *names: str, keys: Path | None = None):
    """Return a session of a user who has some of the data's keys, and the metadata's keys of a file."""
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loader.addURL(spark._jvm.java.io.File(str(kms_jar)).toURI().toURL())
    spark._jsc.addJar(str(kms_jar))
    session = spark.newSession()
    known = ",".join(f"{name}:{base64.b64encode(key_bytes(name)[:16]).decode()}" for name in names)
    settings = {
        "parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory",
        "parquet.encryption.kms.client.class": "skipstone.tests.SettingKms",
        "parquet.encryption.key.access.token": "+".join(names) or "none",  # keys are remembered by token
        "parquet.encryption.skipstone.tests.keys": known,
        **({f"spark.skipstone.kms.{k}": v for k, v in kms_settings(keys).items()} if keys else {}),
    }
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def written(session, folder: Path, *, plaintext_footer: bool) -> str:
    """Write six objects, one column encrypted with its own key, the others with the footer's or not at all."""
    for n in range(6):
        rows = f"SELECT id, concat('n', id) AS name, int(id * 10) AS salary FROM range({n * 10}, {n * 10 + 10})"
        part = folder / f"part={n}"
        session.sql(rows).coalesce(1).write.options(
            **{
                "parquet.encryption.footer.key": "footer",
                "parquet.encryption.column.keys": "pay:salary",
                "parquet.encryption.plaintext.footer": str(plaintext_footer).lower(),
            }
        ).parquet(str(part))
        next(part.glob("part-*.parquet")).rename(folder / f"object-{n}.parquet")
        for left in part.iterdir():
            left.unlink()
        part.rmdir()
    return str(folder)


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_encrypted_data_is_indexed_and_skipped(spark, kms_jar, tmp_path, plaintext_footer):
    file = key_file(tmp_path / "keys.json", "metadata")
    owner = reader(spark, kms_jar, "footer", "pay", keys=file)
    path = written(owner, tmp_path / "d", plaintext_footer=plaintext_footer)
    magic = next(Path(path).glob("*.parquet")).read_bytes()[-4:]
    assert magic == (b"PAR1" if plaintext_footer else b"PARE")
    dataset = Dataset.for_path(owner, path)
    # The first call asks for nothing but bounds, which footers could give: those of encrypted columns may not.
    dataset.create_indexes(MinMaxIndex("id"), MinMaxIndex("salary", key="metadata"))
    dataset.create_indexes(ValueListIndex("name", key="metadata"), BloomFilterIndex("salary", key="metadata"))
    df = owner.read.parquet(path)
    skipped = assert_sound(owner, df, PREDICATES)
    assert skipped >= 5 + 4 + 5 + 4 + 5
    assert sum(assert_same_rows(owner, df.where(p)) for p in PREDICATES) >= 20
    assert {row.covered for row in dataset.describe().collect()} == {6}
    if plaintext_footer:  # whoever lacks the footer key cannot even read the schema of the other kind
        guest = reader(spark, kms_jar, "footer")
        with skipping_stats(guest) as stats:
            rows = guest.read.parquet(path).where("id = 31 AND name = 'n31'").select("id").collect()
        assert len(rows) == 1
        assert stats[-1].objects.kept == 1
        assert any("valuelist(name): no key 'metadata'" in t for t in stats[-1].not_used)


def test_without_the_datas_key_an_index_cannot_be_made(spark, kms_jar, tmp_path):
    owner = reader(spark, kms_jar, "footer", "pay")
    path = written(owner, tmp_path / "d", plaintext_footer=True)
    guest = reader(spark, kms_jar, "footer")
    dataset = Dataset.for_path(guest, path)
    with pytest.raises(IndexingError, match="the objects could not be read, nothing was indexed"):
        dataset.create_indexes(MinMaxIndex("salary"))
    assert not dataset.is_indexed
    assert Dataset.for_path(owner, path).create_indexes(MinMaxIndex("salary")).indexed == 6
