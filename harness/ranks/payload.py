"""Copy the worker side into a run, and say which of its files a cell's trials import.

The copy is what workers import, so a run archives exactly the code that ran. It holds no byte code:
workers of several Python versions share it, and a full disk or a stranger may have spoilt that.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath, PurePosixPath

import harness
import workloads
from harness import plugins
from harness.store.contained import MOST_TEXT, Contained
from harness.store.run_code import digest_of

_WORKER = "harness.worker.__main__"
_OURS = ("harness.worker", "workloads")
_OURS_BEGIN = ("harness.", "workloads.")
_BY_NAME = frozenset({"importlib", "pkgutil", "runpy", "__import__"})
_GROUPS = ("workloads", "adapters")
_SUFFIXES = (".py", ".toml")
_BYTE_CODE = "__pycache__"


@dataclass(frozen=True)
class Payload:
    """The worker side: where each file of it comes from, by its path inside the payload."""

    files: Mapping[str, Path | None]
    """None is an empty file: the parents of a third party's package."""
    provider_packages: frozenset[str]

    def copy(self, target: Path) -> None:
        """Write all files; the folder appears whole."""
        into = Contained(target.parent)
        beside = target.with_name(f".{target.name}.new")
        into.remove(beside)
        for folder in sorted({(beside / inside).parent for inside in self.files}):
            into.make_folder(folder)
        for inside, content in self.contents().items():
            into.write(beside / inside, content, settled=False)
        into.rename(beside, target)

    def contents(self) -> dict[str, bytes]:
        """Read all files."""
        return {
            inside: source.read_bytes() if source else b"" for inside, source in self.files.items()
        }

    def digest(self) -> str:
        """Give the digest that a whole copy has."""
        return digest_of(self.contents())


def gather() -> Payload:
    """Find the worker side: ours, and the packages that third-party plug-ins declare."""
    home = Path(harness.__file__).parent
    files: dict[str, Path | None] = {"harness/__init__.py": home / "__init__.py"}
    files |= _package("harness.worker", home / "worker")
    files |= _package("workloads", Path(workloads.__file__).parent)
    packages = {"workloads", "harness.worker.adapters", "harness.worker.readers"}
    for group in _GROUPS:
        for provider in plugins.providers(group):
            packages.add(provider.package)
            if provider.origin != plugins.OURS and provider.folder is not None:
                files |= _package(provider.package, provider.folder)
                for parent in PurePosixPath(provider.package.replace(".", "/")).parents:
                    if parent.name:
                        files.setdefault(f"{parent}/__init__.py", None)
    return Payload(dict(sorted(files.items())), frozenset(packages))


def copied(folder: Path, files: Contained, origin: Payload) -> Payload:
    """Read the copy that a run has of a payload, by the files that are in it."""
    found = {
        name: files.checked(folder / name, MOST_TEXT)
        for name in files.files_below(folder)
        if _is_part(PurePosixPath(name))
    }
    return Payload(found, origin.provider_packages)


def remove_byte_code(run: Contained, folder: Path) -> None:
    """Remove what a Python would import instead of a payload's sources."""
    for name in run.folders(folder):
        if name == _BYTE_CODE:
            run.remove(folder / name)
        elif not run.is_link(folder / name):
            remove_byte_code(run, folder / name)


def _package(dotted: str, folder: Path) -> dict[str, Path | None]:
    inside = dotted.replace(".", "/")
    return {f"{inside}/{file}": path for file, path in _files(folder).items()}


def _files(folder: Path) -> dict[str, Path | None]:
    """Find what a payload may hold, by its path in the folder."""
    return {
        file.relative_to(folder).as_posix(): file
        for file in sorted(folder.rglob("*"))
        if _is_part(file)
    }


def _is_part(file: PurePath) -> bool:
    return file.suffix in _SUFFIXES and _BYTE_CODE not in file.parts


class Closures:
    """What a cell's trials import, found by reading the code, never by running it."""

    def __init__(self, payload: Payload) -> None:
        self._payload = payload
        self._modules = {_module(file): file for file in payload.files if file.endswith(".py")}
        self._imports: dict[str, frozenset[str]] = {}
        self._digests: dict[str, bytes] = {}

    def files(self, workload_module: str, adapter_module: str, *more: str) -> tuple[str, ...]:
        """List the payload's files that a cell's trials can import, ``more`` by computed names."""
        waiting = [_WORKER, workload_module, *self._siblings(adapter_module), *more]
        found: set[str] = set()
        while waiting:
            module = waiting.pop()
            if module in found or module not in self._modules:
                continue
            found.add(module)
            waiting += self._imported(module)
            waiting += self._chosen_by_name(module)
            if "." in module:
                waiting.append(module.rpartition(".")[0])
        return tuple(sorted(self._modules[module] for module in found))

    def digest(self, workload_module: str, adapter_module: str, *more: str) -> str:
        """Give one digest for everything a cell's trials can import."""
        whole = hashlib.sha256()
        for file in self.files(workload_module, adapter_module, *more):
            whole.update(file.encode() + b"\0" + self._digest(file))
        return whole.hexdigest()

    def _siblings(self, adapter: str) -> Iterator[str]:
        """Count the whole package of an adapter that has one: it may import by computed names."""
        yield adapter
        package = adapter.rpartition(".")[0]
        if package not in self._payload.provider_packages:
            yield from (name for name in self._modules if name.startswith(f"{package}."))

    def _chosen_by_name(self, module: str) -> Iterator[str]:
        """Count all beside a third party's module that imports by computed names."""
        package = module.rpartition(".")[0]
        if _BY_NAME.isdisjoint(self._imported(module)) or f"{module}.".startswith(_OURS_BEGIN):
            return
        yield from (name for name in self._modules if name.startswith(f"{package}."))

    def _digest(self, file: str) -> bytes:
        if file not in self._digests:
            self._digests[file] = hashlib.sha256(self._content(file)).digest()
        return self._digests[file]

    def _content(self, file: str) -> bytes:
        source = self._payload.files[file]
        return source.read_bytes() if source else b""

    def _imported(self, module: str) -> Iterable[str]:
        if module not in self._imports:
            file = self._modules[module]
            package = module if file.endswith("/__init__.py") else module.rpartition(".")[0]
            self._imports[module] = _imported_names(self._content(file), file, package)
        return self._imports[module]


def _module(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def _imported_names(source: bytes, file: str, package: str) -> frozenset[str]:
    """Name what a module imports; a session asks the same of a payload and of its copy."""
    return frozenset(_names(ast.parse(source, filename=file), package))


def _names(tree: ast.AST, package: str) -> Iterator[str]:
    """Name what is imported anywhere in a module, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                origin = ".".join([*parents, *([origin] if origin else [])])
            yield origin
            yield from (f"{origin}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Name) and node.id == "__import__":
            yield node.id
