"""Make a wheel of the Bakeoff that runs: of its checkout, or of its installed files."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import urllib.parse
import urllib.request
import zipfile
from importlib import metadata
from pathlib import Path

from harness.environments.package_index.pip import Installer
from harness.errors import Unavailable

_PROJECT = ("pyproject.toml", "README.md", "LICENSE")
_NOT_PACKED = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
"""What an installer notes of one installation."""


def own_distribution() -> metadata.Distribution:
    """Give the metadata of the Bakeoff that runs."""
    try:
        return metadata.distribution("bakeoff")
    except metadata.PackageNotFoundError:
        raise Unavailable(
            "This Bakeoff runs from a folder that was never installed, so nothing says what it "
            "needs. In its checkout: make setup"
        ) from None


def make_own_wheel(folder: Path, scratch: Path, pip: Installer) -> Path:
    """Write the wheel into a folder and give its path."""
    own = own_distribution()
    checkout = _checkout(own)
    if checkout is None:
        return from_installed(own, folder)
    # A copy of what belongs to it: setuptools leaves build/ in what it builds, and reads it again.
    source = scratch / "source"
    source.mkdir()
    for name in _PROJECT:
        shutil.copyfile(checkout / name, source / name)
    for package in (own.read_text("top_level.txt") or "").split():
        shutil.copytree(
            checkout / package, source / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    pip.run("wheel", "--no-deps", "--quiet", "--wheel-dir", str(folder), str(source))
    (wheel,) = folder.glob("bakeoff-*.whl")
    return wheel


def _checkout(own: metadata.Distribution) -> Path | None:
    told = json.loads(own.read_text("direct_url.json") or "{}")
    if not told.get("dir_info", {}).get("editable"):
        return None
    return Path(urllib.request.url2pathname(urllib.parse.urlsplit(told["url"]).path))


def from_installed(own: metadata.Distribution, folder: Path) -> Path:
    """Put the files that an installer recorded into a wheel again."""
    stem = f"bakeoff-{own.version}"
    wheel = folder / f"{stem}-py3-none-any.whl"
    record = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(own.files or (), key=str):
            name = file.as_posix()
            if name.startswith("..") or name.endswith(".pyc") or file.name in _NOT_PACKED:
                continue
            data = file.read_binary()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
            archive.writestr(_entry(name), data)
        record.append(f"{stem}.dist-info/RECORD,,\n")
        archive.writestr(_entry(f"{stem}.dist-info/RECORD"), "".join(record))
    return wheel


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)  # of 1980: the same files make the same wheel
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry
