"""Open the files below one folder, and nothing that a link in it points to.

A run directory may come from anybody: a link in it would have its reader show, or its writer
overwrite, any file of the user's. So a path is walked from the folder down, by handles
(``paths/handles.py``); a link, a pipe or a device at its end is refused as well, and nobody reads
more than a bounded size. No other module opens what lies in a run directory
(``tests/architecture``).
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from harness.errors import DamagedFile
from harness.store import json_text
from harness.store.paths import handles

MIB = 1 << 20
MOST_JSON = 32 * MIB
"""Of a file read as one JSON value, which takes twenty times its size in memory."""
MOST_TEXT = 32 * MIB
MOST_EVENTS = 512 * MIB
"""Of what one rank said: 5 million windows."""
MOST_SAMPLES = 512 * MIB
"""Of what was read on one node: an hour of 500 channels, 20 times a second."""
MOST_LOG = 256 * MIB
MOST_LINE = MIB

_BESIDE, _FOLDER_BESIDE = re.compile(r"\.(.+)\.[0-9a-f]{16}\.new"), re.compile(r"\.(.+)\.new")


@dataclass(frozen=True)
class Contained:
    """The files below ``root``: paths are given whole, as ``root / …``.

    What is absent raises FileNotFoundError; what cannot be read, or is no regular file, raises
    DamagedFile.
    """

    root: Path
    near: handles.Near = field(default=None, compare=False, repr=False)

    @contextmanager
    def staying(self, folder: Path) -> Iterator[Contained]:
        """Walk to a folder once, for several of the files in it."""
        with handles.folder(self.root, folder) as handle:
            yield Contained(self.root, (folder, handle))

    def open(self, path: Path, flags: int = os.O_RDONLY) -> int:
        """Open a regular file; give its descriptor."""
        return handles.regular(self.root, path, flags, self.near)

    def reading(self, path: Path) -> IO[bytes]:
        """Open a regular file to read from."""
        return open(self.open(path), "rb")  # noqa: PTH123  a descriptor; the caller closes

    def writing(self, path: Path) -> IO[bytes]:
        """Open a regular file to write at its end, made if it is not there."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        return open(self.open(path, flags), "ab")  # noqa: PTH123  as above

    def read_bytes(self, path: Path, most: int = MOST_TEXT) -> bytes:
        """Read a file whole; refuse one of more than ``most`` bytes."""
        with self._opened(path) as descriptor, handles.named(path):
            left = handles.bounded(path, os.fstat(descriptor), most)
            pieces = []
            while left and (piece := os.read(descriptor, left)):
                pieces.append(piece)
                left -= len(piece)
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read_text(self, path: Path) -> str:
        """Read a file whole as text."""
        try:
            return self.read_bytes(path).decode()
        except ValueError as fault:
            raise DamagedFile(f"{path} is damaged: {fault}.") from None

    def read_end(self, path: Path, most: int) -> bytes:
        """Read the last bytes of a file."""
        with self._opened(path) as descriptor, handles.named(path):
            return os.pread(descriptor, most, max(0, os.fstat(descriptor).st_size - most))

    def read_begin(self, path: Path, most: int) -> bytes:
        """Read the first bytes of a file."""
        with self._opened(path) as descriptor, handles.named(path):
            return os.read(descriptor, most)

    def read_json(self, path: Path) -> Any:
        """Read a JSON file; numbers are finite, and whole ones have at most 64 bits."""
        try:
            text = self.read_bytes(path, MOST_JSON)
        except FileNotFoundError:
            raise DamagedFile(f"{path}: there is no such file.") from None
        try:
            return json_text.parse(text)
        except ValueError as fault:
            raise DamagedFile(f"{path} is damaged: {fault}.") from None

    def read_object(self, path: Path) -> dict[str, Any]:
        """Read a file that holds one JSON object."""
        value = self.read_json(path)
        if not isinstance(value, dict):
            raise DamagedFile(f"{path} is damaged: a JSON object was expected.")
        return value

    def exists(self, path: Path) -> bool:
        """Tell whether anything has this name, be it what may: reading it says what it is."""
        try:
            self._status(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def is_link(self, path: Path) -> bool:
        """Tell whether a name is a link."""
        return stat.S_ISLNK(self._status(path).st_mode)

    def inode(self, path: Path) -> int:
        """Give the number by which a file system knows a folder."""
        with handles.folder(self.root, path) as folder:
            return os.fstat(folder).st_ino

    def size(self, path: Path) -> int:
        """Give the size of a file; 0 where there is none."""
        with suppress(FileNotFoundError):
            return self._status(path).st_size
        return 0

    def changed_ns(self, path: Path) -> int:
        """Give when a file was last written; 0 where there is none."""
        with suppress(FileNotFoundError):
            return self._status(path).st_mtime_ns
        return 0

    def checked(self, path: Path, most: int) -> Path:
        """Give the path of a regular file to what opens it by itself, once it was looked at."""
        status = self._status(path)
        if not stat.S_ISREG(status.st_mode):
            raise handles.refused(path, status.st_mode)
        handles.bounded(path, status, most)
        return path

    def folders(self, path: Path) -> list[str]:
        """Name the folders in one, sorted; links too, which are refused once they are opened."""
        return self._names(path, folders=True)

    def files(self, path: Path) -> list[str]:
        """Name what else is in a folder, sorted; what is no file is refused once it is opened."""
        return self._names(path, folders=False)

    def files_below(self, path: Path) -> Iterator[str]:
        """Name the files in a folder and in all folders below, by their path from it."""
        yield from self.files(path)
        for name in self.folders(path):
            if not self.is_link(path / name):
                yield from (f"{name}/{inside}" for inside in self.files_below(path / name))

    def write(self, path: Path, content: str | bytes, *, settled: bool = True) -> None:
        """Write a file beside under a name that nobody knows, then give it its own.

        What had the name is replaced, a link as well. One that is cheap to make again need not be
        ``settled``: it is whole, but a power cut may lose it.
        """
        data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
        beside = f".{path.name}.{secrets.token_hex(8)}.new"
        with handles.changing(path), handles.parent(self.root, path) as (folder, name):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            descriptor = os.open(beside, flags | handles.FILE, 0o666, dir_fd=folder)
            try:
                try:
                    handles.write_all(descriptor, data)
                    if settled:
                        os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):  # what went wrong is told anyway
                    os.unlink(beside, dir_fd=folder)
                raise
            if settled:
                os.fsync(folder)

    def write_json(self, path: Path, value: Any) -> None:
        """Write a value as a JSON file, whole or not at all."""
        text = json.dumps(value, indent=1, sort_keys=True, allow_nan=False)
        self.write(path, text + "\n")

    def append_line(self, path: Path, value: Any) -> None:
        """Add one line of JSON, a new one also where a crash cut the last line short."""
        line = json.dumps(value, sort_keys=True).encode() + b"\n"
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        with handles.changing(path), self._opened(path, flags) as descriptor:
            size = os.fstat(descriptor).st_size
            is_cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            handles.write_all(descriptor, b"\n" + line if is_cut else line)

    def lines(self, path: Path, most: int = MOST_LOG) -> Iterator[tuple[int, bytes]]:
        """Give the lines of a file with their numbers; none where there is no file.

        A line that is too long is left out.
        """
        try:
            file = self.reading(path)
        except FileNotFoundError:
            return
        with file, handles.named(path):
            handles.bounded(path, os.fstat(file.fileno()), most)
            number = 0
            while line := file.readline(MOST_LINE):
                number, is_long = number + 1, False
                while len(line) == MOST_LINE and not line.endswith(b"\n"):
                    line, is_long = file.readline(MOST_LINE), True
                if not is_long:
                    yield number, line

    def make_folder(self, path: Path) -> None:
        """Make a folder and those above it where they are not there yet."""
        missing = []
        with handles.changing(path):
            while path != self.root and not self.exists(path):
                missing.append(path)
                path = path.parent
            for one in reversed(missing):
                with handles.parent(self.root, one) as (folder, name), suppress(FileExistsError):
                    os.mkdir(name, dir_fd=folder)

    def rename(self, path: Path, target: Path) -> None:
        """Give a file or folder another name."""
        with (
            handles.changing(path),
            handles.parent(self.root, path) as (source, before),
            handles.parent(self.root, target) as (folder, after),
        ):
            os.rename(before, after, src_dir_fd=source, dst_dir_fd=folder)

    def settle(self, path: Path) -> None:
        """Wait until the names in a folder would survive a crash."""
        with handles.changing(path), handles.folder(self.root, path) as folder:
            os.fsync(folder)

    def remove(self, path: Path) -> None:
        """Remove a file, a link, or a folder with all that is in it; it need not be there."""
        with (
            handles.changing(path),
            suppress(FileNotFoundError),
            handles.parent(self.root, path) as (folder, name),
        ):
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                shutil.rmtree(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)

    def unfinished(self, path: Path) -> dict[str, str]:
        """Name the files and folders half made in a folder, with what they were to be called."""
        half_made = {}
        with handles.entries(self.root, path) as found:
            for one in found:
                is_file = one.is_file(follow_symlinks=False)
                match = (_BESIDE if is_file else _FOLDER_BESIDE).fullmatch(one.name)
                if match and (is_file or one.is_dir(follow_symlinks=False)):
                    half_made[one.name] = match[1]
        return half_made

    @contextmanager
    def _opened(self, path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
        descriptor = self.open(path, flags)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _status(self, path: Path) -> os.stat_result:
        with handles.parent(self.root, path, self.near) as (folder, name), handles.named(path):
            return os.stat(name, dir_fd=folder, follow_symlinks=False)

    def _names(self, path: Path, *, folders: bool) -> list[str]:
        """List a folder; names that begin with a dot are the file system's, or half written."""
        with handles.entries(self.root, path) as found:
            return sorted(
                one.name
                for one in found
                if not one.name.startswith(".")
                and (one.is_dir(follow_symlinks=False) is folders or one.is_symlink())
            )
