"""Tell by run.json which run a directory holds, and claim a copied one."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.store.layout import RunPaths
from harness.store.paths.birth import born_ns
from harness.store.paths.names import path_part, payload_name
from harness.store.run_directory.session_log import log
from harness.store.typed import damage, read


@dataclass(frozen=True)
class Identity:
    """What run.json says."""

    id: str
    payload: str
    """The payload folder that trials run from now."""
    first: Mapping[str, str]
    accepted: Mapping[str, str]


def identity(paths: RunPaths) -> Identity:
    """Read what run.json says."""
    raw = paths.files.read_object(paths.run)
    with damage(paths.run):
        stated = read(Identity, raw)
        path_part(stated.id, "run's id")
        payload_name(stated.payload)
    return stated


def is_copy(paths: RunPaths) -> bool:
    """Whether this directory is a copy: what runs or waits under its id belongs to the original.

    A renamed directory keeps its inode and its time of birth, also over reboots. A copy on another
    file system may have the same inode, but was born later.
    """
    stated, born = paths.files.read_object(paths.run), born_ns(paths.root)
    if stated.get("directory") != paths.root.stat().st_ino:
        return True
    return None not in (born, stated.get("born_ns")) and born != stated["born_ns"]


def claim(paths: RunPaths) -> bool:
    """Give a copy an id of its own, so that it never touches what belongs to its original.

    Processes, scratch folders and jobs in a queue carry the id. Call it with the run locked.
    """
    if not is_copy(paths):
        return False
    raw = paths.files.read_object(paths.run)
    own = new_identity(paths.root)
    paths.files.remove(paths.jobs)
    paths.files.write_json(paths.run, {**raw, **own})
    log(paths, "claimed", id=own["id"], copy_of=raw.get("id"))
    return True


def new_identity(root: Path) -> dict[str, Any]:
    """Give what run.json keeps of the directory that it lies in, and a new id."""
    return {"id": _new_id(root), "directory": root.stat().st_ino, "born_ns": born_ns(root)}


def _new_id(root: Path) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]", "-", root.name)[:100].strip("._-")
    return f"{name or 'run'}-{secrets.token_hex(8)}"
