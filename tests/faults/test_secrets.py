"""Credentials appear in no log, explanation, statistic, exception, report or metadata file."""

from __future__ import annotations

import logging
import traceback

import pytest

from skipstone import Dataset, MinMaxIndex, SkipstoneError, skipping_stats
from skipstone.stores.elasticsearch.settings import ServerSettings
from tests.support import conf, write_objects

SECRET = "hunter2-T0p-S3cret"
NOBODY = "http://127.0.0.1:9"
"""A server that is not there: nothing may listen on the discard port."""

SETTINGS = {
    "elasticsearch, password": {
        "spark.skipstone.store": "elasticsearch",
        "spark.skipstone.elasticsearch.url": NOBODY,
        "spark.skipstone.elasticsearch.user": "someone",
        "spark.skipstone.elasticsearch.password": SECRET,
        "spark.skipstone.elasticsearch.retries": "0",
    },
    "elasticsearch, key": {
        "spark.skipstone.store": "elasticsearch",
        "spark.skipstone.elasticsearch.url": NOBODY,
        "spark.skipstone.elasticsearch.apiKey": SECRET,
        "spark.skipstone.elasticsearch.retries": "0",
    },
    "elasticsearch, in the address": {
        "spark.skipstone.store": "elasticsearch",
        "spark.skipstone.elasticsearch.url": f"http://someone:{SECRET}@127.0.0.1:9",
    },
    "elasticsearch, settings that do not fit": {
        "spark.skipstone.store": "elasticsearch",
        "spark.skipstone.elasticsearch.url": NOBODY,
        "spark.skipstone.elasticsearch.password": SECRET,
        "spark.skipstone.elasticsearch.unknown": SECRET,
    },
    "keys, a provider that cannot be made": {
        "spark.skipstone.kms.class": "skipstone.kms:NoSuchProvider",
        "spark.skipstone.kms.token": SECRET,
    },
    "keys, a file that is not there": {
        "spark.skipstone.kms.class": "skipstone.kms:LocalFileKeys",
        "spark.skipstone.kms.file": "/nowhere/keys.json",
        "spark.skipstone.kms.password": SECRET,
    },
    "S3": {
        "fs.s3a.access.key": "someone",
        "fs.s3a.secret.key": SECRET,
        "spark.hadoop.fs.s3a.secret.key": SECRET,
        "spark.skipstone.location": "s3a://nowhere/metadata",
    },
    "plain": {"spark.skipstone.kms.password": SECRET, "fs.s3a.secret.key": SECRET},
}


@pytest.fixture
def path(spark, tmp_path):
    return write_objects(spark, tmp_path / "d", "id int", ("(1)", "(2)", "(3)"))


@pytest.mark.parametrize("name", SETTINGS)
def test_a_secret_stays_one(spark, path, tmp_path, caplog, capfd, name):
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.INFO, logger="py4j")  # its debug log has everything that goes to the JVM, settings too
    said: list[str] = []
    with conf(spark, SETTINGS[name]):
        dataset = Dataset.for_path(spark, path)
        calls = {
            "create": lambda: dataset.create_indexes(MinMaxIndex("id")),
            "create with a key": lambda: dataset.create_indexes(MinMaxIndex("id", name="keyed", key="k")),
            "refresh": dataset.refresh,
            "describe": lambda: dataset.describe().collect(),
            "is indexed": lambda: dataset.is_indexed,
            "drop": lambda: dataset.drop_indexes("keyed"),
        }
        failed = 0
        for call in calls.values():
            try:
                said.append(repr(call()))
            except SkipstoneError as error:
                failed += 1
                said += traceback.format_exception(error)
        with skipping_stats(spark) as stats:
            assert dataset.dataframe.where("id = 2").count() == 1
        said += [repr(entry) for entry in stats]
        said.append(str(dataset.explain(dataset.dataframe.where("id = 2"))))
        said.append(repr(dataset))
    captured = capfd.readouterr()
    said += [caplog.text, captured.out, captured.err]
    assert failed or name == "plain"
    assert sum(map(len, said)) > 500, "nothing was said at all"
    for text in said:
        assert SECRET not in text
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file


def test_settings_do_not_show_their_secrets():
    shown = repr(ServerSettings(NOBODY, user="someone", password=SECRET)) + repr(ServerSettings(NOBODY, api_key=SECRET))
    assert SECRET not in shown
