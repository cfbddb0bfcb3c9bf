"""Know which environment variables change how fast frameworks run."""

from __future__ import annotations

_TELLING = (
    "ATEN_",
    "BAKEOFF_",
    "BLIS_",
    "CUBLAS_",
    "CUDA_",
    "CUDNN_",
    "DNNL_",
    "GLIBC_TUNABLES",
    "GOMP_",
    "HIP_",
    "HOROVOD_",
    "I_MPI_",
    "JAX_",
    "KERAS_",
    "KMP_",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "MALLOC_",
    "MKL_",
    "NCCL_",
    "NUMEXPR_",
    "NVIDIA_",
    "OMP_",
    "OMPI_",
    "ONEDNN_",
    "OPENBLAS_",
    "PYTHONHASHSEED",
    "PYTORCH_",
    "ROCR_",
    "SLURM_",
    "TF_",
    "TORCH",
    "TRITON_",
    "UCX_",
    "XLA_",
)
_WHOLE = ("BEAM",)
"""tinygrad's search for kernels: no prefix, which would be Apache Beam's too."""
_OTHERS = (
    # Terraform's, which shares its prefix with TensorFlow
    *("TF_CLI_", "TF_VAR_", "TF_LOG", "TF_DATA_DIR", "TF_PLUGIN_"),
    # any variable, and any words, of whoever submitted the job
    *("SLURM_EXPORT_ENV", "SLURM_JOB_COMMENT"),
)


def is_telling(name: str) -> bool:
    """Tell whether a variable may explain a difference between two runs."""
    if name in _WHOLE:
        return True
    return name.startswith(_TELLING) and not name.startswith(_OTHERS)
