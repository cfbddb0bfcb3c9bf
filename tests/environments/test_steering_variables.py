"""Variables that may change what is computed, or how fast, are told from all others."""

from __future__ import annotations

import pytest

from harness.study.recorded_variables import is_steering


@pytest.mark.parametrize(
    "name",
    [
        *("OMP_NUM_THREADS", "ATEN_CPU_CAPABILITY", "XLA_FLAGS", "LD_PRELOAD", "LD_AUDIT"),
        *("CC", "CXX", "WINO", "NOOPT", "JIT", "DEFAULT_FLOAT", "THREADS"),
        *("TCMALLOC_SAMPLE_PARAMETER", "MIMALLOC_ALLOW_LARGE_OS_PAGES", "_RJEM_MALLOC_CONF"),
        *("MIOPEN_FIND_MODE", "ROCBLAS_LAYER", "HSA_OVERRIDE_GFX_VERSION"),
        *("FI_PROVIDER", "GLOO_SOCKET_IFNAME", "NPY_DISABLE_CPU_FEATURES"),
        *("THP_MEM_ALLOC_ENABLE", "LRU_CACHE_CAPACITY", "DISABLE_FAST_IDIV"),
    ],
)
def test_what_steers_libraries_compilers_and_frameworks_counts(name: str) -> None:
    assert is_steering(name)


@pytest.mark.parametrize(
    "name", ["HOME", "BEAMLINE", "CCACHE_DIR", "JITSI_HOST", "WINOTIFY", "SLURM_JOB_ID", "DEBUG"]
)
def test_what_others_read_or_one_job_says_does_not(name: str) -> None:
    assert not is_steering(name)
