"""Walk to what lies below a folder by handles, so that no link on the way is followed.

The folder itself is the user's word: it may be a link. A link, a pipe or a device below it is
refused by its name.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.errors import DamagedFile, RunError
from harness.store.files import explained

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_INSIDE = _FOLDER | os.O_NOFOLLOW
FILE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe without a writer would block
_GONE = (errno.ENOENT, errno.ENOTCONN, errno.ESTALE)
_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


Near = tuple[Path, int] | None
"""A folder that was walked to already, and its handle."""
Made = tuple[int, int]
"""The device and the inode of a folder: no other has both while this one exists."""
_UNCHANGED: dict[str, Made] = {}
"""By path, which folder must be found there."""


def made(root: Path) -> Made:
    """Tell which folder lies at a path."""
    status = root.stat()
    return status.st_dev, status.st_ino


@contextmanager
def staying_the_same(root: Path, known: Made | None = None) -> Iterator[None]:
    """Open nothing in another folder that comes to lie at this path meanwhile.

    Whoever works on a run opens its files by their paths for hours. A run that is renamed, with
    another one put in its place, would have the other's finished trials overwritten. ``known`` is
    the folder that it must be; without it, the one that is there now.
    """
    handle = _opened(root)  # kept open: its inode is given to no other folder
    before = _UNCHANGED.get(str(root))
    try:
        _UNCHANGED[str(root)] = known or _which(handle)
        yield
    finally:
        os.close(handle)
        if before is None:
            del _UNCHANGED[str(root)]
        else:
            _UNCHANGED[str(root)] = before


@contextmanager
def parent(root: Path, path: Path, near: Near = None) -> Iterator[tuple[int, str]]:
    """Give the handle of the folder that a path lies in, and the path's name there."""
    place = path.parent
    if near is not None and near[0] == place:
        yield near[1], path.name
        return
    with folder(root, place) as above:
        yield above, path.name


@contextmanager
def folder(root: Path, path: Path) -> Iterator[int]:
    """Walk to a folder from the root; give its handle."""
    top, whole = str(root), str(path)  # as text: this is done for every file
    above = "" if top == "." else top.rstrip("/") + "/"
    is_below = whole.startswith(above) and path.is_absolute() == root.is_absolute()
    parts = [".."]
    if is_below or whole == top:
        parts = [] if whole == top else whole.removeprefix(above).split("/")
    if ".." in parts:
        raise DamagedFile(f"{path}: this leads out of {root}.")
    handle = _opened(root)
    try:
        for number, part in enumerate(parts):
            if part:
                inside = _inside(part, handle, root, parts[: number + 1])
                os.close(handle)
                handle = inside
        yield handle
    finally:
        os.close(handle)


@contextmanager
def entries(root: Path, path: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
    """Give what is in a folder."""
    with folder(root, path) as handle, named(path), os.scandir(handle) as found:
        yield found


def regular(root: Path, path: Path, flags: int, near: Near = None) -> int:
    """Open a regular file; give its descriptor."""
    naming = named if flags == os.O_RDONLY else changing
    with parent(root, path, near) as (above, name), naming(path):
        try:
            descriptor = os.open(name, flags | FILE, 0o666, dir_fd=above)
        except OSError as problem:
            if problem.errno == errno.ELOOP:
                raise refused(path, stat.S_IFLNK) from None
            raise
        status = os.fstat(descriptor)
        is_elsewhere_too = flags != os.O_RDONLY and status.st_nlink > 1
        if stat.S_ISREG(status.st_mode) and not is_elsewhere_too:
            return descriptor
        os.close(descriptor)
        if is_elsewhere_too:
            raise DamagedFile(
                f"{path}: another name shares this file, so it is not "
                "written to. Copy the run (cp -r) and go on in the copy."
            )
        raise refused(path, status.st_mode)


def write_all(descriptor: int, data: bytes) -> None:
    """Write until all is written."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _opened(root: Path) -> int:
    try:
        handle = os.open(root, _FOLDER)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as problem:
        raise RunError(f"{root}: {problem.strerror}.") from problem
    if _UNCHANGED.get(str(root)) in (None, _which(handle)):
        return handle
    os.close(handle)
    raise RunError(
        f"{root}: another directory is here now, and nothing was changed in it. The one that this "
        "session worked on was renamed or removed: `bakeoff resume` goes on with it where it is."
    )


def _which(handle: int) -> Made:
    status = os.fstat(handle)
    return status.st_dev, status.st_ino


def _inside(name: str, folder: int, root: Path, parts: Sequence[str]) -> int:
    """Open a folder in a folder; ``parts`` lead to it from the root."""
    try:
        return os.open(name, _INSIDE, dir_fd=folder)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as problem:
        path = root.joinpath(*filter(None, parts))
        if not isinstance(problem, OSError) or problem.errno not in (errno.ELOOP, errno.ENOTDIR):
            with named(path):
                raise
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        raise refused(path, mode, "folder") from None


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Name the file that cannot be opened or read, unless it is absent."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise DamagedFile(f"{path}: {problem.strerror}.") from problem
    except ValueError as fault:  # a name with a zero byte
        raise DamagedFile(f"{path!r}: {fault}.") from None


@contextmanager
def changing(path: Path) -> Iterator[None]:
    """Turn an OSError of what was to be written into a message that a user can act on."""
    with explained(path):
        try:
            yield
        except OSError as problem:
            if problem.errno not in _GONE:
                raise
            raise RunError(
                f"{path}: its folder does not answer ({problem.strerror}). Was it renamed, removed "
                "or unmounted? `bakeoff resume` goes on with a run where it is now."
            ) from problem


def refused(path: Path, mode: int, wanted: str = "file") -> DamagedFile:
    """Say what lies where something else belongs."""
    kind = _KINDS.get(stat.S_IFMT(mode), "of an unknown kind")
    return DamagedFile(f"{path} is {kind} where a {wanted} belongs: it is left alone.")


def bounded(path: Path, status: os.stat_result, most: int) -> int:
    """Give the size of a file; refuse one that is larger than what is read of it."""
    if status.st_size > most:
        raise DamagedFile(f"{path}: {status.st_size} bytes are more than the {most} read of it.")
    return status.st_size
