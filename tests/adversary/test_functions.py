"""Functions of modules that identities do not see: the next process loses rows of an index that holds old results."""

from __future__ import annotations

import os

import pytest

from tests.test_edited_functions import FIRST, LAST, Applications

pytestmark = pytest.mark.slow

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}"
ASK = """
spark, dataset = session()
module = importlib.import_module({module!r})
spark.udf.register("named", module.f)
said["refused"] = indexing(dataset, FormattedIndex("ua", extract="named")) if {make} else ""
said["control"] = asked(spark, "named(ua) = 'curl'")
"""
LAZY = "def f(text):\n    import {name}\n    return {name}.f(text)\n"


@pytest.fixture
def applications(tmp_path):
    return Applications(tmp_path)


def installed(applications, name, version, more=""):
    """Put a distribution of one package into the folder ``site``, in the place of any other version."""
    for old in applications.folder.glob(f"site/{name}-*.dist-info"):
        for file in old.iterdir():
            file.unlink()
        old.rmdir()
    folder = f"site/{name}-{version}.dist-info"
    applications.write(f"{folder}/METADATA", METADATA.format(name=name, version=version, more=more))
    applications.write(f"{folder}/top_level.txt", f"{name}\n")
    applications.write(f"{folder}/RECORD", f"{name}/__init__.py,,\n")


def lost(applications, module, change):
    """Index by one process, change something, ask by the next."""
    for file in applications.folder.rglob("*"):
        os.utime(file, (1.7e9, 1.7e9))
    first = applications.run(ASK.format(module=module, make=True), "modules", "site")
    assert not first["control"]["lost"]
    change()
    return applications.run(ASK.format(module=module, make=False), "modules", "site")["control"]["lost"]


@pytest.mark.parametrize("name", ["ümod", "my-mod", "01_clean"])
def test_module_whose_name_is_no_identifier_of_plain_letters(applications, name):
    applications.write(f"modules/{name}.py", FIRST)
    assert not lost(applications, name, lambda: applications.write(f"modules/{name}.py", LAST))


@pytest.mark.parametrize("name", ["this", "chunk"])
def test_module_that_hides_one_of_the_standard_library(applications, name):
    applications.write(f"modules/{name}.py", FIRST)
    assert not lost(applications, name, lambda: applications.write(f"modules/{name}.py", LAST))


@pytest.mark.parametrize("way", ["importlib.import_module('helper')", "__import__('helper')"])
def test_module_that_imports_another_by_a_call(applications, way):
    applications.write("modules/m.py", f"import importlib\ndef f(text):\n    return {way}.f(text)\n")
    applications.write("modules/helper.py", FIRST)
    assert not lost(applications, "m", lambda: applications.write("modules/helper.py", LAST))


def test_own_part_of_a_namespace_that_an_installed_package_shares(applications):
    installed(applications, "acme", "1.0")
    applications.write("site/acme/core.py", "x = 1\n")
    applications.write("modules/acme/local.py", FIRST)
    assert not lost(applications, "acme.local", lambda: applications.write("modules/acme/local.py", LAST))


def test_package_in_a_project_that_was_built_once(applications):
    """Builds leave an ``egg-info`` beside the sources, which stay what they are: sources."""
    applications.write("modules/eggy/__init__.py", FIRST)
    applications.write("modules/eggy.egg-info/PKG-INFO", METADATA.format(name="eggy", version="0.1", more=""))
    applications.write("modules/eggy.egg-info/top_level.txt", "eggy\n")
    assert not lost(applications, "eggy", lambda: applications.write("modules/eggy/__init__.py", LAST))


@pytest.mark.parametrize("more", ['Requires-Dist: inner; extra == "all"\n', ""], ids=["of all", "undeclared"])
def test_installed_package_whose_optional_part_is_upgraded(applications, more):
    installed(applications, "outer", "1.0", more)
    applications.write("site/outer/__init__.py", LAZY.format(name="inner"))
    installed(applications, "inner", "1.0")
    applications.write("site/inner/__init__.py", FIRST)

    def upgrade():
        installed(applications, "inner", "2.0")
        applications.write("site/inner/__init__.py", LAST)

    assert not lost(applications, "outer", upgrade)
