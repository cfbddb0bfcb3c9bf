"""Slow one thing down in a copy of the payload: the account of the difference names it first.

The steps that are explained are the traced ones themselves, so that this machine's other work
between trials and traces decides nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import mkdtemp

import pytest

from harness.analysis.explain.explanation import Explanation, explain
from harness.analysis.explain.words import part_name
from harness.store.layout import RunPaths
from harness.store.record_readers.attribution import Attribution, read_attribution
from harness.verdicts.io_results import InputResult
from harness.verdicts.results import CellResult
from harness.worker import job as jobs
from harness.worker.scale import Scale
from tests import payloads
from tests.adapters.interpreter import ROOT, python
from tests.outcomes import record
from tests.reports.samples import cell

pytestmark = pytest.mark.framework

ADAPTERS = "harness/worker/adapters"
BATCH = 16
ALLOWED = 0.2
"""What the size that is told may miss of what was planted."""
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
        "jax/lowering/network.py",
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
PRODUCT["tensorflow@1.15"] = PRODUCT["tensorflow"]
PRODUCT["keras"] = (
    "keras/layers.py",
    "    return [kinds[len(spot.input) - 2]()]",
    "    return [Product(), kinds[len(spot.input) - 2]()]",
)
PRODUCT["tinygrad"] = (
    "tinygrad/lowering.py",
    "    GlobalAverage: lambda site, x, one: x.mean(tuple(range(2, x.ndim))),",
    (
        "    GlobalAverage: lambda site, x, one: x.mean(tuple(range(2, x.ndim)))\n"
        "    + 1e-30 * _product(x.detach().flatten()[:1000]),"
    ),
)
HELPERS = {
    "tinygrad": (
        "tinygrad/lowering.py",
        "LAYERS: Dict[type, Callable[[Any, Any, Pass], Any]] = {",
        (
            "def _product(x):\n"
            "    big = x.reshape(-1, 1) * x\n"
            "    return (big @ big).tanh().sum()\n\n\n"
            "LAYERS: Dict[type, Callable[[Any, Any, Pass], Any]] = {"
        ),
    ),
    "keras": (
        "keras/layers.py",
        "class Times(layers.Layer):",
        (
            "class Product(layers.Layer):\n"
            "    def call(self, x):\n"
            "        big = ops.reshape(ops.stop_gradient(x), (-1,))[:1000]\n"
            "        big = ops.outer(big, big)\n"
            "        return x + 1e-30 * ops.sum(ops.tanh(ops.matmul(big, big)))\n\n\n"
            "class Times(layers.Layer):"
        ),
    ),
    "jax": (
        "jax/lowering/network.py",
        "LAYERS: Dict[type, Callable[[Lowered, Any, Any, Pass], Any]] = {",
        (
            "def _product(x):\n"
            "    big = jnp.outer(x, x)\n"
            "    return jnp.sum(jnp.tanh(big @ big))\n\n\n"
            "LAYERS: Dict[type, Callable[[Lowered, Any, Any, Pass], Any]] = {"
        ),
    ),
}
UPDATES: dict[str, Edit] = {
    "torch": (
        "torch/training.py",
        "        self._clip_gradients()\n        self.scaler.step(self.optimiser)",
        (
            "        self._clip_gradients()\n        for _ in range(500):\n"
            "            self.scaler.step(self.optimiser)"
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
        "        if name in self._decayed and self._rule.weight_decay:\n",
        (
            "        for _ in range(100):\n"
            "            gradient = gradient + 1e-12 * tf.sin(gradient)\n"
            "        if name in self._decayed and self._rule.weight_decay:\n"
        ),
    ),
}
WIDE: dict[str, Edit] = {
    "torch": (
        "torch/training.py",
        "        with self.settings.autocast():\n            output, loss",
        "        with torch.autocast('cpu', enabled=False):\n            output, loss",
    ),
    "tensorflow": ("tensorflow/settings.py", '{"bf16": tf.bfloat16,', '{"bf16": tf.float32,'),
}
"""Computes in fp32 what is called bf16."""
SYNC = {
    "torch": ("torch/activity.py", '    def sync(self) -> None:\n        """Return at once'),
    "jax": ("jax/adapter.py", '    def sync(self) -> None:\n        """Wait for the last step'),
    "tensorflow": (
        "tensorflow/activity.py",
        '    def sync(self) -> None:\n        """Wait for the device; on',
    ),
}
"""Where an activity may be given another method."""
FETCH = "    def fetch(self):\n        import time\n        time.sleep(0.02)\n\n"
WAITS: dict[str, Edit] = {name: (*at, FETCH + at[1]) for name, at in SYNC.items()}
FETCHED = (
    "    def fetch(self):\n"
    "        self.has_waited = True\n\n"
    "    def sync(self):\n"
    "        if not self.__dict__.pop('has_waited', False):\n"
    "            raise RuntimeError('a step without a wait before it')\n"
    "        self.ended()\n\n"
)
ORDERED: dict[str, Edit] = {
    name: (*at, FETCHED + at[1].replace("def sync", "def ended")) for name, at in SYNC.items()
}
"""Refuses a step that comes before its input."""
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
PLANTED = (PRODUCT, HELPERS, UPDATES, WIDE, WAITS, ORDERED, SLEEPS)


def attributed(framework: str, *edits: Edit, precision: str = "fp32") -> Attribution:
    """Attribute a step of tinycnn with the payload as edited."""
    paths = worked(framework, *edits, precision=precision, purpose="attribute")
    found = read_attribution(paths, "k")
    assert isinstance(found, Attribution), found
    return found


def worked(
    framework: str, *edits: Edit, purpose: str, precision: str = "fp32", until: int = 1
) -> RunPaths:
    """Run a job with the payload as edited; its events are those of the attribution's folder."""
    adapter = framework.partition("@")[0]
    folder = Path(mkdtemp())
    payloads.lay_out(folder / "payload")
    for file, old, new in edits:
        source = folder / "payload" / ADAPTERS / file
        text = source.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file} has changed: {old}"
        source.write_text(text.replace(old, new), encoding="utf-8")
    paths = RunPaths(folder)
    trial = paths.attribution("k")
    record(trial)
    job = jobs.Job(
        purpose=purpose,
        cell_key="k",
        trial="attribution",
        workload="tinycnn",
        workload_module="workloads.tinycnn",
        framework=adapter,
        adapter_module=f"harness.worker.adapters.{adapter}.adapter",
        environment=framework,
        strategy="none",
        scale=Scale(batch_per_device=BATCH),
        factors={"device": "cpu", "precision": precision, "compile": False, "threads": 1},
        options={},
        warmup=jobs.Span(steps=5),
        until=jobs.Span(steps=until),
        seed=7,
        directory=str(trial.root),
    )
    trial.job.write_text(jobs.text(job), encoding="utf-8")
    done = subprocess.run(
        [python(framework), "-m", "harness.worker", trial.job],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "payload")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return paths


attributed_once = cache(attributed)


def explained(framework: str, *edits: Edit, precision: str = "fp32") -> Explanation:
    """Explain the edited step against the clean one; both took what their traced steps took."""
    found = {
        "planted": attributed_once(framework, *edits, precision=precision),
        "clean": attributed_once(framework, precision=precision),
    }
    steps_s = {key: median(one.step_s) for key, one in found.items()}
    alike = {key: replace(one, untraced_s=()) for key, one in found.items()}
    planted, clean = _cells(framework, precision, steps_s)
    return explain(planted, clean, alike, seed=1)


def _cells(framework: str, precision: str, steps_s: Mapping[str, float]) -> list[CellResult]:
    return [
        replace(cell("tinycnn", framework, precision, BATCH / step_s, None, noise=0.001), key=key)
        for key, step_s in steps_s.items()
    ]


@pytest.mark.parametrize(
    "edit",
    [edit for causes in PLANTED for edit in causes.values()],
    ids=lambda edit: str(edit[0]),
)
def test_each_cause_still_finds_what_it_is_planted_into(edit: Edit) -> None:
    """Most causes are tried in long tests only, which a change of an adapter rarely waits for."""
    file, old, _ = edit
    assert (ROOT / ADAPTERS / file).read_text(encoding="utf-8").count(old) == 1


@pytest.mark.parametrize(
    "framework",
    [
        pytest.param(one, marks=pytest.mark.long) if one == "tinygrad" else one  # compiled twice
        for one in PRODUCT
    ],
)
def test_a_product_more_in_one_layer_comes_first(framework: str) -> None:
    edits = [PRODUCT[framework], *filter(None, [HELPERS.get(framework)])]
    told = explained(framework, *edits)
    assert part_name(told.terms[0]) == "pool2, forward", told.refusal
    first = told.terms[0]
    # On a busy machine the clean step may be the longer one as a whole: hence by name.
    spent = {told.first.key: first.first_s, told.second.key: first.second_s}
    assert spent["planted"] - spent["clean"] > 0.6 * told.difference_s


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


@pytest.mark.long
@pytest.mark.parametrize("framework", WIDE)
def test_fp32_under_the_name_of_bf16_is_told_by_the_types_of_what_differs(framework: str) -> None:
    """Which of them is the quicker one depends on the machine; what differs is what multiplies."""
    told = explained(framework, WIDE[framework], precision="bf16")
    assert not told.refusal, told.refusal
    first = told.terms[0]
    types = [
        {one.type for one in operations if one.type}
        for operations in (first.first_operations, first.second_operations)
    ]
    planted, as_named = types if told.first.key == "planted" else reversed(types)
    assert not any("bfloat16" in one.lower() for one in planted)
    assert any("bfloat16" in one.lower() for one in as_named)


@pytest.mark.parametrize("framework", ORDERED)
def test_each_traced_step_waits_for_its_input_as_the_timed_loop_does(framework: str) -> None:
    assert attributed(framework, ORDERED[framework]).step_s


@pytest.mark.long
@pytest.mark.parametrize("framework", WAITS)
def test_a_wait_for_input_comes_first(framework: str) -> None:
    """Here steps are those of the timed loop, which tells what of them was waiting."""
    found = dict.fromkeys(("planted", "clean"), attributed_once(framework, precision="fp32"))
    waits = {"planted": timed(framework, WAITS[framework]), "clean": timed(framework)}
    cells = [
        replace(
            one,
            trials=tuple(
                replace(trial, input=InputResult("warm", wait_share=waits[one.key][1]))
                for trial in one.trials
            ),
        )
        for one in _cells(framework, "fp32", {key: step_s for key, (step_s, _) in waits.items()})
    ]
    beside = {key: _as_long_as(one, *waits[key]) for key, one in found.items()}
    planted, clean = cells
    told = explain(planted, clean, beside, seed=1)
    assert not told.refusal, told.refusal
    assert told.first.key == "planted"
    assert part_name(told.terms[0]) == "input"
    assert told.terms[0].difference_s == pytest.approx(0.02, rel=ALLOWED)


def _as_long_as(traced: Attribution, step_s: float, waited: float) -> Attribution:
    """Give traced steps as if this machine had been as busy as while steps were timed."""
    factor = step_s * (1 - waited) / median(traced.step_s)
    return replace(traced, step_s=tuple(one * factor for one in traced.step_s), untraced_s=())


def timed(framework: str, *edits: Edit) -> tuple[float, float]:
    """Time some steps as a trial does: the seconds of one, and the share of it that was waiting."""
    trial = worked(framework, *edits, purpose="trial", until=40).attribution("k")
    events = map(json.loads, trial.events(0).read_text(encoding="utf-8").splitlines())
    windows = [one for one in events if one["event"] == "window" and one["phase"] == "measure"]
    each = sorted(
        ((one["end"] - one["start"]) / one["steps"], one.get("waited", 0) / one["steps"])
        for one in windows
    )
    whole, waited = each[0]  # the one that other work on this machine disturbed least
    return whole / 1e9, waited / whole
