"""Open a framework's own adapter, and add products of matrices to each of its steps.

The product is of the size that a convolution of ``tinycnn`` has over a quarter of a picture:
144 x 144 by 144 x 64. Each product takes what the one before gave, so that none can be left out or
run beside another, and the first begins when the network's own step is over: an asynchronous
framework would hide them behind it. A cell to which nothing is added waits there just as well.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

PREFIX = "planted-"
_SIZE, _COLUMNS = 144, 64


def open(job: Any, place: Any) -> Planted:  # noqa: A001 - the contract's name
    """Open the framework's adapter."""
    framework = job.framework.partition("@")[0]
    name = framework[len(PREFIX) :] if framework.startswith(PREFIX) else framework
    module = importlib.import_module(f"harness.worker.adapters.{name}.adapter")
    inner = module.open(replace(job, framework=name, options={}), place)
    return Planted(inner, name, int(job.options["products"]))


class Planted:
    """The adapter, whose activities do more."""

    def __init__(self, inner: Any, framework: str, products: int) -> None:
        self._inner = inner
        self._framework = framework
        self._products = products

    def versions(self) -> Mapping[str, str]:
        """Give the framework's."""
        versions: Mapping[str, str] = self._inner.versions()
        return versions

    def activity(self, workload: Any, feed: Any, options: Mapping[str, Any]) -> PlantedActivity:
        """Train, and multiply."""
        del options  # they are ours
        inner = self._inner.activity(workload, feed, {})
        return PlantedActivity(inner, PRODUCTS[self._framework](), self._products)

    def facts(self) -> Mapping[str, Any]:
        """Give the framework's."""
        facts: Mapping[str, Any] = self._inner.facts()
        return facts

    def close(self) -> None:
        """Close the framework's."""
        self._inner.close()


class PlantedActivity:
    """The framework's training with products after each step."""

    def __init__(self, inner: Any, multiply: Callable[[int], None], products: int) -> None:
        self._inner = inner
        self._multiply = multiply
        self.products = products
        self.units: Mapping[str, float] = inner.units

    def step(self) -> None:
        """Train a step to its end, then multiply."""
        self._inner.step()
        self._inner.sync()
        self._multiply(self.products)

    def sync(self) -> None:
        """Wait for nothing more: each step ends with its work done."""
        self._inner.sync()

    def values(self) -> Mapping[str, float]:
        """Give the loss."""
        values: Mapping[str, float] = self._inner.values()
        return values

    def agree(self, value: float) -> float:
        """Give the largest value that any rank offers."""
        agreed: float = self._inner.agree(value)
        return agreed


def _torch() -> Callable[[int], None]:
    import torch

    matrix, columns = torch.eye(_SIZE), torch.ones(_SIZE, _COLUMNS)

    def multiply(times: int) -> None:
        value = columns
        for _ in range(times):
            value = torch.mm(matrix, value)

    return multiply


def _jax() -> Callable[[int], None]:
    import jax

    matrix, columns = jax.numpy.eye(_SIZE), jax.numpy.ones((_SIZE, _COLUMNS))
    product = jax.jit(jax.numpy.matmul)

    def multiply(times: int) -> None:
        value = columns
        for _ in range(times):
            value = product(matrix, value)
        jax.block_until_ready(value)

    return multiply


def _tensorflow() -> Callable[[int], None]:
    import tensorflow

    matrix = tensorflow.eye(_SIZE)
    columns = tensorflow.ones((_SIZE, _COLUMNS))

    def multiply(times: int) -> None:
        value = columns
        for _ in range(times):
            value = tensorflow.linalg.matmul(matrix, value)

    return multiply


PRODUCTS = {"torch": _torch, "jax": _jax, "tensorflow": _tensorflow}
