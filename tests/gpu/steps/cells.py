"""The cells of a GPU day: those of the study `frameworks`, small, on the GPU."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.gpu.day import Day

_ON_GPUS: Mapping[str, object] = {
    "matrix.device": "gpu",
    "matrix.batch": 64,
    "measure.until": "5 s",
}
_REHEARSED: Mapping[str, object] = {
    "matrix.workload": "tinycnn",
    "matrix.threads": 1,  # several wait for each other where tests run side by side
    "measure.until": "0.5 s",
    "measure.reruns": 0,
}


def selection(
    day: Day, frameworks: tuple[str, ...], changed: Mapping[str, object] | None = None
) -> list[str]:
    """Give the study and what narrows it, as every verb takes them."""
    values = {**(_REHEARSED if day.is_dry else _ON_GPUS), **(changed or {})}
    settings = [word for name, one in values.items() for word in ("--set", _setting(name, one))]
    narrower = ["--only", "compile=false"] if day.is_dry and "torch" in frameworks else []
    return [
        *("frameworks", "--size", "smoke" if day.is_dry else "small"),
        *("--platform", str(day.platform())),
        *("--only", f"framework={','.join(frameworks)}"),
        *narrower,
        *settings,
    ]


def _setting(name: str, value: object) -> str:
    return f"{name}={value if isinstance(value, str) else json.dumps(value)}"
