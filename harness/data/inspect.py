"""Check a data set against its manifest, and tell what it is."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.data.sets import is_finished, read_manifest
from harness.file_digest import sha256
from harness.worker.input.dataset import FILES, Dataset


def faults(folder: Path, *, doing: Callable[[str], None]) -> list[str]:
    """List what is not as the manifest says: files missing, cut short, changed, or strangers."""
    if not is_finished(folder):
        return ["it is not finished; `bakeoff data create` goes on with it"]
    dataset = Dataset(str(folder))
    listed: list[dict[str, Any]] = dataset.manifest["files"]
    beside: dict[str, Any] = dataset.manifest.get("sums", {})
    found = [
        wrong
        for name, record in beside.items()
        if (wrong := _fault(folder / name, name, record)) is not None
    ]
    for number, (path, record) in enumerate(zip(map(Path, dataset.paths), listed, strict=True), 1):
        doing(f"{folder.name}: {number} of {len(listed)} files")
        if (wrong := _fault(path, record["name"], record)) is not None:
            found.append(wrong)
    if "root" not in dataset.manifest:
        known = {one["name"] for one in listed} | {Path(name).name for name in beside}
        there = (folder / FILES).iterdir() if (folder / FILES).is_dir() else ()
        strangers = sorted(p.name for p in there if p.name not in known)
        found += [f"{name} does not belong to it" for name in strangers]
    return found


def _fault(path: Path, name: str, record: Mapping[str, Any]) -> str | None:
    try:
        is_there = path.is_file()
    except OSError:  # no file can be called so
        is_there = False
    if not is_there:
        return f"{name} is missing"
    if path.stat().st_size != record["bytes"]:
        return f"{name} has {path.stat().st_size} bytes, not {record['bytes']}"
    if record["sha256"] is not None and sha256(path) != record["sha256"]:
        return f"{name} has other content than was written"
    return None


def described(folder: Path) -> dict[str, Any]:
    """Give a set's manifest without its list of files."""
    manifest = read_manifest(folder)
    files = manifest.pop("files")
    manifest.pop("sums", None)
    return {**manifest, "files": len(files), "bytes": sum(one["bytes"] for one in files)}


def recipe(folder: Path) -> str:
    """Write the commands that make a folder's sets elsewhere: samples follow from a seed alone."""
    lines = ["# How the data sets of the machine that packed this are made."]
    there = sorted(one for one in folder.glob("*") if one.is_dir()) if folder.is_dir() else []
    for one in filter(is_finished, there):
        told = described(one)
        if told.get("root") or "seed" not in told:
            lines.append(f"# {shlex.quote(one.name)}: files of your own, {told['bytes']} bytes")
            continue
        words = ("--format", told["format"], "--samples", told["samples"], "--seed", told["seed"])
        lines.append(shlex.join(map(str, ("bakeoff", "data", "create", told["content"], *words))))
    return "\n".join(lines) + "\n"
