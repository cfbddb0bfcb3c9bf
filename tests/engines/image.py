"""Pack this machine's system and framework environments into an image for Charliecloud.

One SquashFS file, which every node mounts for itself when a rank enters it. It holds libraries,
interpreters and environments at the paths that they have outside, so that a cell inside and the
same cell outside differ in nothing but the container.
"""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from harness.environments import cache

_FOLDERS = ("proc", "sys", "dev", "tmp", "etc", "run", "mnt", "var", "var/tmp")
_FILES = ("etc/hosts", "etc/resolv.conf")
_LINKS = ("/bin", "/lib", "/lib64", "/sbin")
_NEEDLESS = ("... *.a", "... *.h", "... *.hpp", "... libLLVM*")
_UNUSED = ("site-packages", "test", "config-*")
"""Of the interpreter beneath an environment."""


def packed(pythons: Sequence[Path], folders: Sequence[Path]) -> Path:
    """Give the image of these interpreters in which these folders can be mounted; pack it once."""
    environments = sorted({python.parents[1] for python in pythons})
    bases = sorted({python.resolve().parents[1] for python in pythons})
    content = cache.digest([*map(str, environments), *map(str, bases), *map(str, folders)])
    image = cache.home() / "images" / f"{content}.sqfs"
    if image.is_file():
        return image
    image.parent.mkdir(parents=True, exist_ok=True)
    beside = image.with_suffix(".new")
    beside.unlink(missing_ok=True)
    links = [link for link in _LINKS if Path(link).is_symlink()]
    sources = [*_system(), *links, *map(str, bases), *map(str, environments)]
    subprocess.run(
        [
            *("mksquashfs", *dict.fromkeys(sources), str(beside)),
            *("-no-strip", "-comp", "lz4", "-no-fragments", "-no-xattrs", "-quiet", "-no-progress"),
            *(word for made in _made(folders, sources) for word in ("-p", made)),
            *("-wildcards", "-e", *_NEEDLESS),
            *(f"{str(base)[1:]}/lib/python3*/{what}" for base in bases for what in _UNUSED),
        ],
        check=True,
    )
    return beside.rename(image)


def _system() -> list[str]:
    own = Path("/usr/lib", sysconfig.get_config_var("MULTIARCH") or "")
    return [str(path) for path in (own, Path("/usr/lib64"), Path("/usr/bin/env")) if path.exists()]


def _made(mounted: Sequence[Path], sources: Sequence[str]) -> list[str]:
    """Name what the image has beside its sources: where engines and we mount."""
    inside = [one for folder in mounted for one in (*reversed(folder.parents), folder)]
    parents = [str(one)[1:] for one in inside if one != one.parent]
    held = {str(parent)[1:] for source in sources for parent in (*Path(source).parents,)}
    wanted = dict.fromkeys((*_FOLDERS, *parents))
    folders = [f"{name} d 755 0 0" for name in wanted if name not in held]
    return [*folders, *(f"{name} f 644 0 0 true" for name in _FILES)]
