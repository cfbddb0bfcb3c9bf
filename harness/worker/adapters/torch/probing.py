"""Watch a few steps from inside: tensors, what oneDNN says it ran, torch's profiler."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Dict, Optional
from typing import Counter as Counts

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from harness.worker.adapters.torch.lowering.sequences import Mix
from harness.worker.adapters.torch.settings import LAYOUTS, Settings
from harness.worker.facts import onednn
from harness.worker.facts.busy_threads import Threads, printed

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
WARM_STEPS = 2
LISTED = 80

# What multiplies, under the names that appear once per call on every device.
HEAVY = {
    "aten::_convolution",
    "aten::addmm",
    "aten::baddbmm",
    "aten::bmm",
    "aten::convolution_backward",
    "aten::mm",
}
FUSED_ATTENTION = re.compile("_scaled_dot_product_(flash|efficient|cudnn|fused)")
CPP_TYPES = {"float": "float32", "c10::BFloat16": "bfloat16", "c10::Half": "float16"}


def observe(activity: Any, network: nn.Module, settings: Settings) -> Dict[str, Any]:
    """Step until warm, then say which operators, kernels, types and threads a step uses."""
    # A hook would break a compiled graph; there oneDNN has to tell.
    seen = Counter() if settings.is_compiled else watch_layouts(network)
    with printed() as first, torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
        activity.step()  # compiles; oneDNN introduces itself once
    for _ in range(WARM_STEPS):
        activity.step()
    activity.sync()
    threads = Threads()
    with printed() as later, torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
        activity.step()
    busy = threads.busy()
    found = {**_profiled(activity, settings.is_gpu), **onednn.read(later, steps=1)}
    if not any(isinstance(module, Mix) for module in network.modules()):
        del found["attention"]
    layout = most(seen) or onednn.layout(found["onednn_layouts"])
    if layout is not None:
        found["layout"] = layout
    found["onednn_isa"] = onednn.instruction_set(first + later)
    if not settings.is_gpu:
        found["busy_threads"] = busy
    return found


def watch_layouts(network: nn.Module) -> Counts[str]:
    """Count the layouts in which activations leave convolutions, of the next pass."""
    seen: Counts[str] = Counter()
    for module in network.modules():
        if isinstance(module, CONVOLUTIONS):
            _watch(module, seen)
    return seen


def _watch(module: nn.Module, seen: Counts[str]) -> None:
    def told(_module: Any, _given: Any, made: torch.Tensor) -> None:
        hook.remove()
        layout = layout_of(made)
        if layout is not None:
            seen[layout] += 1

    hook = module.register_forward_hook(told)


def layout_of(tensor: torch.Tensor) -> Optional[str]:
    """Ask a tensor how it lies; one that lies both ways, as of one channel, tells nothing."""
    form = LAYOUTS.get(tensor.dim() - 2)
    is_first = tensor.is_contiguous()
    is_last = form is not None and tensor.is_contiguous(memory_format=form)
    if is_first == is_last:
        return None
    return "channels-last" if is_last else "channels-first"


def most(seen: Counts[str]) -> Optional[str]:
    """Give what was counted most often."""
    return seen.most_common(1)[0][0] if seen else None


def _profiled(activity: Any, is_gpu: bool) -> Dict[str, Any]:
    watched = [ProfilerActivity.CPU]
    if is_gpu:
        watched.append(ProfilerActivity.CUDA)
    with profile(activities=watched, record_shapes=True) as profiler:
        activity.step()
        activity.sync()
    operators: Counts[str] = Counter()
    kernels: Counts[str] = Counter()
    computed: Counts[str] = Counter()
    for event in profiler.profiler.kineto_results.events():
        name = event.name()
        if event.device_type() == torch.autograd.DeviceType.CUDA:
            kernels[name] += 1
        elif name.startswith("aten::") or "triton" in name:
            given = _type(event)
            operators["{} {}".format(name, given).strip()] += 1
            if name in HEAVY and given:
                computed[given] += 1
    is_fused = any(FUSED_ATTENTION.search(name) for name in operators)
    found: Dict[str, Any] = {"operations": dict(operators.most_common(LISTED))}
    found["attention"] = "fused" if is_fused else "plain"
    whole = sum(computed.values())
    if whole:
        found["computed"] = {name: count / whole for name, count in computed.most_common()}
        found["computed_by"] = "convolutions and products that torch dispatched"
    if kernels:
        found["kernels"] = dict(kernels.most_common(LISTED))
    return found


def _type(event: Any) -> str:
    """Give the type of the first tensor that an operator was given."""
    for name in event.dtypes():
        if name in CPP_TYPES or name == "double":
            return CPP_TYPES.get(name, "float64")
    return ""
