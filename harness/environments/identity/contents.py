"""Digest the files of an environment's packages, so that one edited in place is noticed.

What was read of a file is kept in HOME/contents/, outside of the environment, by its size and the
times of its last changes: later only what changed is read again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.environments import cache
from harness.environments.identity import wheel_records
from harness.errors import RunError
from harness.store.files import write_whole

VERSION = 1  # 1: first
_YOUNG_NS = 2_000_000_000
"""A file that changed as lately may change again without its times showing it."""
_SITES = ("site-packages", "dist-packages")
_BESIDE = "(beside its packages)"
_UNREADABLE = "unreadable"
_SETTINGS = "pyvenv.cfg"
_OPENED = "lets the machine's own packages in"
_OPENING = re.compile(r"(?im)^\s*include-system-site-packages\s*=\s*true\s*$")

_Stamp = tuple[int, int, int]
_Known = Mapping[str, tuple[_Stamp, str]]


@dataclass(frozen=True)
class Contents:
    """What the packages of an environment hold."""

    packages: Mapping[str, str]
    """A digest for each file or folder that can be imported, and what lies beside them."""
    edited: tuple[str, ...] = ()
    """Files that are not what their package installed, or that none installed."""


def built_contents(root: Path) -> Contents:
    """Digest an environment that we built, and hold its files to what their wheels said."""
    sites = sorted(root.glob("lib*/python3*/site-packages"))[:1]
    if not sites:
        return Contents({})
    digests = _digests(root / "lib", str(root))
    inside = sites[0].relative_to(root / "lib").as_posix() + "/"
    of_site = {name[len(inside) :]: one for name, one in digests.items() if name.startswith(inside)}
    packages, edited = _by_package(digests), wheel_records.edited(sites[0], of_site)
    if not _lets_others_in(root / _SETTINGS):
        return Contents(packages, edited)
    return Contents({**packages, _SETTINGS: "opened"}, (*edited, f"{_SETTINGS} ({_OPENED})"))


def foreign_contents(sites: tuple[Path, ...]) -> Contents:
    """Digest the package folders of an interpreter that somebody else keeps."""
    whole: dict[str, str] = {}
    for site in sites:
        inside = _digests(site, str(site))
        whole |= {f"{site.name}/{name}": one for name, one in inside.items()}
    return Contents(_by_package(whole))


def _lets_others_in(settings: Path) -> bool:
    """Tell whether what the machine's Python has beside it can be imported, too."""
    try:
        return _OPENING.search(settings.read_text("utf-8")) is not None
    except (OSError, ValueError):
        return False


def _by_package(digests: Mapping[str, str]) -> dict[str, str]:
    """Join the digests of files by what can be imported; where they lie says nothing."""
    wholes: dict[str, hashlib._Hash] = {}
    for name, digest in sorted(digests.items()):
        folders = name.split("/")
        at = next((folders.index(site) for site in _SITES if site in folders), None)
        package = _BESIDE if at is None else folders[at + 1]
        if package.endswith((".dist-info", ".egg-info")):
            continue  # what installed it, and where
        inside = name if at is None else "/".join(folders[at + 1 :])
        whole = wholes.setdefault(package, hashlib.sha256())
        whole.update(f"{digest}  {inside}\n".encode(errors="surrogateescape"))
    return {package: whole.hexdigest()[:12] for package, whole in sorted(wholes.items())}


def _digests(folder: Path, of: str) -> dict[str, str]:
    """Give the digest of each file in a folder; only what changed since is read again."""
    place = cache.home() / "contents" / f"{Path(of).name}-{cache.digest([of, str(folder)])}.json"
    known, now_ns = _known(place), time.time_ns()
    found: dict[str, tuple[_Stamp, str]] = {}
    for name, stamp in _files(str(folder)):
        before = known.get(name)
        if before is not None and before[0] == stamp:
            found[name] = before
        else:
            found[name] = (stamp, _digest(folder / name))
    settled = {name: one for name, one in found.items() if max(one[0][1:]) < now_ns - _YOUNG_NS}
    if settled != known:
        with suppress(RunError, OSError):  # then it is read again next time
            place.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps({"version": VERSION, "files": settled}, separators=(",", ":"))
            write_whole(place, text, settled=False)
    return {name: digest for name, (_, digest) in found.items()}


def _known(place: Path) -> dict[str, tuple[_Stamp, str]]:
    try:
        raw = json.loads(place.read_text("utf-8"))
        if raw["version"] != VERSION:
            return {}
        return {
            name: ((size, changed, touched), digest)
            for name, ((size, changed, touched), digest) in raw["files"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # Absent, cut short or foreign: all is read again.
        return {}


def _files(folder: str) -> Iterator[tuple[str, _Stamp]]:
    """Give each file with what tells of a change; byte code is made from what is listed.

    A folder that is a link is imported from like any other. Each is followed once: some lead back.
    """
    waiting, followed = [""], set()
    while waiting:
        inside = waiting.pop()
        try:
            entries = list(os.scandir(f"{folder}/{inside}"))
        except OSError:  # no worker of this user can import from it either
            continue
        for entry in entries:
            name = f"{inside}{entry.name}"
            if entry.is_dir():
                real = os.path.realpath(entry.path) if entry.is_symlink() else None
                if entry.name != "__pycache__" and real not in followed:
                    waiting.append(f"{name}/")
                    followed.update([real] if real else [])
            elif entry.is_file():
                stat = entry.stat()
                yield name, (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError:
        return _UNREADABLE
