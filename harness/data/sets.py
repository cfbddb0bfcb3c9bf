"""Say what a made data set is called and whether it is there; make none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import BakeoffError
from harness.worker.input.dataset import MANIFEST, VERSION, name_of

MADE = "made.jsonl"
"""What was made so far of a set that is not finished."""
_OF_A_SET = {
    "version": int,
    "content": str,
    "format": str,
    "samples": int,
    "largest": int,
    "classes": int,
    "target_length": int,
    "files": list,
}
_OF_A_FILE = {"name": str, "bytes": int, "samples": int, "sha256": str | None}
_OF_OWN = {"changed_ns": int}
_MAY_LACK: dict[str, Any] = {"root": "", "class_names": [], "sums": {}}


@dataclass(frozen=True)
class DataSetSpec:
    """What a made set is; its bytes follow from nothing else."""

    content: str
    format: str
    samples: int
    seed: int = 1
    per_file: int | None = None
    """Samples in each file of a format that takes several; None: as many as its content says."""

    @property
    def name(self) -> str:
        """The set's folder."""
        return name_of(self.content, self.format, self.samples, self.seed)


def is_finished(folder: Path) -> bool:
    """Tell whether a set is there, whole, and such as is read today."""
    try:
        read_manifest(folder)
    except BakeoffError:
        return False
    return True


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read what a finished set is; refuse what nothing here has written."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text("utf-8"))
    except OSError as problem:
        raise BakeoffError(f"{path}: {problem.strerror}.") from None
    except (ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict) or not _is_whole(manifest):
        raise BakeoffError(
            f"{path} is damaged, or of another version: `bakeoff data remove` and create the set."
        )
    return manifest


def _is_whole(manifest: dict[str, Any]) -> bool:
    """Tell whether all is there that is read, and as it was written."""
    root, names, sums = (manifest.get(one, empty) for one, empty in _MAY_LACK.items())
    return (
        has(manifest, _OF_A_SET)
        and manifest["version"] == VERSION
        and isinstance(root, str)
        and isinstance(names, list)
        and all(isinstance(name, str) for name in names)
        and all(has(one, {**_OF_A_FILE, **(_OF_OWN if root else {})}) for one in manifest["files"])
        and isinstance(sums, dict)
        and all(has(one, {"bytes": int, "sha256": str}) for one in sums.values())
    )


def has(record: Any, kinds: Mapping[str, Any]) -> bool:
    """Tell whether this is an object with these keys, each with a value of its kind."""
    return isinstance(record, dict) and all(
        name in record and isinstance(record[name], kind) for name, kind in kinds.items()
    )


def began(folder: Path) -> dict[str, Any] | None:
    """Read in its log what an unfinished set is; a crash may have torn lines of it."""
    with suppress(OSError), (folder / MADE).open(encoding="utf-8", errors="replace") as log:
        for line in log:
            with suppress(ValueError, RecursionError):
                record = json.loads(line)
                if isinstance(record, dict) and "content" in record:
                    return record
    return None
