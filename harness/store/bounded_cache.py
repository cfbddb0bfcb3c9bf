"""Keep a folder of reproducible things below a size.

FOLDER/
  lock            held for moments, by whoever looks for a thing, takes it or lets it go
  NAME/           one thing; its time of change is when somebody last took it
    held          locked by every process that uses the thing
    digest        of all its files, when it was made: one that was changed since is not believed
  .NAME.making    locked by who makes the thing; others that want it wait, and find it made
  .NAME.xxxxxxxx/ one in the making, or scratch; rubbish as soon as nobody holds it

What was used least recently goes first, and never what a process holds. The kernel lets go of what
a killed process held. On a file system without locks nothing is removed.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from harness import locks

_HELD, _DIGEST = "held", "digest"


class Cache:
    """One process's use of the folder; what it has taken is not removed before it is released."""

    def __init__(
        self, folder: Path, most_bytes: int, say: Callable[[str], None] = lambda _: None
    ) -> None:
        """``say`` hears of what was changed by hand."""
        self._folder = folder
        self._most_bytes = most_bytes
        self._say = say
        self._held: dict[str, IO[bytes]] = {}

    def take(self, name: str, make: Callable[[Path], object]) -> Path:
        """Give a thing's folder, made first if it is not there as it was made."""
        place = self._folder / name
        while name not in self._held:
            with self._alone():
                is_there = self._hold(place)
            if not is_there:
                self._make_alone(place, make)
            elif not _is_sealed(place):
                self._say(f"{place} was changed by hand and is not believed: it is made anew.")
                with self._alone():
                    self._give_up(place)
        return place

    def _make_alone(self, place: Path, make: Callable[[Path], object]) -> None:
        """Make a thing, unless another process did while this one waited for it."""
        lock = place.with_name(f".{place.name}.making")
        with _locked(lock, alone=True):
            try:
                if not place.is_dir():
                    self._make(place, make)
            finally:
                lock.unlink(missing_ok=True)

    def _make(self, place: Path, make: Callable[[Path], object]) -> None:
        with self.scratch(place.name) as beside:
            make(beside)
            (beside / _DIGEST).write_text(_digest(beside), encoding="ascii")
            with self._alone():
                if not place.is_dir():  # else another process made the same meanwhile
                    beside.rename(place)
                    self._hold(place)
        self.trim()

    def release_all(self) -> None:
        """Release everything taken, then trim the folder to its size."""
        if self._held:
            for file in self._held.values():
                file.close()
            self._held = {}
            self.trim()

    @contextmanager
    def scratch(self, name: str) -> Iterator[Path]:
        """Give a temporary folder, removed even if this process is killed."""
        with ExitStack() as stack:
            with self._alone():
                place = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=self._folder))
                stack.enter_context(_locked(place / _HELD, alone=False))
            try:
                yield place
            finally:
                shutil.rmtree(place, ignore_errors=True)

    def trim(self) -> None:
        """Remove abandoned scratch folders, then the oldest unused folders until the size fits."""
        doomed: list[Path] = []
        with self._alone():
            doomed += filter(_is_free, self._folder.glob(".*.*"))
            things = sorted(self._folder.glob("[!.]*/"), key=lambda one: one.stat().st_mtime)
            sizes = {place: _size(place) for place in things}
            total = sum(sizes.values())
            for place in things:
                if total > self._most_bytes and _is_free(place):
                    doomed.append(_hidden(place))
                    total -= sizes[place]
        for place in doomed:
            shutil.rmtree(place, ignore_errors=True)

    def _hold(self, place: Path) -> bool:
        """Protect a folder from removal; False where it does not exist."""
        if not place.is_dir():
            return False
        self._held[place.name] = _locked(place / _HELD, alone=False)
        os.utime(place)
        return True

    def _give_up(self, place: Path) -> None:
        """Let go of what is held, and hide it, unless another process has replaced it by now."""
        with self._held.pop(place.name) as file, suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), (place / _HELD).stat()):
                _hidden(place)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with _locked(self._folder / "lock", alone=True):
            yield


def _locked(path: Path, *, alone: bool) -> IO[bytes]:
    """Open a file and wait for its lock, which goes when the file is closed."""
    file = path.open("ab")
    locks.take(file, alone=alone, wait=True)
    return file


def _hidden(place: Path) -> Path:
    """Give a thing the name of rubbish; it is removed as soon as nobody holds it."""
    rubbish = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    place.rename(rubbish)
    return rubbish


def _is_sealed(place: Path) -> bool:
    """Whether a thing's files are those that were made."""
    try:
        return (place / _DIGEST).read_text(encoding="ascii") == _digest(place)
    except (OSError, UnicodeDecodeError):
        return False


def _digest(place: Path) -> str:
    """Digest the names and contents of a thing's files."""
    whole = hashlib.sha256()
    for path in sorted(place.rglob("*")):
        if path.is_file() and path not in (place / _HELD, place / _DIGEST):
            with path.open("rb") as file:
                own = hashlib.file_digest(file, "sha256").hexdigest()
            whole.update(f"{path.relative_to(place)}\0{own}\n".encode())
    return whole.hexdigest()


def _is_free(place: Path) -> bool:
    """Tell whether no process holds a folder."""
    try:
        with (place / _HELD).open("r+b") as file:
            return locks.is_free(file)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _size(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*"))
