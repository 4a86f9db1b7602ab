"""What a companion refuses before it serves anyone, and what sessions cannot make it import."""

from __future__ import annotations

import sys

import pyspark
import pytest

from skipstone import __version__, kms, registry
from skipstone.engines.spark.bridge.build import source_hash
from skipstone.engines.spark.companion import refusal
from skipstone.errors import KeyProviderError, PluginError


def told(**changed: str) -> dict[str, str]:
    """Return what the bridge tells its child."""
    return {
        "SKIPSTONE_BRIDGE_HASH": source_hash(),
        "SKIPSTONE_BRIDGE_VERSION": __version__,
        "SKIPSTONE_SPARK_VERSION": pyspark.__version__,
        **changed,
    }


def test_the_same_jar_is_served():
    assert refusal(told()) is None
    assert refusal(told(SKIPSTONE_BRIDGE_VERSION="0.0.1")) is None  # the same bridge, whatever it was packed with


def test_another_jar_is_refused_by_name_and_version():
    said = refusal(told(SKIPSTONE_BRIDGE_HASH="0123456789abcdef", SKIPSTONE_BRIDGE_VERSION="0.7.0"))
    assert said is not None
    for part in ("Skipstone 0.7.0 (bridge 01234567)", sys.executable, f"Skipstone {__version__}", "skipstone==0.7.0"):
        assert part in said


def test_another_spark_is_refused_by_version():
    said = refusal(told(SKIPSTONE_SPARK_VERSION="3.5.1"))
    assert said is not None
    assert "the server runs Spark 3.5.1" in said
    assert f"pyspark {pyspark.__version__}" in said
    patch = ".".join([*pyspark.__version__.split(".")[:2], "99"])
    assert refusal(told(SKIPSTONE_SPARK_VERSION=patch)) is None


def test_sessions_cannot_name_modules(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_allowed", None)
    monkeypatch.setattr(registry, "_loaded", set(registry._loaded))
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("companion_plugin_of_server", "companion_plugin_of_client"):
        (tmp_path / f"{name}.py").write_text("")
    registry.allow_plugins(["companion_plugin_of_server"])
    registry.load_plugins(["companion_plugin_of_server"])
    assert "companion_plugin_of_server" in sys.modules
    with pytest.raises(PluginError, match="names 'companion_plugin_of_client'.*the server's own settings"):
        registry.load_plugins(["companion_plugin_of_server", "companion_plugin_of_client"])
    assert "companion_plugin_of_client" not in sys.modules


def test_sessions_cannot_name_key_providers(tmp_path, monkeypatch):
    monkeypatch.setattr(kms, "_allowed", None)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "companion_keys_of_client.py").write_text("class Keys: pass\n")
    kms.allow_providers([])
    with pytest.raises(KeyProviderError, match="names 'companion_keys_of_client:Keys'.*the server's own settings"):
        kms.load_provider({"class": "companion_keys_of_client:Keys"})
    assert "companion_keys_of_client" not in sys.modules
