"""Drive pip from outside an environment, so that the environment holds no pip itself.

pip's own settings (its index, certificates, cache) are the user's and are left alone; only those
that would install somewhere else are taken out.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.environments.pythons import Python, satisfies
from harness.errors import Unavailable
from harness.store.json_text import parse
from harness.store.typed import read

_ELSEWHERE = ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_REQUIRE_VIRTUALENV")
NOT_OFFERED = re.compile(
    r"No matching distribution found|Could not find a version|ResolutionImpossible"
)
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")
SHA256 = re.compile(r"[0-9a-f]{64}")
_BUNDLED = "import ensurepip, pathlib; print(pathlib.Path(ensurepip.__file__).parent / '_bundled')"


class NotOffered(Exception):
    """Say that the index does not have what was asked for; another choice may do."""


@dataclass(frozen=True)
class Item:
    """One file that pip would install, and where it would come from."""

    name: str
    version: str
    url: str
    sha256: str
    requires: tuple[str, ...] = ()
    """What it needs in its turn, as its metadata says (PEP 508)."""


@dataclass(frozen=True)
class _Metadata:
    name: str
    version: str
    requires_dist: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Archive:
    hashes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Download:
    url: str
    archive_info: _Archive = _Archive()


@dataclass(frozen=True)
class _Chosen:
    metadata: _Metadata
    download_info: _Download


@dataclass(frozen=True)
class _Report:
    install: tuple[_Chosen, ...]


def read_report(report: Path) -> list[Item]:
    """Read what pip says that it would install; much of it is the index's own words."""
    try:
        told = read(_Report, parse(report.read_bytes()))
    except ValueError as problem:
        raise Unavailable(f"pip's report cannot be read: {problem}.") from None
    return [_item(one) for one in told.install]


def _item(chosen: _Chosen) -> Item:
    what, where = chosen.metadata, chosen.download_info
    digest = where.archive_info.hashes.get("sha256", "")
    if not (_NAME.fullmatch(what.name) and _VERSION.fullmatch(what.version)):
        raise Unavailable(f"pip's report cannot be read: it names {what.name!r} {what.version!r}.")
    if not SHA256.fullmatch(digest):
        raise Unavailable(
            f"{what.name} {what.version}: pip tells no SHA-256 of {where.url}. It is no file of a "
            "package index or a folder of wheels."
        )
    return Item(what.name, what.version, where.url, digest, what.requires_dist)


def hashed(items: Iterable[Item]) -> str:
    """Write a lock that pip installs with --require-hashes: these files, and no others."""
    lines = (f"{one.name}=={one.version} --hash=sha256:{one.sha256}\n" for one in items)
    return "".join(sorted(lines))


@contextmanager
def requirement_files(
    requirements: Iterable[str], pins: Mapping[str, str]
) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Give the place of a report, and the words that ask pip for one and install nothing."""
    with tempfile.TemporaryDirectory(prefix="bakeoff-") as scratch:
        report, constraints = Path(scratch) / "report.json", Path(scratch) / "pins.txt"
        constraints.write_text("".join(f"{name}=={pins[name]}\n" for name in pins))
        yield (
            report,
            (
                *("install", "--dry-run", "--ignore-installed", "--quiet", "--no-input"),
                *("--report", str(report), "--constraint", str(constraints), *requirements),
            ),
        )


def file_fetched(line: str) -> str:
    """Name the file or package that pip says in a line it is fetching; "" in any other line."""
    verb, _, rest = line.partition(" ")
    return rest.partition(" ")[0].rpartition("/")[2] if verb in ("Collecting", "Processing") else ""


@dataclass(frozen=True)
class Installer:
    """pip, as it is started for one environment's interpreter."""

    argv: tuple[str, ...]
    """The command that pip is started with."""
    python: Path
    wheels: Path | None = None
    """The one folder that everything comes from; None: what the user's configuration names."""

    def plan(self, requirements: Iterable[str], pins: Mapping[str, str]) -> list[Item]:
        """Ask pip what it would install; raise NotOffered where the index lacks something."""
        with requirement_files(requirements, pins) as (report, words):
            self.run(*words)
            return read_report(report)

    def install(self, items: Sequence[Item], folder: Path, on_line: Callable[[str], None]) -> None:
        """Install exactly the files that were planned, each checked by its hash.

        The lock and pip's words are kept in ``folder``; pip's steps go to the listener.
        """
        lock = folder / "lock.txt"
        lock.write_text(hashed(items), "utf-8")
        only = () if self.wheels is None else ("--no-index", "--find-links", str(self.wheels))
        self.run(
            *("install", "--no-deps", "--no-input", "--require-hashes", *only, "-r", str(lock)),
            log=folder / "create.log",
            on_line=on_line,
        )

    def complaints(self) -> list[str]:
        """Let pip say which packages of the environment do not fit together."""
        answer = subprocess.run(
            [*self.argv, "check"],
            env=pip_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        return answer.stdout.splitlines() if answer.returncode else []

    @property
    def _environment(self) -> dict[str, str]:
        settings = pip_environment()
        if self.wheels is None:
            return settings
        kept = {name: value for name, value in settings.items() if not name.startswith("PIP_")}
        return {**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def run(
        self, *arguments: str, log: Path | None = None, on_line: Callable[[str], None] | None = None
    ) -> None:
        """Run pip to its end; what it complains of becomes the error."""
        lines: list[str] = []
        with started([*self.argv, *arguments], self._environment) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    lines.append(line)
                    if on_line is not None:
                        on_line(line.strip())
            finally:
                if log is not None:
                    log.write_text("".join(lines), "utf-8")
        if process.returncode == 0:
            return
        errors = [line.strip() for line in lines if line.lstrip().startswith("ERROR")] or lines[-3:]
        text = "\n    ".join(line.strip() for line in errors)
        if NOT_OFFERED.search(text):
            raise NotOffered(text)
        if log is not None:
            text += f"\n    pip's whole output: {log}"
        raise Unavailable(f"pip could not do it (exit code {process.returncode}):\n    {text}")


@contextmanager
def started(argv: Sequence[str], env: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Start pip and wait for its end; if we are stopped, so is all that it started.

    What it unpacks and compiles in goes with it.
    """
    with (
        tempfile.TemporaryDirectory(prefix="bakeoff-", ignore_cleanup_errors=True) as scratch,
        subprocess.Popen(
            argv,
            env={**env, "TMPDIR": scratch},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=0,
        ) as process,
    ):
        try:
            yield process
        except BaseException:
            # Ctrl-C, or a listener that failed: pip must not go on behind our back.
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise


def installer(base: Python, python: Path, *, wheels: Path | None = None) -> Installer:
    """Find a pip that serves an interpreter: the harness's own, or the one Python brought along.

    ``wheels`` is a folder to install from, with nothing else asked; a pip in it serves too.
    """
    if _serves(_own_pip(), base):
        return Installer((sys.executable, "-m", "pip", "--python", str(python)), python, wheels)
    answer = subprocess.run(
        [str(base.path), "-I", "-c", _BUNDLED], capture_output=True, text=True, check=False
    )
    folders = [Path(answer.stdout.strip())] if answer.returncode == 0 else []
    given = [] if wheels is None else [wheels]
    for folder in (*given, *folders, Path("/usr/share/python-wheels")):
        for wheel in sorted(folder.glob("pip-*.whl"), reverse=True):
            if _serves(_pip_in(wheel), base):
                return Installer((str(python), str(wheel / "pip")), python, wheels)
    raise Unavailable(
        f"No pip was found that serves {base}.\n"
        "    Give the harness one: python -m ensurepip, or python -m pip install pip."
    )


def _own_pip() -> importlib.metadata.Distribution | None:
    try:
        return importlib.metadata.distribution("pip")
    except importlib.metadata.PackageNotFoundError:
        return None


def _pip_in(wheel: Path) -> importlib.metadata.Distribution | None:
    found = importlib.metadata.distributions(name="pip", path=[str(wheel)])
    return next(iter(found), None)


def _serves(pip: importlib.metadata.Distribution | None, base: Python) -> bool:
    if pip is None:
        return False
    needed = pip.metadata["Requires-Python"] or ""
    return satisfies(base.version, re.sub(r",!=[^,]*", "", needed.replace(" ", "")))


def pip_environment() -> dict[str, str]:
    """Give pip the user's settings, but for those that would install elsewhere."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _ELSEWHERE and not name.startswith("PYTHON")
    }
    return {**kept, "PYTHONNOUSERSITE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
