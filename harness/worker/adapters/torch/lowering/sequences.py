"""Turn the words of sequences into torch modules.

What an expert does here, and why:

- Attention is torch's own scaled dot product, which takes a fused kernel where there is one; plain
  attention is two products, with a softmax between them in at least float32.
- On a CPU keys and values are repeated for the heads that share them: the fused kernel there takes
  equal numbers only, and torch would fall back to plain products. On a GPU it knows groups.
- Cosines and sines of all positions are made once, in at least float32, and queries and keys turn
  in at least float32.
- Tables and sums keep their type under autocast, so that what flows past the blocks stays float32.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import torch
from torch import nn
from torch.nn import functional

from harness.worker.network.sequence_layers import (
    GELU,
    Attention,
    ClassToken,
    Embedding,
    Gather,
    LayerNorm,
    Positions,
    RMSNorm,
    Rotary,
    Segments,
    Select,
    SiLU,
    ToSequence,
)
from harness.worker.network.shapes import Site


class AddPositions(nn.Module):
    """Add each position's learned vector."""

    def __init__(self, length: int, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(length, features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add to all samples."""
        return x + self.weight[: x.shape[1]]


class PutFirst(nn.Module):
    """Put one learned vector before each sequence."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(1, features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Make each sample one position longer."""
        return torch.cat([self.weight.expand(x.shape[0], 1, -1), x], dim=1)


class AddSegments(nn.Module):
    """Add each segment's learned vector to its positions."""

    def __init__(self, count: int, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(count, features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add to all samples, of which each part is one segment."""
        apart = x.unflatten(1, (self.weight.shape[0], -1))
        return (apart + self.weight[:, None]).flatten(1, 2)


class PositionsOfImage(nn.Module):
    """Lay an image's positions behind each other; channels-last memory is only looked at anew."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Give (batch, positions, channels)."""
        return x.flatten(2).transpose(1, 2)


class Pick(nn.Module):
    """Take one position."""

    def __init__(self, position: int) -> None:
        super().__init__()
        self.position = position

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Give (batch, features)."""
        return x[:, self.position]


class Take(nn.Module):
    """Take some positions."""

    def __init__(self, positions: Sequence[int]) -> None:
        super().__init__()
        self.positions = positions
        self.index: Optional[torch.Tensor] = None

    def prepare(self, device: torch.device, _dtype: torch.dtype) -> None:
        """Lay out which, where the network runs: a list would be copied there at each step."""
        self.index = torch.tensor(self.positions, device=device)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Give (batch, positions taken, features)."""
        assert self.index is not None
        return x.index_select(1, self.index)


class Both(nn.Module):
    """Give what two rows make of the same input."""

    def __init__(self, positions: nn.Module, sample: nn.Module) -> None:
        super().__init__()
        self.positions = positions
        self.sample = sample

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        """Compute both heads."""
        return self.positions(x), self.sample(x)


class Times(nn.Module):
    """Multiply what the body and the gate make of the same input."""

    def __init__(self, body: nn.Module, gate: nn.Module) -> None:
        super().__init__()
        self.body = body
        self.gate = gate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute both branches and multiply them."""
        return self.body(x) * self.gate(x)


class Tied(nn.Module):
    """Multiply by an embedding's table, which stays the embedding's own."""

    def __init__(self, table: nn.Module, features: int, has_bias: bool) -> None:
        super().__init__()
        self.tables = (table,)  # in a tuple: no part of this module, and moved once only
        self.bias = nn.Parameter(torch.empty(features)) if has_bias else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Give a number for each row of the table."""
        return functional.linear(x, self.tables[0].weight, self.bias)


class Mix(nn.Module):
    """Attention over queries, keys and values that come side by side."""

    def __init__(self, layer: Attention, length: int) -> None:
        super().__init__()
        self.layer = layer
        self.length = length
        self.turns: Optional[Tuple[torch.Tensor, torch.Tensor]] = None
        self.is_plain = layer.form == "plain"
        self.hidden: Optional[torch.Tensor] = None

    def prepare(self, device: torch.device, dtype: torch.dtype) -> None:
        """Make the mask, and the cosines and sines of all positions: none is trained or saved."""
        if self.is_plain and self.layer.causal:
            every = torch.ones(self.length, self.length, dtype=torch.bool, device=device)
            self.hidden = every.triu(1)
        rotary = self.layer.rotary
        if rotary is None:
            return
        pairs = torch.arange(self.layer.head // 2, dtype=torch.float64)
        speeds = rotary.theta ** (-2 * pairs / self.layer.head)
        angles = torch.outer(torch.arange(self.length, dtype=torch.float64), speeds)
        self.turns = angles.cos().to(device, dtype), angles.sin().to(device, dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Give (batch, positions, heads x head)."""
        layer = self.layer
        counts = [layer.heads, layer.kv_heads, layer.kv_heads]
        parts = x.split([count * layer.head for count in counts], dim=-1)
        query, key, value = (
            part.unflatten(-1, (count, layer.head)).transpose(1, 2)
            for part, count in zip(parts, counts)
        )
        if layer.rotary is not None:
            query, key = (self._turned(layer.rotary, one) for one in (query, key))
        group = layer.heads // layer.kv_heads
        if group > 1 and (self.is_plain or not x.is_cuda):
            key, value = (one.repeat_interleave(group, dim=1) for one in (key, value))
            group = 1
        if self.is_plain:
            mixed = self._mixed(query, key, value)
        else:
            mixed = functional.scaled_dot_product_attention(
                query, key, value, is_causal=layer.causal, enable_gqa=group > 1
            )
        return mixed.transpose(1, 2).flatten(2)

    def _mixed(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        scores = query * self.layer.head**-0.5 @ key.transpose(2, 3)
        if self.hidden is not None:
            scores = scores.masked_fill(self.hidden, float("-inf"))
        wide = torch.promote_types(scores.dtype, torch.float32)
        return torch.softmax(scores, dim=-1, dtype=wide).to(value.dtype) @ value

    def _turned(self, rotary: Rotary, x: torch.Tensor) -> torch.Tensor:
        assert self.turns is not None
        cosines, sines = self.turns
        wide = x.to(cosines.dtype)
        if rotary.interleaved:
            first, second = wide.unflatten(-1, (-1, 2)).unbind(-1)
        else:
            first, second = wide.chunk(2, dim=-1)
        turned = first * cosines - second * sines, second * cosines + first * sines
        if rotary.interleaved:
            return torch.stack(turned, dim=-1).flatten(-2).to(x.dtype)
        return torch.cat(turned, dim=-1).to(x.dtype)


def prepare(network: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
    """Make what is computed from positions alone, where the network runs."""
    for module in network.modules():
        if isinstance(module, (Mix, Take)):
            module.prepare(device, dtype)


SEQUENCE_LAYERS: Dict[type, Callable[[Any, Site, bool], nn.Module]] = {
    Embedding: lambda layer, *_: nn.Embedding(layer.vocabulary, layer.features),
    Segments: lambda layer, site, _: AddSegments(layer.count, site.input[-1]),
    Positions: lambda layer, site, _: AddPositions(layer.length, site.input[-1]),
    ClassToken: lambda _, site, __: PutFirst(site.input[-1]),
    ToSequence: lambda *_: PositionsOfImage(),
    LayerNorm: lambda layer, site, _: nn.LayerNorm(
        site.input[-1], eps=layer.epsilon, bias=layer.bias
    ),
    RMSNorm: lambda layer, site, _: nn.RMSNorm(site.input[-1], eps=layer.epsilon),
    Attention: lambda layer, site, _: Mix(layer, site.input[0]),
    GELU: lambda layer, *_: nn.GELU(approximate="tanh" if layer.tanh else "none"),
    SiLU: lambda *_: nn.SiLU(),
    Select: lambda layer, *_: Pick(layer.position),
    Gather: lambda layer, *_: Take(layer.positions),
}
