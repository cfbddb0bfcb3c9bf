"""Say what a made data set is called and whether it is there; make none."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.worker.input.dataset import MANIFEST, VERSION, name_of

MADE = "made.jsonl"
"""What was made so far of a set that is not finished."""


@dataclass(frozen=True)
class DataSetSpec:
    """What a made set is; its bytes follow from nothing else."""

    content: str
    format: str
    samples: int
    seed: int = 1

    @property
    def name(self) -> str:
        """The set's folder."""
        return name_of(self.content, self.format, self.samples, self.seed)


def is_finished(folder: Path) -> bool:
    """Tell whether a set is there, whole, and such as is read today."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("version") == VERSION


def began(folder: Path) -> dict[str, Any] | None:
    """Read in its log what an unfinished set is; a crash may have torn lines of it."""
    with suppress(OSError), (folder / MADE).open(encoding="utf-8", errors="replace") as log:
        for line in log:
            with suppress(ValueError):
                record = json.loads(line)
                if isinstance(record, dict) and "content" in record:
                    return record
    return None
