"""Count what torch multiplies while it steps, operator by operator, compiled or not."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from harness.worker.facts.multiplications import Tally, Uncounted

MULTIPLYING = re.compile("conv|linear|mm|matmul|gemm|attention", re.IGNORECASE)
ATTENTION = re.compile("_scaled_dot_product_.*attention")
CONVERTING = re.compile("convert", re.IGNORECASE)


class Products(TorchDispatchMode):
    """Adds up what convolutions and products multiply while it is entered.

    Inductor leaves them to torch's own operators, which pass here as they do without it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found = Tally()

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Say that what is compiled runs as ever: under other modes Dynamo goes back to eager."""
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator, and count it."""
        given = kwargs or {}
        result = func(*args, **given)
        name = str(func)
        count = flop_registry.get(func.overloadpacket)
        if ATTENTION.search(name):
            macs = _attention(args, is_backward="backward" in name)
            self.found.add(_form(name, args), macs)
        elif name.startswith("aten.convolution_backward"):
            self.found.add(_form(name, args), _of_gradients(args))
        elif count is not None:
            macs = int(count(*args, **given, out_val=result)) // 2
            self.found.add(_form(name, args), macs)
        elif MULTIPLYING.search(name) and not CONVERTING.search(name):
            raise Uncounted("nothing says what torch's '{}' multiplies".format(name))
        return result


def _form(name: str, args: Any) -> Any:
    """Tell products of one operator and of the same sizes from others."""
    return (name, *(tuple(one.shape) for one in args if isinstance(one, torch.Tensor)))


def _of_gradients(args: Any) -> int:
    """Count a convolution's gradients: each multiplies as often as the convolution itself.

    torch's own count takes that of grouped weights for one over all channels.
    """
    towards, given, weight = args[:3]
    is_transposed, (of_input, of_weight, _) = args[7], args[10]
    through = (given if is_transposed else towards).numel()
    return int(through * weight[0].numel() * (int(of_input) + int(of_weight)))


def _attention(args: Any, *, is_backward: bool) -> int:
    """Count a fused attention as it is stated: two products, and four for its gradients.

    That it computes the scores anew on the way back, or skips what is masked, is its algorithm's.
    """
    query, key, value = args[1:4] if is_backward else args[:3]
    pairs = query.shape[0] * query.shape[1] * query.shape[2] * key.shape[2]
    products = int(pairs * (query.shape[3] + value.shape[3]))
    return 2 * products if is_backward else products
