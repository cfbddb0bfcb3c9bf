"""Environment variables that change how fast frameworks run: a run records their values."""

from __future__ import annotations

from functools import cache

from harness.errors import BakeoffError

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
    # what reads frameworks' files is slow to import, and few runs that are read have variables
    from harness.study.framework import framework_names
    from harness.study.framework_variables import matches

    steering, foreign = _patterns(framework_names())
    return matches(name, steering) and not matches(name, foreign)


@cache
def _patterns(names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Gather the patterns of all frameworks; one whose file is wrong adds none."""
    from harness.study.framework import framework_info

    steering, foreign = [*_SHARED], [*_OF_WHOEVER_SUBMITTED]
    for name in names:
        try:
            info = framework_info(name)
        except BakeoffError:
            continue  # whoever asks for that framework is told
        for own in (info.variables, *(one.variables for one in info.strategies.values())):
            steering += own.steering
            foreign += own.foreign
    return tuple(dict.fromkeys(steering)), tuple(dict.fromkeys(foreign))
