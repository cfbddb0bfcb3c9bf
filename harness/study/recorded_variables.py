"""Environment variables that change how fast frameworks run: a run records their values."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness import plugins
from harness.worker.facts.variables import LEAVE, TAKE, matches
from harness.worker.redaction.redact import redact

_SHARED = (
    "BAKEOFF_*",
    "BLIS_*",
    "CC",
    "CUBLAS_*",
    "CUDA_*",
    "CUDNN_*",
    "CXX",
    "DNNL_*",
    "FI_*",
    "GLIBC_TUNABLES*",
    "GLOO_*",
    "GOMP_*",
    "HIP_*",
    "HSA_*",
    "I_MPI_*",
    "KMP_*",
    "LD_AUDIT",
    "LD_LIBRARY_PATH*",
    "LD_PRELOAD*",
    "MALLOC_*",
    "MIMALLOC_*",
    "MIOPEN_*",
    "MKL_*",
    "NCCL_*",
    "NPY_*",
    "NUMEXPR_*",
    "NVIDIA_*",
    "OMP_*",
    "OMPI_*",
    "ONEDNN_*",
    "OPENBLAS_*",
    "PYTHONHASHSEED",
    "ROCBLAS_*",
    "ROCR_*",
    "SLURM_*",
    "TCMALLOC_*",
    "UCX_*",
    "_RJEM_MALLOC_CONF",
)
"""Of libraries, devices and launchers, and of the compilers that some frameworks call while they
run; each framework names its own in its file."""
_OF_ONE_JOB = (
    *("BAKEOFF_*", "SLURM_*", "OMPI_*", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
    *("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"),
)
"""They name a job, its ranks or its devices, which are others the next time; so do those that a
framework's file gives to each of several ranks."""
_OF_WHOEVER_SUBMITTED = ("SLURM_EXPORT_ENV*", "SLURM_JOB_COMMENT*")
"""They hold any variable, and any words."""


def is_telling(name: str) -> bool:
    """Tell whether a variable may explain a difference between two runs."""
    known = _patterns(tuple(plugins.adapter_files().values()))
    return matches(name, known.steering) and not matches(name, known.foreign)


def is_steering(name: str) -> bool:
    """Tell whether a variable may change what is computed, or how fast, in job after job."""
    of_one_job = _patterns(tuple(plugins.adapter_files().values())).of_one_job
    return is_telling(name) and not matches(name, of_one_job)


def steering(environ: Mapping[str, str]) -> dict[str, str]:
    """Choose the variables that steer what is computed, without secrets."""
    return {
        name: redact(name, value) for name, value in sorted(environ.items()) if is_steering(name)
    }


def patterns_of_steering() -> dict[str, list[str]]:
    """Give the patterns by which a worker finds the steering variables that it has."""
    known = _patterns(tuple(plugins.adapter_files().values()))
    return {TAKE: [*known.steering], LEAVE: [*known.foreign, *known.of_one_job]}


@dataclass(frozen=True)
class _Patterns:
    steering: tuple[str, ...]
    foreign: tuple[str, ...]
    of_one_job: tuple[str, ...]


@cache
def _patterns(files: tuple[Path, ...]) -> _Patterns:
    """Gather the patterns of all frameworks; a table that is wrong adds none.

    The files are read without being checked: every page asks, and checking takes 0.1 s to import.
    """
    steering, foreign, of_one_job = [*_SHARED], [*_OF_WHOEVER_SUBMITTED], [*_OF_ONE_JOB]
    for path in files:
        for table in _variables(path):
            steering += _texts(table.get("steering"))
            foreign += _texts(table.get("foreign"))
            of_ranks = table.get("several_ranks")
            of_one_job += _texts([*of_ranks]) if isinstance(of_ranks, dict) else []
    return _Patterns(*(tuple(dict.fromkeys(one)) for one in (steering, foreign, of_one_job)))


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
