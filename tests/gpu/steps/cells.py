"""The cells of a GPU day: those of the studies `frameworks` and `transformers`, on the GPU."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.gpu.day import Day

_ON_GPUS: Mapping[str, Mapping[str, object]] = {
    "frameworks": {"matrix.device": "gpu", "matrix.batch": 64, "measure.until": "3 s"},
    "transformers": {
        "matrix.workload": "gpt2-124m",
        "matrix.device": "gpu",
        "matrix.precision": "bf16",
        "matrix.batch": 8,
        "measure.trials": 6,
        "measure.until": "3 s",
    },
}
_TINY = {"frameworks": "tinycnn", "transformers": "tinygpt"}
_SIZES = {"frameworks": "small", "transformers": "smoke"}
_REHEARSED: Mapping[str, object] = {
    "matrix.threads": 1,  # several wait for each other where tests run side by side
    "measure.until": "0.5 s",
    "measure.reruns": 0,
}


def selection(
    day: Day,
    frameworks: tuple[str, ...],
    changed: Mapping[str, object] | None = None,
    *,
    study: str = "frameworks",
) -> list[str]:
    """Give the study and what narrows it, as every verb takes them."""
    rehearsed = {"matrix.workload": _TINY[study], **_REHEARSED}
    values = {**(rehearsed if day.is_dry else _ON_GPUS[study]), **(changed or {})}
    settings = [word for name, one in values.items() for word in ("--set", _setting(name, one))]
    narrower = ["--only", "compile=false"] if day.is_dry and "torch" in frameworks else []
    return [
        *(study, "--size", "smoke" if day.is_dry else _SIZES[study]),
        *("--platform", str(day.platform())),
        *("--only", f"framework={','.join(frameworks)}"),
        *narrower,
        *settings,
    ]


def _setting(name: str, value: object) -> str:
    return f"{name}={value if isinstance(value, str) else json.dumps(value)}"
