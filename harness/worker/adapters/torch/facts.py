"""Say what torch used in this process: memory, threads, switches, compilation."""

from __future__ import annotations

import sys
from typing import Any, Dict, Iterable, Iterator, Optional

import torch

from harness.worker.adapters.torch.settings import Settings
from harness.worker.adapters.torch.training import KEPT, Trainer


def collect(settings: Settings, trainer: Optional[Trainer]) -> Dict[str, Any]:
    """Gather the facts after the last step."""
    facts: Dict[str, Any] = {
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "onednn": bool(torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "compiler": "inductor" if _has_inductor_run() else None,
    }
    if trainer is not None:
        kinds = {parameter.device.type for parameter in trainer.network.parameters()}
        facts["device"] = "cpu" if kinds == {"cpu"} else "gpu"
        facts["weights_held"] = _types(trainer.network.parameters())
        if trainer.optimiser is not None:
            facts["optimiser"] = _named(trainer.optimiser)
            facts["optimiser_held"] = _types(_kept(trainer.optimiser))
        if trainer.scaler.is_enabled():
            facts["loss_scale"] = trainer.scaler.get_scale()
    if settings.is_gpu:
        facts.update(_gpu(settings))
    if settings.is_compiled:
        facts.update(_compilation())
    return facts


def _types(tensors: Iterable[torch.Tensor]) -> str:
    return ", ".join(sorted({str(one.dtype).replace("torch.", "") for one in tensors}))


def _kept(optimiser: Any) -> Iterator[torch.Tensor]:
    """Give what is kept of each weight; how many updates were made is one number, and float32."""
    for state in optimiser.state.values():
        yield from (state[name] for name in KEPT.values() if name in state)


def _named(optimiser: Any) -> str:
    """Ask an optimiser for its class, and its groups for whether they are updated fused."""
    is_fused = all(group.get("fused") for group in optimiser.param_groups)
    return type(optimiser).__name__ + (", fused" if is_fused else "")


def _gpu(settings: Settings) -> Dict[str, Any]:
    return {
        "device_name": torch.cuda.get_device_name(settings.device),
        "peak_device_bytes": torch.cuda.max_memory_allocated(settings.device),
        "peak_device_reserved_bytes": torch.cuda.max_memory_reserved(settings.device),
        "tf32_products": bool(torch.backends.cuda.matmul.allow_tf32),
        "tf32_convolutions": bool(torch.backends.cudnn.allow_tf32),
        "cudnn_benchmark": bool(torch.backends.cudnn.benchmark),
    }


def _compiled_graphs() -> int:
    """Count what torch._dynamo compiled; it is imported by the first attempt."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return int(dynamo.counters["stats"]["unique_graphs"]) if dynamo is not None else 0


def _has_inductor_run() -> bool:
    """Ask Inductor's own counters: other backends capture graphs too, and run them eagerly."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo is not None and sum(dynamo.counters["inductor"].values()) > 0


def _compilation() -> Dict[str, Any]:
    """Read torch._dynamo's counters, if anything was compiled so far."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is None:
        return {"compiled_graphs": 0}
    counters = dynamo.counters
    seconds = dynamo.compilation_time_metrics
    return {
        "compiled_graphs": _compiled_graphs(),
        "graph_breaks": int(sum(counters["graph_break"].values())),
        "graph_break_reasons": sorted(str(reason)[:200] for reason in counters["graph_break"]),
        "compile_cache_hits": int(counters["inductor"]["fxgraph_cache_hit"]),
        "compile_cache_misses": int(counters["inductor"]["fxgraph_cache_miss"]),
        "compile_s": float(sum(seconds.get("_compile.compile_inner", []))),
    }
