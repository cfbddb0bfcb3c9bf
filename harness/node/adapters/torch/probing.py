"""This file watches two steps from inside: torch's profiler, then what oneDNN says it ran."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import tempfile
from collections import Counter, defaultdict
from typing import Any, DefaultDict, Dict, Iterator, List, Tuple
from typing import Counter as Counts

import torch
from torch.profiler import ProfilerActivity, profile

from harness.node.adapters.torch.activity import TrainingActivity

WARM_STEPS = 3
LISTED = 60

# onednn_verbose,v1,primitive,exec,cpu,convolution,jit:avx512_core,forward_training,TENSORS,…
PRIMITIVE, IMPLEMENTATION, DIRECTION, TENSORS = 5, 6, 7, 8
COMPUTING = ("convolution", "matmul", "inner_product", "deconvolution")
TYPE_NAMES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "f64": "float64"}


def observe(activity: TrainingActivity) -> Dict[str, Any]:
    """Step until warm, then say which operators, kernels, types and layouts a step uses."""
    for _ in range(WARM_STEPS):
        activity.step()
    activity.sync()
    found = _profiled(activity)
    if not activity.trainer.settings.is_gpu:
        found.update(read_onednn(_verbose_lines(activity)))
    return found


def _profiled(activity: TrainingActivity) -> Dict[str, Any]:
    watched = [ProfilerActivity.CPU]
    if activity.trainer.settings.is_gpu:
        watched.append(ProfilerActivity.CUDA)
    with profile(activities=watched, record_shapes=True) as profiler:
        activity.step()
        activity.sync()
    operators: Counts[Tuple[str, str]] = Counter()
    kernels: Counts[str] = Counter()
    for event in profiler.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            kernels[event.name] += 1
        elif event.name.startswith("aten::") or "triton" in event.name:
            operators[event.name, str(event.input_shapes)] += 1
    found: Dict[str, Any] = {
        "operators": [[name, shapes, count] for (name, shapes), count in sorted(operators.items())]
    }
    if kernels:
        found["kernels"] = [[name, count] for name, count in sorted(kernels.items())]
    return found


def read_onednn(lines: List[str]) -> Dict[str, Any]:
    """Read oneDNN's verbose lines: instruction set, primitives, and the types they computed in."""
    primitives: Counts[Tuple[str, str, str, str]] = Counter()
    seconds: DefaultDict[str, float] = defaultdict(float)
    instruction_set = None
    for line in lines:
        fields = line.split(",")
        if "isa:" in line:
            instruction_set = line.split("isa:", 1)[1]
        if fields[2:4] != ["primitive", "exec"]:
            continue
        primitive, tensors = fields[PRIMITIVE], _tensors(fields[TENSORS])
        primitives[primitive, fields[IMPLEMENTATION], fields[DIRECTION], tensors] += 1
        if primitive in COMPUTING:
            seconds[tensors.split(":", 2)[1]] += float(fields[-1]) / 1e3
    found: Dict[str, Any] = {
        "onednn_primitives": [[*key, count] for key, count in primitives.most_common(LISTED)],
        "onednn_reorders": sum(n for key, n in primitives.items() if key[0] == "reorder"),
        "onednn_compute_s": {kind: seconds[kind] for kind in sorted(seconds)},
    }
    if seconds:
        kind = max(seconds, key=lambda name: seconds[name])
        found["computed_in"] = TYPE_NAMES.get(kind, kind)
    if instruction_set is not None:
        found["onednn_isa"] = instruction_set
    return found


def _tensors(text: str) -> str:
    """Keep role, type and layout: ``src:f32::blocked:acdb::f0 …`` becomes ``src:f32:acdb …``."""
    short = []
    for tensor in text.split():
        parts = tensor.split(":")
        short.append(":".join([*parts[:2], *parts[4:5]]))
    return " ".join(short)


def _verbose_lines(activity: TrainingActivity) -> List[str]:
    verbose = torch.backends.mkldnn.verbose
    with tempfile.TemporaryFile("w+") as file, _standard_output_in(file.fileno()):
        with verbose(torch.backends.mkldnn.VERBOSE_ON):
            activity.step()
        ctypes.CDLL(None).fflush(None)
        file.seek(0)
        return [line.strip() for line in file if line.startswith("onednn_verbose")]


@contextlib.contextmanager
def _standard_output_in(target: int) -> Iterator[None]:
    """Send what this process prints to a file; oneDNN prints below Python."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(target, 1)
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
