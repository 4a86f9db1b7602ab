"""What tells two states of the modules that a function names apart, wherever Python finds them."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import pickle
import subprocess
import sys
import sysconfig
import types
import zipfile
from pathlib import Path

import pytest

from skipstone.functions.identity import distributions, interpreter_folders, local_sources
from skipstone.functions.identity.package_versions import (
    gathered_evidence,
    package_versions,
    packages_here,
)
from skipstone.functions.identity.pickled_names import packages_named

ONE = "def f(x):\n    return x\n"
TWO = "def f(x):\n    return -x * 2\n"


class Lake:
    """A folder that Python imports from, and another that counts as the interpreter's own for packages."""

    def __init__(self, root: Path) -> None:
        self.local = root / "local"
        self.site = root / "site"
        for folder in (self.local, self.site):
            folder.mkdir()

    def write(self, path, text=ONE, where="local"):
        file = getattr(self, where) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        importlib.invalidate_caches()
        return file

    def install(self, name, files, *, requires=(), where="site", record=True, version="1.0"):
        """Install a distribution with these modules."""
        for path, text in files.items():
            self.write(path, text, where)
        info = f"{name.replace('-', '_')}-{version}.dist-info"
        required = "".join(f"Requires-Dist: {one}\n" for one in requires)
        self.write(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}", where)
        tops = sorted({path.partition("/")[0].removesuffix(".py") for path in files})
        self.write(f"{info}/top_level.txt", "\n".join(tops), where)
        if record:
            self.write(f"{info}/RECORD", "".join(f"{path},,\n" for path in files), where)


@pytest.fixture
def lake(tmp_path, monkeypatch):
    lake = Lake(tmp_path)
    monkeypatch.syspath_prepend(lake.site)
    monkeypatch.syspath_prepend(lake.local)
    folders = (*interpreter_folders.site_folders(), str(lake.site.resolve()))
    for module in (distributions, interpreter_folders):
        monkeypatch.setattr(module, "site_folders", lambda: folders)
    yield lake
    for name in [n for n in sys.modules if n.partition(".")[0].startswith("told_")]:
        del sys.modules[name]


def versions(module, attribute="f"):
    """Return the versions for a function that is pickled by name."""
    return package_versions(packages_named(by_name(module, attribute)))


def by_name(module, attribute="f"):
    texts = [b"\x8d" + len(t.encode()).to_bytes(8, "little") + t.encode() for t in (module, attribute)]
    return b"\x80\x04" + texts[0] + texts[1] + b"\x93."


def assert_told(lake, module, edited, where="local"):
    """Assert that an edit of a file is noticed, or that the module was unknown from the first."""
    lake.write(edited, ONE, where)
    before = versions(module)
    lake.write(edited, TWO, where)
    assert before is not None
    assert before != versions(module)


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["told_plain", "ütold", "模块", "told-mod", "01_told", "told mod", "told$", "told_" + "x" * 200],
)
def test_a_module_may_have_any_name(lake, name):
    assert_told(lake, name, f"{name}.py")


def test_a_module_far_down(lake):
    deep = [f"told_{'y' * 60}" for _ in range(5)]
    for depth in range(1, 6):
        lake.write("/".join([*deep[:depth], "__init__.py"]), "")
    assert_told(lake, ".".join([*deep, "m"]), "/".join([*deep, "m.py"]))


def test_names_of_old_pickles(lake):
    lake.write("told mod.py")
    before = package_versions(packages_named(b"ctold mod\nf\n."))
    lake.write("told mod.py", TWO)
    assert before != package_versions(packages_named(b"ctold mod\nf\n."))


def test_names_in_pickles_within_a_pickle(lake):
    lake.write("told_inner.py")
    command = pickle.dumps({"model": by_name("told_inner")})
    before = package_versions(packages_named(command))
    lake.write("told_inner.py", TWO)
    assert before != package_versions(packages_named(command))
    assert packages_named(pickle.dumps(b"\x80no pickle")) is not None


@pytest.mark.parametrize("name", ["statistics", "code", "calendar"])
def test_a_module_that_takes_the_name_of_one_of_pythons_own(lake, name):
    assert versions(name) == []
    assert_told(lake, name, f"{name}.py")


# --- imports of sources -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "importing",
    [
        "import importlib\ndef f(x):\n    return importlib.import_module('told_helper').f(x)\n",
        "from importlib import import_module\ndef f(x):\n    return import_module('told_helper').f(x)\n",
        "from importlib import import_module\ndef f(x):\n    return import_module(name='told_helper').f(x)\n",
        "def f(x):\n    return __import__('told_helper').f(x)\n",
        "def f(x):\n    return __import__('told_helper', fromlist=['f']).f(x)\n",
        "import importlib\ndef f(x):\n    return importlib.import_module('.m', package='told_helper').f(x)\n",
        "import importlib\ndef f(x):\n    return importlib.import_module(f'told_helper.{x}').f(x)\n",
    ],
)
def test_a_module_that_is_imported_by_a_call(lake, importing):
    lake.write("told_a.py", importing)
    assert_told(lake, "told_a", "told_helper.py")


@pytest.mark.parametrize(
    "importing",
    [
        "import importlib\ndef f(x):\n    return importlib.import_module('told_' + x).f(x)\n",
        "import importlib\ndef f(x):\n    return importlib.import_module(x).f(x)\n",
        "import importlib\ndef f(x):\n    return importlib.import_module('.m', package=x).f(x)\n",
        "import importlib\ndef f(x):\n    return importlib.import_module(*x).f(x)\n",
        "from importlib import import_module as g\ndef f(x):\n    return g('told_helper').f(x)\n",
        "import importlib\ng = importlib.import_module\ndef f(x):\n    return g('told_helper').f(x)\n",
        "import importlib\ndef f(x):\n    return getattr(importlib, 'import_module')('told_helper').f(x)\n",
        "def f(x):\n    return __import__(x).f(x)\n",
        "def f(x):\n    return __import__('m', globals(), None, ['f'], 1).f(x)\n",
        "def f(x):\n    exec(x)\n",
        "def f(x):\n    return eval('__imp' 'ort__')(x)\n",
        "import runpy\ndef f(x):\n    return runpy.run_path(x)['f'](x)\n",
        "import sys\ndef f(x):\n    sys.path.insert(0, x)\n    import told_helper\n",
        "import sys as s\ndef f(x):\n    s.path.insert(0, x)\n    import told_helper\n",
        "import builtins as b\ndef f(x):\n    b.exec(x)\n",
        "from builtins import exec as run\ndef f(x):\n    run(x)\n",
        "import pydoc\ndef f(x):\n    return pydoc.locate(x)\n",
        "from importlib.metadata import entry_points\ndef f(x):\n    return entry_points()[0].load()\n",
        "from importlib.util import spec_from_file_location\ndef f(x):\n    return x\n",
    ],
)
def test_what_a_source_computes_is_not_known(lake, importing):
    lake.write("told_a.py", importing)
    lake.write("told_b.py", "import told_a\n")
    assert versions("told_a") is None
    assert versions("told_b") is None
    assert "its module told_a uses" in packages_here(["told_a"]).unknown


@pytest.mark.parametrize(
    "importing",
    [
        "import importlib\ndef f(x):\n    return importlib.import_module(f'{__name__}.{x}').f(x)\n",
        "import importlib\ndef f(x):\n    return importlib.import_module(__name__ + '.' + x).f(x)\n",
        "import importlib\ndef f(x):\n    return importlib.import_module('.' + x, __package__).f(x)\n",
        "import importlib\ndef f(x):\n    return importlib.import_module('told_a.' + x).f(x)\n",
        "from told_a import *\n",
    ],
)
def test_any_module_of_a_package(lake, importing):
    """Which one is computed, but it is one of those that count anyway; and so does what they do."""
    lake.write("told_a/__init__.py", importing)
    assert_told(lake, "told_a", "told_a/m.py")
    lake.write("told_a/m.py", "def f(x):\n    return __import__(x).f(x)\n")
    assert versions("told_a") is None


def test_only_modules_that_a_function_reaches_are_asked_what_they_compute(lake):
    lake.write("told_a/__init__.py", "")
    lake.write("told_a/plugins.py", "def f(x):\n    return __import__(x).f(x)\n")
    lake.write("told_a/sub/__init__.py", "")
    lake.write("told_a/sub/m.py", "from .. import n\n")
    lake.write("told_a/n.py", "")
    assert versions("told_a.sub.m") is not None
    lake.write("told_a/n.py", "from . import plugins\n")
    assert versions("told_a.sub.m") is None
    lake.write("told_a/n.py", "from .plugins import f\n")
    assert versions("told_a.sub.m") is None
    lake.write("told_a/n.py", "import told_b\n")
    lake.write("told_b.py", "import told_a.plugins\n")
    assert versions("told_a.sub.m") is None
    lake.write("told_b.py", "")
    assert_told(lake, "told_a.sub.m", "told_a/plugins.py")  # which may yet be imported by others


def test_a_function_that_computes_what_it_imports():
    """One that is sent by value: its code has names and texts, of which nothing tells what it makes."""
    assert package_versions(packages_named(pickle.dumps(("import_module", "told_a")))) is None
    assert package_versions(packages_named(pickle.dumps(("import", "told_a")))) == []


@pytest.mark.parametrize("names", [{"pydoc", "importfile"}, {"sys", "path", "insert"}, {"addsitedir"}])
def test_a_function_that_changes_where_it_imports_from(names):
    found = packages_here(names)
    assert found.versions is None
    assert "nothing tells what the function runs" in found.unknown


def test_text_that_moves_from_one_module_to_the_next(lake):
    lake.write("told_a/__init__.py", "")
    lake.write("told_a/a.py", "x = 1\ny = 2\n")
    lake.write("told_a/b.py", "z = 3\n")
    before = versions("told_a")
    lake.write("told_a/a.py", "x = 1\n")
    lake.write("told_a/b.py", "y = 2\nz = 3\n")
    assert versions("told_a") != before


# --- places -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["site", "local"])
def test_a_local_portion_of_an_installed_namespace(lake, first, monkeypatch):
    if first == "site":
        monkeypatch.syspath_prepend(lake.site)
    lake.install("acme-core", {"told_acme/core.py": ONE})
    lake.write("told_acme/local.py")
    assert "acme-core==1.0" in versions("told_acme.core")
    assert_told(lake, "told_acme.local", "told_acme/local.py")


def test_a_portion_that_is_looked_at_earlier(lake, monkeypatch):
    lake.install("acme-core", {"told_acme/m.py": ONE})
    lake.write("told_acme/m.py", TWO)
    before = versions("told_acme.m")
    monkeypatch.syspath_prepend(lake.site)
    assert versions("told_acme.m") != before


@pytest.mark.parametrize("extends", ["__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"])
def test_a_local_portion_of_an_installed_package_that_extends_its_path(lake, extends, monkeypatch):
    monkeypatch.syspath_prepend(lake.site)
    lake.install("acme-core", {"told_acme/__init__.py": extends})
    lake.write("told_acme/local.py")
    assert_told(lake, "told_acme.local", "told_acme/local.py")


def test_a_module_that_was_put_among_installed_ones(lake, monkeypatch):
    lake.install("acme-core", {"told_acme/core.py": ONE})
    lake.install("told-one", {"told_one/__init__.py": ONE, "told_one/m.py": ONE})
    assert versions("told_one.m") == ["told-one==1.0"]
    for module in ("told_acme", "told_one"):
        assert_told(lake, f"{module}.put", f"{module}/put.py", "site")
        assert_told(lake, f"{module}.sub.m", f"{module}/sub/m.py", "site")
    lake.write("egg/told_acme/inner.py", ONE, "site")
    monkeypatch.syspath_prepend(lake.site / "egg")
    assert_told(lake, "told_acme.inner", "egg/told_acme/inner.py", "site")


def test_a_module_in_the_folder_of_pythons_own(lake, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(lake.local))
    interpreter_folders.is_pythons_own.cache_clear()
    lake.write("statistics.py")
    assert versions("statistics") == []
    assert_told(lake, "told_custom", "told_custom.py")
    monkeypatch.undo()
    interpreter_folders.is_pythons_own.cache_clear()


def test_two_builds_of_one_version(lake):
    """``pip install .`` brings what the sources are by then, under the version that they had before."""
    lake.install("told-one", {"told_one.py": ONE})
    lake.write("told_one-1.0.dist-info/RECORD", "told_one.py,sha256=a,1\n../../bin/told,sha256=x,2\n", "site")
    before = versions("told_one")
    lake.write("told_one-1.0.dist-info/RECORD", "told_one.py,sha256=b,1\n../../bin/told,sha256=x,2\n", "site")
    lake.write("told_touched", "", "site")
    assert len(before) == 1
    assert versions("told_one") != before


def test_every_distribution_that_has_modules_in_a_package_counts(lake):
    lake.install("acme-core", {"told_acme/__init__.py": ""})
    lake.install("acme-more", {"told_acme/more.py": ""}, requires=["told-one"])
    lake.install("told-one", {"told_one.py": ONE})
    assert versions("told_acme.more") == ["acme-core==1.0", "acme-more==1.0", "told-one==1.0"]


def test_metadata_beside_sources_says_nothing_of_them(lake):
    lake.install("told-eggy", {"told_eggy/__init__.py": ONE}, where="local")
    assert_told(lake, "told_eggy", "told_eggy/__init__.py")
    lake.write("told_old.egg-info/PKG-INFO", "Metadata-Version: 2.1\nName: told_old\nVersion: 0.1\n")
    lake.write("told_old.egg-info/top_level.txt", "told_old\n")
    lake.write("told_old.egg-info/SOURCES.txt", "told_old.py\n")
    assert_told(lake, "told_old", "told_old.py")


def test_a_version_is_believed_of_what_a_distribution_lists(lake):
    lake.install("told-one", {"told_one/__init__.py": ONE})
    assert versions("told_one") == ["told-one==1.0"]
    lake.install("told-two", {"told_two.py": ONE}, record=False)
    assert versions("told_two") == ["told-two==1.0"]
    lake.write("told_one.py", ONE)  # hidden by nothing: folders come first, but this one is in another
    assert_told(lake, "told_one", "told_one.py")
    lake.install("told-three", {"told_three/__init__.py": ONE})
    lake.write("told_three-1.0.dist-info/RECORD", "told_other.py,,\n", "site")
    assert_told(lake, "told_three", "told_three/__init__.py", "site")


def test_what_an_installed_package_requires_may_be_hidden(lake):
    lake.install("told-one", {"told_one.py": "import told_two\n"}, requires=["told-two"])
    lake.install("told-two", {"told_two.py": ONE})
    assert versions("told_one") == ["told-one==1.0", "told-two==1.0"]
    assert_told(lake, "told_one", "told_two.py")
    (lake.local / "told_two.py").unlink()
    lake.write("told_two/__init__.py", "")
    lake.write("told_two/inner.py", "exec(input())\n")
    assert versions("told_one") is None


@pytest.mark.parametrize(
    "importing",
    [
        "import told_local\n",
        "import os, told_local as t\n",
        "def f(x):\n    from told_local import f\n    return f(x)\n",
        "try:\n    import told_local.part\nexcept ImportError:\n    pass\n",
        "from os import (\n    path,\n)\nimport told_local # our own\n",
        "try: import told_local\nexcept ImportError: pass\n",
        "import os; import told_local\n",
        "import os, \\\n    told_local\n",
        "from importlib import import_module\nimport_module('told_local')\n",
    ],
)
@pytest.mark.parametrize("record", [True, False])
def test_what_an_installed_package_imports_without_requiring_it(lake, importing, record):
    lake.install("told-careless", {"told_careless/__init__.py": ONE, "told_careless/m.py": importing}, record=record)
    assert_told(lake, "told_careless.m", "told_local.py")


def test_what_an_installed_package_imports_and_another_distribution_has(lake):
    lake.install("told-careless", {"told_careless.py": "import told_other\n"})
    lake.install("told-other", {"told_other.py": ONE})
    before = versions("told_careless")
    (lake.site / "told_other-1.0.dist-info" / "METADATA").unlink()
    lake.install("told-other", {"told_other.py": TWO}, version="2.0")
    for file in (lake.site / "told_other-1.0.dist-info").iterdir():
        file.unlink()
    (lake.site / "told_other-1.0.dist-info").rmdir()
    assert before is not None
    assert before != versions("told_careless")


@pytest.mark.parametrize("extra", ["all", "complete", "fast"])
def test_what_an_installed_package_requires_for_an_extra(lake, extra):
    lake.install("told-user", {"told_user.py": ONE}, requires=[f'told-maths; extra == "{extra}"'])
    lake.install("told-maths", {"told_maths.py": ONE})
    assert_told(lake, "told_user", "told_maths.py")


@pytest.mark.parametrize("where", ["told_user/m.py", "told_user/testing/m.py"])
def test_what_an_installed_package_imports_of_another_may_be_hidden(lake, where):
    lake.install("told-user", {"told_user/__init__.py": ONE, where: "import told_other\n"}, requires=["told-third"])
    lake.install("told-other", {"told_other.py": ONE})
    assert versions("told_user") == ["told-user==1.0"]
    assert_told(lake, "told_user", "told_other.py")


def test_a_part_of_a_namespace_that_an_installed_package_imports(lake):
    lake.install("told-user", {"told_user.py": "import told_space.one\n"}, requires=["told-third"])
    lake.install("told-space", {"told_space/one.py": ONE})
    assert versions("told_user") == ["told-user==1.0"]
    assert_told(lake, "told_user", "told_space/one.py")


def test_data_in_a_zip_hides_no_part_of_a_namespace(lake, monkeypatch):
    lake.install("told-user", {"told_user.py": "import told_space.one\n"}, requires=["told-third"])
    lake.install("told-space", {"told_space/one.py": ONE})
    with zipfile.ZipFile(lake.local / "jar.jar", "w") as jar:
        jar.writestr("told_space/", "")
        jar.writestr("told_space/message.proto", "message M {}")
    monkeypatch.syspath_prepend(lake.local / "jar.jar")
    assert any("jar.jar" in place for place in importlib.util.find_spec("told_space").submodule_search_locations)
    assert versions("told_user") == ["told-user==1.0"]
    with zipfile.ZipFile(lake.local / "jar.jar", "a") as jar:
        jar.writestr("told_space/one.py", ONE)
    importlib.invalidate_caches()
    assert versions("told_user") != ["told-user==1.0"]


@pytest.mark.long
def test_a_package_of_very_many_sources(lake):
    many = {f"told_large/m{number}.py": "" for number in range(1_100)}
    lake.install(
        "told-large", {"told_large/__init__.py": "from os import \\\n  path\nimport os, \\\n  told_local\n", **many}
    )
    assert_told(lake, "told_large", "told_local.py")


def test_what_only_the_tests_of_an_installed_package_need(lake):
    requires = ['told-check; extra == "test"', 'told-check; extra == "all"']
    lake.install(
        "told-user", {"told_user/__init__.py": ONE, "told_user/tests/a.py": "import told_check"}, requires=requires
    )
    lake.write("told_check.py", ONE)
    before = versions("told_user")
    lake.write("told_check.py", TWO)
    assert before == versions("told_user")
    assert before is not None


def test_what_an_installed_package_requires_may_be_under_development(lake, tmp_path, monkeypatch):
    lake.install("told-one", {"told_one.py": "import told_two\n"}, requires=["told-two"])
    lake.install("told-two", {"_told_two.pth": f"{tmp_path / 'tree'}\n"})
    lake.write("told_two-1.0.dist-info/top_level.txt", "", "site")
    lake.write("told_two-1.0.dist-info/direct_url.json", '{"dir_info":{"editable":true},"url":"file:///x"}', "site")
    lake.tree = tmp_path / "tree"
    lake.write("told_two.py", ONE, "tree")
    monkeypatch.syspath_prepend(lake.tree)
    assert_told(lake, "told_one", "told_two.py", "tree")
    (lake.site / "_told_two.pth").write_text("import told_hook; told_hook.install()\n")
    lake.write("x", "", "site")
    assert versions("told_one") is None


def test_namespaces_in_zips(lake, monkeypatch):
    with zipfile.ZipFile(lake.local / "z.zip", "w") as archive:
        archive.writestr("told_z/", "")
        archive.writestr("told_z/m.py", ONE)
    monkeypatch.syspath_prepend(str(lake.local / "z.zip"))
    assert importlib.util.find_spec("told_z") is not None
    assert versions("told_z.m") is None
    lake.write("told_z/n.py")
    assert versions("told_z.n") is None


def test_folders_of_data_in_zips_are_no_modules(lake, monkeypatch):
    with zipfile.ZipFile(lake.local / "jar.jar", "w") as jar:
        jar.writestr("told_proto/", "")
        jar.writestr("told_proto/message.proto", "message M {}")
    lake.install("told-user", {"told_user.py": "import told_proto\n"})
    monkeypatch.syspath_prepend(lake.local / "jar.jar")
    assert importlib.util.find_spec("told_proto") is not None
    assert versions("told_user") == ["told-user==1.0"]
    with zipfile.ZipFile(lake.local / "jar.jar", "a") as jar:
        jar.writestr("told_proto/m.py", ONE)
    importlib.invalidate_caches()
    assert versions("told_user") is None


def test_zipped_eggs(lake, monkeypatch):
    with zipfile.ZipFile(lake.site / "told_egg-1.0-py3.egg", "w") as archive:
        archive.writestr("told_egg.py", ONE)
        archive.writestr("EGG-INFO/PKG-INFO", "Metadata-Version: 2.1\nName: told-egg\nVersion: 1.0\n")
        archive.writestr("EGG-INFO/top_level.txt", "told_egg\n")
    monkeypatch.syspath_prepend(str(lake.site / "told_egg-1.0-py3.egg"))
    assert versions("told_egg") is None


def test_folders_behind_links(lake, tmp_path):
    lake.elsewhere = tmp_path / "elsewhere"
    lake.write("m.py", ONE, "elsewhere")
    lake.write("told_a/__init__.py", "")
    (lake.local / "told_a" / "linked").symlink_to(lake.elsewhere)
    assert_told(lake, "told_a.linked.m", "m.py", "elsewhere")


def test_compiled_modules_of_a_local_package(lake):
    lake.write("told_a/__init__.py", "")
    lake.write("told_a/fast.cpython-311-x86_64-linux-gnu.so", "no library")
    assert versions("told_a.fast") is None
    lake.write("told_a/old.pyc", "no byte code")
    assert versions("told_a.old") is None
    lake.write("told_s.so", "no library")
    assert versions("told_s") is None
    assert versions("told_a") is not None


class Hook(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name == "told_hooked" else None

    def exec_module(self, module):
        module.f = len


def test_modules_that_hooks_find_or_others_make(lake, monkeypatch):
    assert versions("told_hooked") == []
    monkeypatch.setattr(sys, "meta_path", [Hook(), *sys.meta_path])
    assert versions("told_hooked") is None
    assert versions("told_made") == []
    monkeypatch.setitem(sys.modules, "told_made", types.ModuleType("told_made"))
    assert versions("told_made") is None


def test_folders_of_data_are_no_modules(lake):
    lake.write("told_data/part-0.parquet", "")
    lake.write("told_data/.venv/lib/x.py", "")
    lake.write("told_data/a=1.0/x.py", "")
    assert versions("told_data") == []
    lake.write("told_data/m.py", "")
    assert versions("told_data") != []


def test_folders_of_this_interpreter():
    assert str(Path(sysconfig.get_path("purelib")).resolve()) in interpreter_folders.site_folders()
    assert interpreter_folders.is_pythons_own(importlib.util.find_spec("json").origin)
    assert not interpreter_folders.is_pythons_own(pytest.__file__)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python has no distutils any more")
def test_asking_for_a_module_changes_nothing_in_this_process():
    """The finder of ``setuptools`` forgets ``distutils``, and warns of it, when it is asked for ``pip``."""
    script = (
        "import sys, warnings; warnings.simplefilter('ignore'); import distutils; warnings.simplefilter('error')\n"
        "from skipstone.functions.identity.package_versions import find_module\n"
        "before = dict(sys.modules), [type(one).__name__ for one in sys.meta_path]\n"
        "found = find_module('pip')\n"
        "assert 'distutils' in sys.modules and before[1] == [type(one).__name__ for one in sys.meta_path]\n"
        "from importlib.machinery import PathFinder\n"
        "assert (found and found.origin) == getattr(PathFinder.find_spec('pip'), 'origin', None)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_planning_looks_at_a_package_once_and_the_next_one_again(lake, monkeypatch):
    """Sources are walked through for each planning, not for each index, predicate and promise that asks."""
    lake.write("told_local/__init__.py", "def f(x):\n    return x\n")
    looks = []
    walk = local_sources._files
    monkeypatch.setattr(local_sources, "_files", lambda place, most: looks.append(place) or walk(place, most))
    with gathered_evidence() as evidence:
        before = packages_here(["told_local"])
        assert packages_here(["told_local.f"]).versions == packages_here(["told_local"]).versions == before.versions
    assert len(looks) == 1
    assert before.evidence <= evidence
    lake.write("told_local/__init__.py", "def f(x):\n    return x + 1\n")
    with gathered_evidence():
        assert packages_here(["told_local"]).versions != before.versions
    assert len(looks) == 2
