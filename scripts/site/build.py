"""Build the documentation site into build/docs/site: ``make site``, or ``python scripts/site/build.py [FOLDER]``.

The pages are those of the repository. The API reference comes from docstrings, which are read, not imported: nothing
but the extra ``docs`` is needed. A link or a heading that is not there fails the build.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))

from navigation import API, NAVIGATION, REST, Api, Entry  # noqa: E402
from pages import Pages  # noqa: E402


def stage(root: Path, folder: Path, navigation: list[Entry] = NAVIGATION, api: Api = API) -> None:
    """Write into a folder what the site is made of: the pages, and the settings with the navigation.

    Parameters
    ----------
    root
        The repository.
    folder
        Is emptied first.
    navigation, api
        What is where.

    Raises
    ------
    FileNotFoundError
        If the navigation names a page that is not there.
    """
    shutil.rmtree(folder, ignore_errors=True)
    pages = Pages(root, folder / "pages")
    names = pages.write()
    for page, (title, about, documented) in api.items():
        directives = "".join(f"::: {name}\n\n" for name in documented)
        pages.add(f"api/{page}.md", f"# {title}\n\n{about}\n\n{directives}")
        names.append(f"api/{page}.md")
    entries = ", ".join(_in_toml(entry, pages) for entry in complete(navigation, names))
    head = f'[project]\nsite_name = "Skipstone"\ndocs_dir = "pages"\nsite_dir = "site"\nnav = [{entries}]\n'
    settings = (HERE / "zensical.toml").read_text(encoding="utf-8").replace('"../src"', json.dumps(str(root / "src")))
    (folder / "zensical.toml").write_text(f"{head}\n{settings}", encoding="utf-8")


def complete(navigation: list[Entry], names: list[str]) -> list[Entry]:
    """Return the navigation with the pages that its patterns name, and those of ``docs/`` that nothing names."""
    patterns = _named(navigation)
    if absent := [name for name in patterns if "*" not in name and name not in names]:
        msg = f"scripts/site/navigation.py names pages that are not there: {', '.join(absent)}"
        raise FileNotFoundError(msg)
    pages = [name for name in names if name.startswith("docs/") and name.endswith(".md")]
    rest = [name for name in pages if not any(fnmatchcase(name, pattern) for pattern in patterns)]
    spread = _spread(navigation, [name for name in names if name not in patterns])
    return [(title, [*below, *rest]) if title == REST else (title, below) for title, below in spread]


def _named(entries: list[Entry]) -> list[str]:
    found: list[str] = []
    for entry in entries:
        below = entry if isinstance(entry, str) else entry[1]
        found += [below] if isinstance(below, str) else _named(below)
    return found


def _spread(entries: list[Entry], names: list[str]) -> list[Entry]:
    """Put what patterns name in their places."""
    found: list[Entry] = []
    for entry in entries:
        if isinstance(entry, str):
            found += [name for name in names if fnmatchcase(name, entry)] if "*" in entry else [entry]
        else:
            title, below = entry
            found.append((title, below if isinstance(below, str) else _spread(below, names)))
    return found


def _in_toml(entry: Entry, pages: Pages) -> str:
    if isinstance(entry, str):
        return json.dumps(pages.place(entry))
    title, below = entry
    inside = below if isinstance(below, str) else [_in_toml(inner, pages) for inner in below]
    written = json.dumps(pages.place(inside)) if isinstance(inside, str) else f"[{', '.join(inside)}]"
    return f"{{ {json.dumps(title)} = {written} }}"


def build(folder: Path) -> int:
    """Build what was staged; return the generator's exit code."""
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", "zensical.toml"]
    return subprocess.run(command, cwd=folder, check=False).returncode


def main() -> int:
    """Stage and build; return the exit code."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "docs").resolve()
    stage(ROOT, folder)
    code = build(folder)
    if code == 0:
        print(f"To read it: python -m http.server --directory {shlex.quote(str(folder / 'site'))}")
    return code


if __name__ == "__main__":
    sys.exit(main())
