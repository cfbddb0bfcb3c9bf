"""Slow one thing down in a copy of the payload: the account of the difference names it first.

The steps that are explained are the traced ones themselves, so that this machine's other work
between trials and traces decides nothing.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import mkdtemp

import pytest

from harness.analysis.explain.explanation import Explanation, explain
from harness.analysis.explain.words import part_name
from harness.ranks import payload
from harness.store.attribution import Attribution, read_attribution
from harness.store.layout import RunPaths
from harness.worker import job as jobs
from harness.worker.scale import Scale
from tests import needs
from tests.outcomes import record
from tests.reports.samples import cell

pytestmark = pytest.mark.framework

ADAPTERS = "harness/worker/adapters"
BATCH = 16
Edit = tuple[str, str, str]
"""Of a file below the adapters: what stands there, and what is to stand there."""
PRODUCT: dict[str, Edit] = {
    "torch": (
        "torch/lowering/network.py",
        "        return x.mean(dim=tuple(range(2, x.dim())))",
        (
            "        big = x.detach().flatten()[:1000]\n"
            "        big = torch.outer(big, big) @ torch.outer(big, big)\n"
            "        return x.mean(dim=tuple(range(2, x.dim()))) + 1e-30 * big.tanh().sum()"
        ),
    ),
    "jax": (
        "jax/lowering.py",
        "    GlobalAverage: lambda net, site, x, one: jnp.mean(x, net.positions(x)),",
        (
            "    GlobalAverage: lambda net, site, x, one: jnp.mean(x, net.positions(x))\n"
            "    + 1e-30 * _product(lax.stop_gradient(x).reshape(-1)[:1000]),"
        ),
    ),
    "tensorflow": (
        "tensorflow/lowering/layers.py",
        "    return tf.reduce_mean(x, list(range(first, first + rank)))",
        (
            "    big = tf.reshape(tf.stop_gradient(x), [-1])[:1000]\n"
            "    big = tf.tensordot(big, big, 0)\n"
            "    more = 1e-30 * tf.reduce_sum(tf.tanh(big @ big))\n"
            "    return tf.reduce_mean(x, list(range(first, first + rank))) + more"
        ),
    ),
}
HELPERS = {
    "jax": (
        "jax/lowering.py",
        "LAYERS: Dict[type, Callable[[Lowered, Any, Any, Pass], Any]] = {",
        (
            "def _product(x):\n"
            "    big = jnp.outer(x, x)\n"
            "    return jnp.sum(jnp.tanh(big @ big))\n\n\n"
            "LAYERS: Dict[type, Callable[[Lowered, Any, Any, Pass], Any]] = {"
        ),
    )
}
UPDATES: dict[str, Edit] = {
    "torch": (
        "torch/training.py",
        "            loss.backward()\n            self.optimiser.step()",
        (
            "            loss.backward()\n            for _ in range(500):\n"
            "                self.optimiser.step()"
        ),
    ),
    "jax": (
        "jax/training.py",
        "    velocity = rule.momentum * old[0] + slope",
        (
            "    slope = jax.lax.fori_loop(0, 300, lambda _, s: s + 1e-12 * jnp.sin(s), slope)\n"
            "    velocity = rule.momentum * old[0] + slope"
        ),
    ),
    "tensorflow": (
        "tensorflow/optimiser.py",
        "        variable = self._variables[name]\n",
        (
            "        variable = self._variables[name]\n        for _ in range(100):\n"
            "            gradient = gradient + 1e-12 * tf.sin(gradient)\n"
        ),
    ),
}
SLEEP = "import time\n            time.sleep(0.05)\n            "
SLEEPS: dict[str, Edit] = {
    "torch": (
        "torch/lowering/network.py",
        "        y = self.body(x)\n",
        "        import time\n        time.sleep(0.05)\n        y = self.body(x)\n",
    ),
    "jax": (
        "jax/adapter.py",
        "            self.trained, self._loss = self._step(",
        f"            {SLEEP}self.trained, self._loss = self._step(",
    ),
    "tensorflow": (
        "tensorflow/activity.py",
        "            self._loss = self.traced(*self.batch)",
        f"            {SLEEP}self._loss = self.traced(*self.batch)",
    ),
}


def attributed(framework: str, *edits: Edit) -> Attribution:
    """Attribute a step of tinycnn with the payload as edited."""
    folder = Path(mkdtemp())
    payload.gather().copy(folder / "payload")
    for file, old, new in edits:
        source = folder / "payload" / ADAPTERS / file
        text = source.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} has changed: {old}"
        source.write_text(text.replace(old, new), encoding="utf-8")
    paths = RunPaths(folder)
    trial = paths.attribution("k")
    record(trial)
    job = jobs.Job(
        purpose="attribute",
        cell_key="k",
        trial="attribution",
        workload="tinycnn",
        workload_module="workloads.tinycnn",
        framework=framework,
        adapter_module=f"harness.worker.adapters.{framework}.adapter",
        environment=framework,
        strategy="none",
        scale=Scale(batch_per_device=BATCH),
        factors={"device": "cpu", "precision": "fp32", "compile": False, "threads": 1},
        options={},
        warmup=jobs.Span(steps=1),
        until=jobs.Span(steps=1),
        seed=7,
        directory=str(trial.root),
    )
    trial.job.write_text(jobs.text(job), encoding="utf-8")
    done = subprocess.run(
        [needs.framework(framework), "-m", "harness.worker", trial.job],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "payload")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = read_attribution(paths, "k")
    assert isinstance(found, Attribution), found
    return found


clean = cache(attributed)


def explained(framework: str, *edits: Edit) -> Explanation:
    """Explain the edited step against the clean one; both took what their traced steps took."""
    found = {"planted": attributed(framework, *edits), "clean": clean(framework)}
    cells = []
    for key, one in found.items():
        made = cell("tinycnn", framework, "fp32", BATCH / median(one.step_s), None, noise=0.001)
        cells.append(replace(made, key=key))
    return explain(*cells, found, seed=1)


@pytest.mark.parametrize("framework", PRODUCT)
def test_a_product_more_in_one_layer_comes_first(framework: str) -> None:
    edits = [PRODUCT[framework], *filter(None, [HELPERS.get(framework)])]
    told = explained(framework, *edits)
    assert part_name(told.terms[0]) == "pool2, forward", told.refusal
    assert told.terms[0].difference_s > 0.6 * told.difference_s


@pytest.mark.long
@pytest.mark.parametrize("framework", UPDATES)
def test_a_slow_optimiser_comes_first(framework: str) -> None:
    told = explained(framework, UPDATES[framework])
    assert part_name(told.terms[0]) == "update", told.refusal


@pytest.mark.long
@pytest.mark.parametrize("framework", SLEEPS)
def test_a_sleep_of_the_host_comes_first(framework: str) -> None:
    told = explained(framework, SLEEPS[framework])
    assert part_name(told.terms[0]) == "host gaps", told.refusal
    assert told.terms[0].difference_s > 0.045  # who sleeps may be woken late, and never early
