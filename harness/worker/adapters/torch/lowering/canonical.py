"""Tensors by the names that every framework shares, and their way in and out of torch."""

from __future__ import annotations

import ctypes
from typing import Any, Iterator, Optional, Tuple

import torch
from torch import nn

from harness.worker.adapters.torch.lowering.network import Lowered, operator
from harness.worker.adapters.torch.lowering.recomputed import NORMS
from harness.worker.adapters.torch.lowering.sequences import Tied
from harness.worker.gate.subject import Made
from harness.worker.gate.tensors import Tensor

POSITION_NORMS = (nn.LayerNorm, nn.RMSNorm)
TYPES = {"float64": torch.float64, "float32": torch.float32, "int64": torch.int64}


def named(network: Lowered) -> Iterator[Tuple[str, torch.Tensor]]:
    """Give every parameter and running statistic of a network."""
    for path, module in network.at.items():
        for kind, tensor in held(operator(module)):
            yield path + "/" + kind, tensor


def held(module: nn.Module) -> Iterator[Tuple[str, torch.Tensor]]:
    """Give a module's own tensors."""
    if isinstance(module, NORMS):
        yield "gamma", module.weight
        yield "beta", module.bias
        yield "mean", module.running_mean
        yield "variance", module.running_var
        return
    if isinstance(module, POSITION_NORMS):
        yield "gamma", module.weight
        if getattr(module, "bias", None) is not None:
            yield "beta", module.bias
        return
    for kind in ("weight", "bias"):
        tensor: Optional[torch.Tensor] = getattr(module, kind, None)
        if tensor is not None:
            yield kind, tensor


def multiplied(module: nn.Module) -> Iterator[Tuple[str, torch.Tensor]]:
    """Give a module's own tensors, and the table that it is tied to."""
    yield from held(module)
    if isinstance(module, Tied):
        yield "weight", module.tables[0].weight


def given_tensor(tensor: Tensor) -> torch.Tensor:
    """Read a tensor of a folder."""
    flat = torch.frombuffer(tensor.items(), dtype=TYPES[tensor.dtype])
    return flat.reshape(tensor.shape)


def made(name: str, tensor: Any, dtype: torch.dtype = torch.float64) -> Made:
    """Give a tensor as a folder takes it; one of that type on the CPU is not copied."""
    flat = tensor.detach().to("cpu", dtype).contiguous()
    size = flat.numel() * flat.element_size()
    buffer = (ctypes.c_char * size).from_address(flat.data_ptr())
    # The buffer borrows the tensor's memory and has to keep it alive.
    buffer.tensor = flat
    return name, tuple(flat.shape), buffer
