"""Set TensorFlow up before it starts its devices, and say what is set."""

from __future__ import annotations

import os
from functools import lru_cache, partial
from typing import Any, Callable, Dict, Mapping

from harness.worker.adapters.tensorflow.strategies.strategies import Strategy
from harness.worker.contracts import Unsupported
from harness.worker.facts.resources import threads, usable_cpus

WARNINGS_AND_ERRORS = "1"
PROBED = {
    "ONEDNN_VERBOSE": "1",
    "TF_CPP_MIN_LOG_LEVEL": "0",  # everything
    "TF_CPP_VMODULE": "device_compilation_profiler=1,xla_compilation_cache=1",  # 2.x, 1.15
}
"""What lets oneDNN and XLA say what they do."""


def before_import(factors: Mapping[str, Any]) -> None:
    """Set what TensorFlow and oneDNN read from the environment while they are imported."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", WARNINGS_AND_ERRORS)
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    if factors.get("onednn") is not None:
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "1" if factors["onednn"] else "0"
    if factors.get("deterministic"):
        os.environ["TF_DETERMINISTIC_OPS"] = "1"
    if factors.get("device") != "gpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"


def after_import(factors: Mapping[str, Any], seed: int, join: Callable[[], Any] = Strategy) -> Any:
    """Set threads, switches and seeds; refuse what this version or machine lacks.

    ``join`` finds the other ranks, which has to happen before TensorFlow starts its devices; what
    it gives is given back.
    """
    import tensorflow.compat.v2 as tf

    tf.compat.v1.enable_v2_behavior()
    _refuse(factors)
    share = threads(factors)
    if share != usable_cpus():
        tf.config.threading.set_intra_op_parallelism_threads(share)
    if factors.get("interop_threads"):
        tf.config.threading.set_inter_op_parallelism_threads(factors["interop_threads"])
    strategy = join()
    tf.random.set_seed(seed)
    if hasattr(tf.config.experimental, "enable_tensor_float_32_execution"):
        is_tf32 = factors.get("precision") == "tf32"
        tf.config.experimental.enable_tensor_float_32_execution(is_tf32)
    if factors.get("deterministic") and hasattr(tf.config.experimental, "enable_op_determinism"):
        tf.config.experimental.enable_op_determinism()
    return strategy


def is_first() -> bool:
    """Tell TensorFlow 1.15 from 2.x."""
    import tensorflow.compat.v2 as tf

    return bool(tf.version.VERSION.startswith("1."))


def has_gpu() -> bool:
    """Tell whether TensorFlow sees a GPU."""
    import tensorflow.compat.v2 as tf

    return bool(tf.config.experimental.list_physical_devices("GPU"))


def _refuse(factors: Mapping[str, Any]) -> None:
    precision, is_gpu = factors.get("precision"), factors.get("device") == "gpu"
    if is_gpu and not has_gpu():
        raise Unsupported("this TensorFlow finds no GPU")
    if not is_gpu and precision in ("fp16", "tf32"):
        raise Unsupported("TensorFlow trains in {} on GPUs only".format(precision))
    if not is_gpu and factors.get("layout") == "channels-first":
        raise Unsupported("TensorFlow computes convolutions channels-last on a CPU")
    if is_first() and precision == "bf16":
        raise Unsupported("TensorFlow 1.15 has no bfloat16 convolutions on CPUs and GPUs")
    if is_first() and factors.get("onednn"):
        raise Unsupported("TensorFlow 1.15 from PyPI is built without oneDNN")


def style(factors: Mapping[str, Any], precision: str = "timed") -> Any:
    """Choose how a network is written: as the factors say, or in float64 for the gate."""
    import tensorflow.compat.v2 as tf

    from harness.worker.adapters.tensorflow.lowering.layer_style import Style

    if precision == "float64":
        return Style(tf.float64, channels_last=True, has_groups=lambda: False)
    known = {"bf16": tf.bfloat16, "fp16": tf.float16}
    dtype = known.get(str(factors.get("precision")), tf.float32)
    channels_last = factors.get("layout") != "channels-first"
    return Style(dtype, channels_last, has_groups=partial(_has_grouped_convolutions, dtype))


def jitted(function: Any, compiled: bool) -> Any:
    """Trace a function, through XLA if asked."""
    import tensorflow.compat.v2 as tf

    if not compiled:
        return tf.function(function, autograph=False)
    if is_first():
        return tf.function(function, autograph=False, experimental_compile=True)
    return tf.function(function, autograph=False, jit_compile=True)


def waiter() -> Any:
    """Find what waits for a GPU; nothing is needed on a CPU, where calls return when done."""
    import tensorflow.compat.v2 as tf

    if not has_gpu():
        return lambda _: None
    if hasattr(tf.test, "experimental"):
        return lambda _: tf.test.experimental.sync_devices()
    # TensorFlow 1.15: reading a result waits for all that was enqueued before.
    return lambda result: None if result is None else result.numpy()


@lru_cache(maxsize=None)
def _has_grouped_convolutions(dtype: Any) -> bool:
    """Try a grouped convolution with its bias and gradients: without oneDNN or cuDNN some lack.

    Its numbers are arguments, since constants would be folded, and its gradients are written out,
    since the scope pauses tapes. TensorFlow 1.15 corrupts its heap on trying, so it is not asked.
    """
    import tensorflow.compat.v2 as tf

    if is_first():
        return False
    step = {"strides": [1, 1, 1, 1], "padding": "SAME"}

    def attempt(x: Any, kernel: Any, bias: Any) -> Any:
        y = tf.nn.bias_add(tf.nn.conv2d(x, kernel, **step), bias)
        of_x = tf.raw_ops.Conv2DBackpropInput(
            input_sizes=x.shape, filter=kernel, out_backprop=y, **step
        )
        of_kernel = tf.raw_ops.Conv2DBackpropFilter(
            input=x, filter_sizes=kernel.shape, out_backprop=y, **step
        )
        return y, of_x, of_kernel

    try:
        with tf.init_scope():  # asked while a step is traced, answered at once
            given = [tf.ones(shape, dtype) for shape in ([1, 4, 4, 4], [3, 3, 2, 4], [4])]
            jitted(attempt, compiled=False)(*given)
    except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError):
        return False
    return True


def _is_deterministic() -> bool:
    """Ask TensorFlow's own switch; 1.15 reads the environment."""
    try:
        from tensorflow.python.framework import config
    except ImportError:
        return os.environ.get("TF_DETERMINISTIC_OPS") == "1"
    if hasattr(config, "is_op_determinism_enabled"):
        return bool(config.is_op_determinism_enabled())
    return os.environ.get("TF_DETERMINISTIC_OPS") == "1"


def versions() -> Dict[str, str]:
    """Name TensorFlow and the libraries that decide its speed."""
    import numpy
    import tensorflow.compat.v2 as tf

    found = {"tensorflow": tf.version.VERSION, "numpy": numpy.__version__}
    build = tf.sysconfig.get_build_info() if hasattr(tf.sysconfig, "get_build_info") else {}
    for name, key in (("CUDA", "cuda_version"), ("cuDNN", "cudnn_version")):
        if build.get(key):
            found[name] = str(build[key])
    return found


def facts(factors: Mapping[str, Any]) -> Dict[str, Any]:
    """Say how large TensorFlow's pools are, what is switched on, and what a GPU held."""
    import tensorflow.compat.v2 as tf

    threading = tf.config.threading
    # 0 stands for every CPU that the process may use
    found: Dict[str, Any] = {
        "threads": threading.get_intra_op_parallelism_threads() or usable_cpus(),
        "interop_threads": threading.get_inter_op_parallelism_threads() or usable_cpus(),
        "deterministic": _is_deterministic(),
    }
    if factors.get("device") == "gpu" and hasattr(
        tf.config.experimental, "tensor_float_32_execution_enabled"
    ):
        is_tf32 = bool(tf.config.experimental.tensor_float_32_execution_enabled())
        found["tf32_products"] = found["tf32_convolutions"] = is_tf32
    if has_gpu() and hasattr(tf.config.experimental, "get_memory_info"):
        memory = tf.config.experimental.get_memory_info("GPU:0")
        found["peak_device_bytes"] = int(memory["peak"])
    return found
