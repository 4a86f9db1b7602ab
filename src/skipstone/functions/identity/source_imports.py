"""What a Python source imports: by statements, by calls with a name in them, or in ways that a source does not show."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

__all__ = ["Imports", "imports_of", "is_dynamic"]

_BY_NAME = frozenset({"import_module", "__import__"})
_RUNNING = frozenset(
    {"run_module", "run_path", "load_source", "exec_module", "spec_from_file_location", "SourceFileLoader"}
)
_DYNAMIC = (
    _BY_NAME
    | _RUNNING
    | {
        *("load_module", "spec_from_loader", "module_from_spec", "SourcelessFileLoader", "ExtensionFileLoader"),
        *("resolve_name", "walk_packages", "iter_modules", "extend_path", "declare_namespace", "addsitedir"),
        *("entry_points", "iter_entry_points", "load_entry_point", "importfile", "safeimport"),
        *("meta_path", "path_hooks", "__path__", "__loader__"),
    }
)
_EVALUATING = frozenset({"exec", "eval"})  # as names: methods that are called so are others
_OF_MODULES = {"sys": {"path"}, "builtins": _EVALUATING, "__builtins__": _EVALUATING, "pydoc": {"locate"}}
_HERE = frozenset({"__name__", "__package__"})


@dataclass
class Imports:
    """What a module imports.

    Attributes
    ----------
    names
        Modules, by their full names; where an attribute may be a module, it is named as one.
    packages
        Packages of which any module may be imported.
    computed
        How else it imports, so that no source tells what; empty when it does not.
    """

    names: set[str] = field(default_factory=set)
    packages: set[str] = field(default_factory=set)
    computed: str = ""


def is_dynamic(name: str) -> bool:
    """Whether a name in a function's code is that of a way to import, or to run, what is known only when it runs."""
    return name in _DYNAMIC


def imports_of(source: bytes, module: str, *, is_package: bool) -> Imports:
    """Find what a module imports, wherever in it; nothing for what is no Python, which cannot be imported itself.

    Parameters
    ----------
    source
        Its text.
    module
        Its full name.
    is_package
        Whether it is the ``__init__`` of a package.
    """
    try:
        vertices = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return Imports()
    except (RecursionError, MemoryError):
        return Imports(computed="is too deep to be read")
    found = _Finder(module if is_package else module.rpartition(".")[0], module)
    known: set[int] = set()  # mentions whose calls say what they import
    for vertex in vertices:
        if isinstance(vertex, ast.Import):
            found.aliases |= {alias.asname: alias.name for alias in vertex.names if alias.asname}
        if isinstance(vertex, ast.Call) and _name(vertex.func) in _BY_NAME and found.called(vertex):
            known.add(id(vertex.func))
    for vertex in vertices:
        if id(vertex) not in known:
            found.see(vertex)
    return found.imports


class _Finder:
    """Collects what the vertices of a module's syntax tree import."""

    def __init__(self, package: str, module: str) -> None:
        self.imports = Imports()
        self.aliases: dict[str, str] = {}
        self._package = package
        self._module = module

    def see(self, vertex: ast.AST) -> None:
        """Take one vertex."""
        if isinstance(vertex, ast.Import):
            self.imports.names |= {alias.name for alias in vertex.names}
        elif isinstance(vertex, ast.ImportFrom):
            self._from(vertex)
        elif isinstance(vertex, ast.Name) and (vertex.id in _DYNAMIC or vertex.id in _EVALUATING):
            self._compute(vertex.id, vertex)
        elif isinstance(vertex, ast.Attribute):
            of = _name(vertex.value)
            if vertex.attr in _DYNAMIC or vertex.attr in _OF_MODULES.get(self.aliases.get(of, of), ()):
                self._compute(vertex.attr, vertex)
        elif isinstance(vertex, ast.Constant) and isinstance(vertex.value, str) and vertex.value in _DYNAMIC:
            self._compute(vertex.value, vertex)

    def called(self, call: ast.Call) -> bool:
        """Take a call that imports by name; return whether the source shows which."""
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        name = call.args[0] if call.args else given.get("name")
        if any(isinstance(one, ast.Starred) for one in call.args) or None in given or name is None:
            return False
        if _name(call.func) == "__import__":
            return self._imported(call, name, given)
        package = call.args[1] if len(call.args) > 1 else given.get("package")
        base = self._base(package)
        prefix, is_whole = _beginning(name)
        if prefix is None:  # it begins with the name of this very module or package
            prefix = f"{self._module}."
        elif prefix.startswith("."):
            if not base:
                return False
            below = prefix.lstrip(".")
            prefix = _absolute(below, len(prefix) - len(below), base) + ("" if is_whole else ".")
        if is_whole:
            self.imports.names.add(prefix)
        elif "." in prefix:
            self.imports.packages.add(prefix.partition(".")[0])
        return is_whole or "." in prefix

    def _imported(self, call: ast.Call, name: ast.expr, given: dict[str | None, ast.expr]) -> bool:
        """Take a call of ``__import__``, which may import attributes of a package, and relatively."""
        prefix, is_whole = _beginning(name)
        level = call.args[4] if len(call.args) > 4 else given.get("level")
        if (
            prefix is None
            or not is_whole
            or not (level is None or (isinstance(level, ast.Constant) and not level.value))
        ):
            return False
        self.imports.names.add(prefix)
        if len(call.args) > 3 or "fromlist" in given:
            self.imports.packages.add(prefix.partition(".")[0])
        return True

    def _base(self, package: ast.expr | None) -> str | None:
        """Return the package that a name is relative to."""
        if isinstance(package, ast.Constant) and isinstance(package.value, str):
            return package.value
        if isinstance(package, ast.Name) and package.id in _HERE:
            return self._package if package.id == "__package__" else self._module
        return None

    def _from(self, vertex: ast.ImportFrom) -> None:
        """Take ``from … import …``: what is imported may be a module, or anything that a package has by ``*``."""
        base = vertex.module or ""
        if vertex.level:
            base = _absolute(base, vertex.level, self._package)
        self.imports.names.add(base)
        for alias in vertex.names:
            if alias.name == "*":
                self.imports.packages.add(base)
            else:
                self.imports.names.add(f"{base}.{alias.name}")
            is_dynamic = alias.name in _DYNAMIC and (alias.name not in _BY_NAME or alias.asname)
            if is_dynamic or alias.name in _OF_MODULES.get(base, ()):
                self._compute(alias.name, vertex)

    def _compute(self, what: str, vertex: ast.expr | ast.stmt) -> None:
        """Note the first way to import something that no source names."""
        self.imports.computed = self.imports.computed or f"uses {what} in line {vertex.lineno}"


def _name(vertex: ast.expr) -> str:
    """Return the last name of a dotted one; empty for anything else."""
    return vertex.id if isinstance(vertex, ast.Name) else vertex.attr if isinstance(vertex, ast.Attribute) else ""


def _beginning(name: ast.expr) -> tuple[str | None, bool]:
    """Return the text that a name begins with, and whether it is all; no text when that is the module's own name.

    A name of which no beginning is known begins with an empty text.
    """
    if isinstance(name, ast.Constant):
        return (name.value, True) if isinstance(name.value, str) else ("", False)
    first: ast.expr | None = None
    rest: ast.expr | None = None
    if isinstance(name, ast.JoinedStr):
        first = name.values[0] if name.values else None
        rest = name.values[1] if len(name.values) > 1 else None
        first = first.value if isinstance(first, ast.FormattedValue) else first
    elif isinstance(name, ast.BinOp) and isinstance(name.op, ast.Add):
        inner = name
        while isinstance(inner.left, ast.BinOp) and isinstance(inner.left.op, ast.Add):
            inner = inner.left
        first, rest = inner.left, inner.right
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        return first.value, False
    is_here = isinstance(first, ast.Name) and first.id in _HERE
    if is_here and isinstance(rest, ast.Constant) and str(rest.value).startswith("."):
        return None, False
    return "", False


def _absolute(name: str, level: int, package: str) -> str:
    """Resolve a relative name."""
    parts = package.split(".")
    base = ".".join(parts[: len(parts) - (level - 1)])
    return f"{base}.{name}" if name and base else base or name
