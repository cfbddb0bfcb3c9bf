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
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.environments.pythons import Python, satisfies
from harness.errors import Unavailable
from harness.store.json_text import parse
from harness.store.typed import read

_ELSEWHERE = ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_REQUIRE_VIRTUALENV")
NOT_OFFERED = re.compile(
    r"No matching distribution found|Could not find a version|ResolutionImpossible"
)
_BUNDLED = "import ensurepip, pathlib; print(pathlib.Path(ensurepip.__file__).parent / '_bundled')"


class NotOffered(Exception):
    """Say that the index does not have what was asked for; another choice may do."""


@dataclass(frozen=True)
class Item:
    """One file that pip would install, and where it would come from."""

    name: str
    version: str
    url: str


@dataclass(frozen=True)
class _Metadata:
    name: str
    version: str


@dataclass(frozen=True)
class _Download:
    url: str


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
    return [
        Item(one.metadata.name, one.metadata.version, one.download_info.url) for one in told.install
    ]


@dataclass(frozen=True)
class Installer:
    """pip, as it is started for one environment's interpreter."""

    program: Path
    """``__pip-runner__.py`` of some pip, or a pip wheel's own entry."""
    python: Path

    def plan(self, requirements: Iterable[str], pins: Mapping[str, str]) -> list[Item]:
        """Ask pip what it would install; raise NotOffered where the index lacks something."""
        with tempfile.TemporaryDirectory(prefix="bakeoff-") as scratch:
            report = Path(scratch) / "report.json"
            constraints = Path(scratch) / "pins.txt"
            constraints.write_text("".join(f"{name}=={pins[name]}\n" for name in pins))
            self.run(
                *("install", "--dry-run", "--ignore-installed", "--quiet"),
                *("--report", str(report), "--constraint", str(constraints), *requirements),
            )
            return read_report(report)

    def install(self, items: Sequence[Item], log: Path, on_line: Callable[[str], None]) -> None:
        """Install exactly what was planned; pip's words go to a log, its steps to the listener."""
        pinned = [f"{item.name}=={item.version}" for item in items]
        self.run("install", "--no-deps", "--no-input", *pinned, log=log, on_line=on_line)

    def complaints(self) -> list[str]:
        """Let pip say which packages of the environment do not fit together."""
        answer = subprocess.run(
            [*self.argv, "check"], env=_environment(), capture_output=True, text=True, check=False
        )
        return answer.stdout.splitlines() if answer.returncode else []

    def cache(self) -> Path | None:
        """Tell where pip keeps what it has fetched."""
        answer = subprocess.run(
            [*self.argv, "cache", "dir"],
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        return Path(answer.stdout.strip()) if answer.returncode == 0 else None

    @property
    def argv(self) -> list[str]:
        """The command that pip is started with."""
        return [str(self.python), str(self.program)]

    def run(
        self, *arguments: str, log: Path | None = None, on_line: Callable[[str], None] | None = None
    ) -> None:
        """Run pip to its end; what it complains of becomes the error."""
        lines: list[str] = []
        with started([*self.argv, *arguments], _environment()) as process:
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


def installer(base: Python, python: Path) -> Installer:
    """Find a pip that serves an interpreter: the harness's own, or the one Python brought along."""
    own = _own_pip(base)
    if own is not None:
        return Installer(own, python)
    answer = subprocess.run(
        [str(base.path), "-I", "-c", _BUNDLED], capture_output=True, text=True, check=False
    )
    folders = [Path(answer.stdout.strip()), Path("/usr/share/python-wheels")]
    for folder in folders if answer.returncode == 0 else folders[1:]:
        for wheel in sorted(folder.glob("pip-*.whl"), reverse=True):
            return Installer(wheel / "pip", python)
    raise Unavailable(
        f"No pip was found that serves {base}.\n"
        "    Give the harness one: python -m ensurepip, or python -m pip install pip."
    )


def _own_pip(base: Python) -> Path | None:
    try:
        distribution = importlib.metadata.distribution("pip")
    except importlib.metadata.PackageNotFoundError:
        return None
    runner = Path(str(distribution.locate_file("pip/__pip-runner__.py")))
    needed = distribution.metadata["Requires-Python"] or ""
    serves = satisfies(base.version, re.sub(r",!=[^,]*", "", needed.replace(" ", "")))
    return runner if serves and runner.is_file() else None


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _ELSEWHERE and not name.startswith("PYTHON")
    }
    return {**kept, "PYTHONNOUSERSITE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
