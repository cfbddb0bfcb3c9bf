"""Say where built framework environments lie, and read what they say of themselves.

HOME/environments/                 HOME: BAKEOFF_HOME, else bakeoff/ in the user's cache
  torch-3fa94c0d11b2/              one per lock content, device, interpreter and architecture
    environment.json               written last: its absence means "not finished, go on"
    lock.txt                       what pip was told to install, each file by its SHA-256
    create.log                     what pip said
  torch-3fa94c0d11b2.lock          held (flock) by whoever builds it
HOME/archives/                     what archives are made from and unpacked to, for that while
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness import user_folders
from harness.environments.lock import EnvironmentReference, Lock
from harness.errors import RunError, UsageError
from harness.store import bounded_cache
from harness.store.files import explained, write_json

VERSION = 1  # 1: first


@dataclass(frozen=True)
class Environment:
    """One finished environment, as its marker describes it."""

    reference: str
    device: str
    content: str
    """Hash of the lock's content for this device and these groups."""
    python: str
    """The tag of the interpreter it was built with."""
    packages: Mapping[str, str]
    notes: tuple[str, ...]
    size_bytes: int
    seconds: float
    created_wall_ns: int
    root: Path = field(compare=False)
    through: str = ""
    """The launcher by whose nodes it was built: its Python may be there only."""

    @property
    def executable(self) -> Path:
        """The interpreter inside."""
        return self.root / "bin" / "python"

    @property
    def fingerprint(self) -> str:
        """What decides whether two environments are the same to a trial."""
        return digest({"python": self.python, "packages": dict(self.packages)})

    @property
    def is_whole(self) -> bool:
        """Whether its interpreter still runs; the one beneath it may have been uninstalled.

        One that was built on other nodes is believed: it need not run here.
        """
        return bool(self.through) or os.access(self.executable, os.X_OK)


def home() -> Path:
    """Give the folder of everything that could be built again."""
    named = os.environ.get("BAKEOFF_HOME")
    if named:
        return Path(named).absolute()
    return user_folders.own_folder("XDG_CACHE_HOME", ".cache")


@contextmanager
def scratch() -> Iterator[Path]:
    """Give an empty folder for a while; one that a killed process left is removed first."""
    archives = bounded_cache.Cache(home() / "archives", most_bytes=0)
    try:
        with explained(home()):
            archives.trim()
    except RunError as problem:
        raise UsageError(f"{problem}\n    BAKEOFF_HOME names another folder.") from None
    with archives.scratch("open") as place:
        (place / "files").mkdir()
        yield place / "files"


def digest(content: Any) -> str:
    """Hash a JSON value, whatever the order of its keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def content_hash(lock: Lock, reference: EnvironmentReference, device: str) -> str:
    """Hash what a lock says, for one device and a choice of groups."""
    return digest(lock.content(reference, device))


def place(lock: Lock, reference: EnvironmentReference, content: str, python: str) -> Path:
    """Name the folder of an environment."""
    name = "+".join((lock.folder or lock.name, *reference.groups))
    return home() / "environments" / f"{name}-{digest([content, python])}"


def find(
    lock: Lock, reference: EnvironmentReference, device: str, architecture: str | None = None
) -> Environment | None:
    """Find the finished environment; the newest where several interpreters have one.

    ``architecture`` is that of other nodes, whose environments need not run here.
    """
    content = content_hash(lock, reference, device)
    machine = f"-{platform.system().lower()}-{architecture or platform.machine()}"
    fitting = [
        one
        for one in finished()
        if one.content == content
        and one.python.endswith(machine)
        and (one.is_whole if architecture else os.access(one.executable, os.X_OK))
    ]
    return max(fitting, key=lambda one: one.created_wall_ns, default=None)


def finished() -> list[Environment]:
    """Read the markers of all finished environments."""
    return [one for one in map(read, folders()) if one is not None]


def unfinished() -> list[Path]:
    """List the folders whose building was interrupted."""
    return [folder for folder in folders() if read(folder) is None]


def folders() -> list[Path]:
    """List every environment's folder, finished or not."""
    root = home() / "environments"
    return sorted(one for one in root.glob("*-*") if one.is_dir())


def read(folder: Path) -> Environment | None:
    """Read one marker; None where there is none, or none of this version."""
    try:
        facts = json.loads((folder / "environment.json").read_text("utf-8"))
        if facts.pop("version") != VERSION:
            return None
        return Environment(**{**facts, "notes": tuple(facts["notes"]), "root": folder})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # Absent, cut short or foreign: all mean "not finished".
        return None


def write(environment: Environment) -> None:
    """Write the marker, whole or not at all."""
    facts = {"version": VERSION, **asdict(environment)}
    del facts["root"]
    write_json(environment.root / "environment.json", facts)
