"""Environment variables that change how fast frameworks run: a run records their values."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from harness import plugins

_SHARED = (
    "BAKEOFF_*",
    "BLIS_*",
    "CUBLAS_*",
    "CUDA_*",
    "CUDNN_*",
    "DNNL_*",
    "GLIBC_TUNABLES*",
    "GOMP_*",
    "HIP_*",
    "I_MPI_*",
    "KMP_*",
    "LD_LIBRARY_PATH*",
    "LD_PRELOAD*",
    "MALLOC_*",
    "MKL_*",
    "NCCL_*",
    "NUMEXPR_*",
    "NVIDIA_*",
    "OMP_*",
    "OMPI_*",
    "ONEDNN_*",
    "OPENBLAS_*",
    "PYTHONHASHSEED",
    "ROCR_*",
    "SLURM_*",
    "UCX_*",
)
"""Of libraries, devices and launchers; each framework names its own in its file."""
_OF_WHOEVER_SUBMITTED = ("SLURM_EXPORT_ENV*", "SLURM_JOB_COMMENT*")
"""They hold any variable, and any words."""


def is_telling(name: str) -> bool:
    """Tell whether a variable may explain a difference between two runs."""
    steering, foreign = _patterns(tuple(plugins.adapter_files().values()))
    return matches(name, steering) and not matches(name, foreign)


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Say whether a variable is one of the patterns': names, or beginnings of names and a star."""
    return any(name.startswith(one[:-1]) if one.endswith("*") else name == one for one in patterns)


@cache
def _patterns(files: tuple[Path, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Gather the patterns of all frameworks; a table that is wrong adds none.

    The files are read without being checked: every page asks, and checking takes 0.1 s to import.
    """
    steering, foreign = [*_SHARED], [*_OF_WHOEVER_SUBMITTED]
    for path in files:
        for table in _variables(path):
            steering += _texts(table.get("steering"))
            foreign += _texts(table.get("foreign"))
    return tuple(dict.fromkeys(steering)), tuple(dict.fromkeys(foreign))


def _variables(path: Path) -> Iterator[Mapping[str, Any]]:
    """Give the tables of variables of one framework's file: its own, then its strategies'."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return  # whoever asks for that framework is told
    strategies = data.get("strategies")
    for table in (data, *(strategies.values() if isinstance(strategies, dict) else ())):
        own = table.get("variables") if isinstance(table, dict) else None
        if isinstance(own, dict):
            yield own


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
