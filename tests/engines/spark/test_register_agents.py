"""Names of user agents: the function, its version, and queries that skip through it."""

from __future__ import annotations

import pandas as pd
import pytest

import skipstone
from skipstone import Dataset, FormattedIndex
from skipstone.engines.spark.register_agents import _agent_name_function, _versions
from skipstone.errors import PluginError
from tests.support import assert_same_rows, write_objects

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
CHROME = "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
NAMES = {FIREFOX: "Firefox", CHROME: "Chrome", "curl/8.5.0": "curl", GOOGLEBOT: "Googlebot", "": "Other", None: None}


def test_names_by_batch():
    function = _agent_name_function().func
    agents = [*NAMES, *reversed(NAMES), "what is this?"]
    assert function(pd.Series(agents)).tolist() == [*NAMES.values(), *reversed(NAMES.values()), "Other"]
    assert function(pd.Series([], dtype=object)).tolist() == []
    assert function(pd.Series([None, None])).tolist() == [None, None]


def test_each_distinct_agent_is_parsed_once(monkeypatch):
    import ua_parser

    asked = []
    monkeypatch.setattr(ua_parser, "parse_user_agent", asked.append)
    assert set(_agent_name_function().func(pd.Series(["a", "b", "a"] * 100))) == {"Other"}
    assert asked == ["a", "b"]


def test_the_version_names_the_parser_and_its_expressions():
    assert [version.partition("==")[0] for version in _versions()][:2] == ["ua-parser", "ua-parser-builtins"]


def test_without_ua_parser_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("skipstone.engines.spark.register_agents.find_spec", lambda name: None)
    with pytest.raises(PluginError, match=r"pip install 'skipstone\[agents\]'"):
        skipstone.agents.register(None)


def test_queries_on_agent_names_skip(spark, tmp_path):
    skipstone.agents.register(spark)
    rows = [f"('{agent}', 1), (NULL, 2)" for agent in (FIREFOX, CHROME, "curl/8.5.0", GOOGLEBOT)]
    path = write_objects(spark, tmp_path / "d", "ua string, n int", rows)
    Dataset.for_path(spark, path).create_indexes(FormattedIndex("ua", extract="getAgentName"))
    df = spark.read.parquet(path)
    assert assert_same_rows(spark, df.where("getAgentName(ua) = 'curl'")) == 3
    assert assert_same_rows(spark, df.where("getAgentName(ua) LIKE '%bot'")) == 3
    assert assert_same_rows(spark, df.where("getAgentName(ua) <> 'curl'")) == 1
    other = spark.newSession()
    skipstone.agents.register(other)
    assert assert_same_rows(other, other.read.parquet(path).where("getAgentName(ua) = 'curl'")) == 3
