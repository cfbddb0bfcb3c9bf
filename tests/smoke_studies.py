"""Take cells out of a paper's study at smoke size; `make papers` measures all of them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

STUDIES = Path(__file__).parents[1] / "studies"
Cells = Mapping[str, Any]


def included(study: str, keeps: Callable[[Cells], bool]) -> tuple[str, str]:
    """Give the words for ``bakeoff run`` that keep only such cells of those beside the matrix."""
    table = tomllib.loads((STUDIES / f"{study}.toml").read_text(encoding="utf-8"))
    every = table["size"]["smoke"]["include"]
    kept = [one for one in every if keeps(one)]
    assert 0 < len(kept) < len(every), f"{study} has changed"
    return "--set", f"include=[{', '.join(map(_inline, kept))}]"


def _inline(table: Cells) -> str:
    return "{" + ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items()) + "}"
