"""This file checks a data set against its manifest, and removes one."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.data.sets import MADE, is_finished
from harness.errors import BakeoffError
from harness.node.input.dataset import FILES, MANIFEST, Dataset


def faults(folder: Path, *, doing: Callable[[str], None]) -> list[str]:
    """List what is not as the manifest says: files missing, cut short, changed, or strangers."""
    if not is_finished(folder):
        return ["it is not finished; `bakeoff data create` goes on with it"]
    dataset = Dataset(str(folder))
    listed: list[dict[str, Any]] = dataset.manifest["files"]
    found = []
    for number, (path, said) in enumerate(zip(map(Path, dataset.paths), listed, strict=True), 1):
        doing(f"{folder.name}: {number} of {len(listed)} files")
        if not path.is_file():
            found.append(f"{said['name']} is missing")
        elif path.stat().st_size != said["bytes"]:
            found.append(f"{said['name']} has {path.stat().st_size} bytes, not {said['bytes']}")
        elif said["sha256"] is not None:
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != said["sha256"]:
                    found.append(f"{said['name']} has other content than was written")
    if "root" not in dataset.manifest:
        known = {one["name"] for one in listed}
        strangers = sorted(p.name for p in (folder / FILES).iterdir() if p.name not in known)
        found += [f"{name} does not belong to it" for name in strangers]
    return found


def described(folder: Path) -> dict[str, Any]:
    """Give a set's manifest without its list of files."""
    manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    files = manifest.pop("files")
    return {**manifest, "files": len(files), "bytes": sum(one["bytes"] for one in files)}


def remove(folder: Path) -> int:
    """Delete a set, its manifest first, so that a half-deleted one never counts; give its bytes."""
    is_ours = is_finished(folder) or (folder / MADE).is_file() or (folder / FILES).is_dir()
    if not is_ours:
        raise BakeoffError(f"{folder} is no data set; nothing was removed.")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    (folder / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(folder)
    return size
