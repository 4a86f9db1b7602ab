"""The pages of the documentation site, made from the repository's own.

``docs/`` is written to be read on GitHub, and stays as it is. On the site README is the first page, a link to a folder
leads to its README or to a list of what is in it, and a link to any other file to a page that shows it.
"""

from __future__ import annotations

import ast
import json
import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

__all__ = ["Pages"]

_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)#\s]+)(#[^)\s]*)?\)")
_LANGUAGES = {".py": "python", ".scala": "scala", ".toml": "toml", ".yaml": "yaml", ".sql": "sql"}
_OF_THE_ROOT = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


class Pages:
    """Writes pages into a folder, each where the site has it, with links that lead there.

    Parameters
    ----------
    root
        The repository.
    folder
        Where the pages go.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder

    def write(self) -> list[str]:
        """Write every page, and whatever they link to; return their names in the repository."""
        docs = (path for path in (self.root / "docs").rglob("*") if path.is_file())
        names = [*_OF_THE_ROOT, "examples", *sorted(path.relative_to(self.root).as_posix() for path in docs)]
        for name in names:  # grows by what is linked to
            names += [there for there in self._write_one(name) if there not in names]
        return names

    def add(self, name: str, text: str) -> None:
        """Write a page that the repository does not have."""
        self._put(self.place(name), self._relinked(name, text)[0].encode())

    def place(self, name: str) -> str:
        """Return where the site has a file or a folder of the repository."""
        path = self.root / name
        if path.is_dir():
            # A list of files is a page beside the folder: inside of it, it would be the first page of its section.
            return self.place(f"{name}/README.md") if (path / "README.md").exists() else f"{name}.md"
        if name in _OF_THE_ROOT:
            return _OF_THE_ROOT[name]
        if name.endswith("/README.md"):
            name = f"{name.removesuffix('README.md')}index.md"
        elif path.suffix != ".md" and not name.startswith("docs/"):
            name = f"{name}.md"
        return name.removeprefix("docs/")

    def _write_one(self, name: str) -> list[str]:
        path = self.root / name
        if path.is_dir() and (path / "README.md").exists():
            return [f"{name}/README.md"]
        if path.suffix != ".md" and name.startswith("docs/"):
            self._put(self.place(name), path.read_bytes())
            return []
        text, linked = self._relinked(name, _listing(path) if path.is_dir() else _shown(path))
        self._put(self.place(name), text.encode())
        return linked

    def _relinked(self, name: str, text: str) -> tuple[str, list[str]]:
        """Return a page with the links that the site needs, and what they lead to."""
        here = PurePosixPath(name) if (self.root / name).is_dir() else PurePosixPath(name).parent
        start = PurePosixPath(self.place(name)).parent
        linked = []

        def relink(match: re.Match[str]) -> str:
            there = os.path.normpath(here / match[2])
            if not (self.root / there).exists():
                return match[0]  # elsewhere, or broken: the site's generator tells which
            linked.append(there)
            return f"{match[1]}({os.path.relpath(self.place(there), start)}{match[3] or ''})"

        pieces = _FENCE.split(text)
        return "".join(piece if n % 2 else _LINK.sub(relink, piece) for n, piece in enumerate(pieces)), linked

    def _put(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _listing(folder: Path) -> str:
    entries = sorted(path for path in folder.iterdir() if path.name[0] not in "._")
    return f"# {folder.name.capitalize()}\n\n" + "".join(
        f"- [{path.name}]({path.name}){_summary(path)}\n" for path in entries
    )


def _summary(path: Path) -> str:
    said = ""
    if path.suffix == ".py":
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    elif (path / "README.md").exists():
        said = (path / "README.md").read_text(encoding="utf-8").partition("\n\n")[2]
    first = " ".join(said.partition("\n\n")[0].split())
    return f": {first}" if first else ""


def _shown(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    if path.suffix == ".ipynb":
        return "\n\n".join(_cell(cell) for cell in json.loads(text)["cells"])
    return f"# {path.name}\n\n````{_LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n````\n"


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    return source if cell["cell_type"] == "markdown" else f"````python\n{source}\n````"
