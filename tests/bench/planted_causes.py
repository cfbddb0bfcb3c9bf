"""Plant causes into real runs, and hold what `bakeoff explain` says of them to what was planted.

    python -m tests.bench.planted_causes DIRECTORY [FRAMEWORK/CAUSE …] [--runs 5]

Each run times two cells by turns, whole as `bakeoff run` does it: gate, proofs, blocks, then the
jobs that trace steps. One has the code that is installed, the other a copy in which one thing is
slow. Every plant trains the same network: what changes training the gate and the proofs refuse, and
what multiplies more is refused for its multiplications. `FRAMEWORK/nothing` is the same cell twice.

Named first: the planted part is the largest one of the account, and told from noise. Its size is
held to the sleep that was planted, and where something computes more, to the whole difference of
the timed steps, which no trace decides. A run that was cut off goes on; one that is finished is
read, once its disturbed steps were traced again.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from harness.analysis.explain.cells import explained
from harness.analysis.explain.explanation import Explanation
from harness.analysis.explain.words import part_name
from harness.analysis.read import read_results
from harness.gate.gate import ensure
from harness.plan.plan import Plan, make_plan
from harness.plan.two_sides import Side, two_sided
from harness.platform.platform import load_platform
from harness.ranks.payload import Payload, gather
from harness.run import session
from harness.run.progress import Progress, SessionResult
from harness.run.setup import survey
from harness.run.trust import Trust
from harness.store.outcome import Outcome
from harness.study.study import load_study
from harness.verdicts.ended_trial import doubt
from tests.adapters.test_planted_causes import ADAPTERS, ALLOWED, SLEEPS, UPDATES, Edit

RUNS = 5
FRAMEWORKS = ("torch", "jax", "tensorflow")
NOTHING = "nothing"
OWN_CODE = "payload.2"
STUDY = """title = "Planted causes"
[matrix]
workload = "tinycnn"
framework = "{framework}"
batch = 16
threads = 1
[measure]
trials = 6
warmup = "3 steps"
until = "2 s"
tolerate = ["contended", "throttled", "stalled"]
"""


@dataclass(frozen=True)
class Cause:
    """One thing that is slow: where it is planted in each framework, and how it is to be told."""

    part: str
    """As an account calls it."""
    edits: dict[str, tuple[Edit, ...]]
    seconds: float | None = None
    """What each step takes longer; None: as much as it does."""


POOL = {
    "torch": ("torch/lowering/network.py", "        return x.mean(dim=tuple(range(2, x.dim())))"),
    "jax": (
        "jax/lowering/network.py",
        "    GlobalAverage: lambda net, site, x, one: jnp.mean(x, net.positions(x)),",
    ),
    "tensorflow": (
        "tensorflow/lowering/layers.py",
        "    return tf.reduce_mean(x, list(range(first, first + rank)))",
    ),
}
"""The layer into which work and copies are planted: `pool2`, a mean."""
JAX_LAYERS = "LAYERS: Dict[type, Callable[[Lowered, Any, Any, Pass], Any]] = {"
WORK = {
    "torch": (
        "        big = x.detach().flatten()[:1000]\n"
        "        big = torch.outer(big, big)\n"
        "        for _ in range(4):\n"
        "            big = torch.tanh(big)\n"
        "        return x.mean(dim=tuple(range(2, x.dim()))) + 1e-30 * big.sum()"
    ),
    "jax": (
        "    GlobalAverage: lambda net, site, x, one: jnp.mean(x, net.positions(x))\n"
        "    + 1e-30 * _work(lax.stop_gradient(x).reshape(-1)[:1000]),"
    ),
    "tensorflow": (
        "    big = tf.reshape(tf.stop_gradient(x), [-1])[:1000]\n"
        "    big = big[:, None] * big[None, :]\n"
        "    for _ in range(4):\n"
        "        big = tf.tanh(big)\n"
        "    more = 1e-30 * tf.reduce_sum(big)\n"
        "    return tf.reduce_mean(x, list(range(first, first + rank))) + more"
    ),
}
COPIES = {
    "torch": (
        "        for _ in range(100):\n"
        "            x = x.contiguous(memory_format=torch.channels_last).contiguous()\n"
        "        return x.mean(dim=tuple(range(2, x.dim())))"
    ),
    "jax": ("    GlobalAverage: lambda net, site, x, one: jnp.mean(_copied(x), net.positions(x)),"),
    "tensorflow": (
        "    for _ in range(100):\n"
        "        x = tf.transpose(x, [1, 2, 3, 0])\n"
        "    return tf.reduce_mean(x, list(range(first, first + rank)))"
    ),
}
JAX_WORK = (
    "def _work(x):\n"
    "    return jnp.sum(lax.fori_loop(0, 4, lambda _, big: jnp.tanh(big), jnp.outer(x, x)))\n\n\n"
)
JAX_COPIED = (
    "def _copied(x):\n"
    "    for _ in range(100):\n"
    "        x = lax.optimization_barrier(jnp.transpose(x, (1, 2, 3, 0)))\n"
    "    return x\n\n\n"
)
SHADOW: Edit = (
    "torch/training.py",
    "        self._clip_gradients()\n        self.scaler.step(self.optimiser)",
    (
        "        self._clip_gradients()\n"
        "        if not hasattr(self, 'shadow'):\n"
        "            like = [torch.nn.Parameter(one.detach().clone())\n"
        "                    for one in self.network.parameters()]\n"
        "            for one in like:\n"
        "                one.grad = torch.zeros_like(one)\n"
        "            self.shadow = torch.optim.SGD(like, lr=0.1, momentum=0.9)\n"
        "        for _ in range(50):\n"
        "            self.shadow.step()\n"
        "        self.scaler.step(self.optimiser)"
    ),
)
"""An optimiser that works on copies: a slow one, which trains the same."""
FETCH = "    def fetch(self):\n        import time\n        time.sleep(0.02)\n\n"
SYNC = {
    "torch": ("torch/activity.py", '    def sync(self) -> None:\n        """Return at once'),
    "jax": ("jax/adapter.py", '    def sync(self) -> None:\n        """Wait for the last step'),
    "tensorflow": (
        "tensorflow/activity.py",
        '    def sync(self) -> None:\n        """Wait for the device; on',
    ),
}
OF_JAX: dict[str, Edit] = {
    "work": ("jax/lowering/network.py", JAX_LAYERS, JAX_WORK + JAX_LAYERS),
    "copies": ("jax/lowering/network.py", JAX_LAYERS, JAX_COPIED + JAX_LAYERS),
}


def _in_pool(kind: str, texts: dict[str, str]) -> dict[str, tuple[Edit, ...]]:
    found = {}
    for framework, text in texts.items():
        more = (OF_JAX[kind],) if framework == "jax" else ()
        found[framework] = ((*POOL[framework], text), *more)
    return found


CAUSES = {
    "work": Cause("pool2, forward", _in_pool("work", WORK)),
    "copies": Cause("layout copy", _in_pool("copies", COPIES)),
    "optimiser": Cause(
        "update",
        {
            "torch": (SHADOW,),
            "jax": (UPDATES["jax"],),
            "tensorflow": (UPDATES["tensorflow"],),
        },
    ),
    "input": Cause(
        "input", {name: ((*at, FETCH + at[1]),) for name, at in SYNC.items()}, seconds=0.02
    ),
    "sleep": Cause("host gaps", {name: (SLEEPS[name],) for name in FRAMEWORKS}, seconds=0.05),
    NOTHING: Cause("", dict.fromkeys(FRAMEWORKS, ())),
}


class Quiet:
    """Say only what is out of the ordinary."""

    def progressed(self, progress: Progress) -> None:
        """Draw nothing."""

    def trial_ended(self, progress: Progress, outcome: Outcome) -> None:
        """Name a trial that failed."""
        if not outcome.is_ok:
            print(f"    {progress.trial}: {outcome.ended}: {outcome.reason}", flush=True)

    def doing(self, text: str) -> None:
        """Draw nothing."""

    def noted(self, text: str) -> None:
        """Draw nothing."""


def planted(folder: Path, edits: tuple[Edit, ...]) -> Payload:
    """Give the payload with one thing made slow in it; the files that differ lie in a folder."""
    payload = gather()
    files = dict(payload.files)
    for place, old, new in edits:
        inside = f"{ADAPTERS}/{place}"
        source = files[inside]
        assert source is not None
        text = source.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{place} has changed: {old}"
        files[inside] = folder / inside
        (folder / inside).parent.mkdir(parents=True, exist_ok=True)
        (folder / inside).write_text(text.replace(old, new), encoding="utf-8")
    return replace(payload, files=files)


def measure(run: Path, framework: str, cause: Cause) -> SessionResult:
    """Measure both cells, or go on where an earlier session was cut off."""
    if (run / "run.json").exists():
        return session.resume(
            run, observer=Quiet(), rejects=doubt, ensure=ensure, trust=Trust(payload=True)
        )
    file = run.parent / f"{run.name}.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(STUDY.format(framework=framework), encoding="utf-8")
    plan, own = _two_sided(file, cause)
    return session.start(
        plan,
        root=run,
        study_text=file.read_text(encoding="utf-8"),
        observer=Quiet(),
        rejects=doubt,
        ensure=ensure,
        basis=survey(plan, own),
        is_trusted=True,
    )


def _two_sided(file: Path, cause: Cause) -> tuple[Plan, dict[str, Payload]]:
    plan = make_plan(load_study(file), load_platform())
    edits = cause.edits[file.parent.name]
    folder = OWN_CODE if edits else None
    sides = Side("installed", plan, None), Side("planted", plan, folder)
    return two_sided(file.stem, *sides), (
        {OWN_CODE: planted(file.with_suffix(".code"), edits)} if edits else {}
    )


def account(run: Path) -> Explanation:
    """Explain the difference between a run's two cells."""
    results = read_results([run])
    clean, slow = sorted(results.cells, key=lambda one: one.label)
    return explained(results, clean, slow)


def verdict(told: Explanation, cause: Cause) -> tuple[bool, float | None, str]:
    """Say whether the cause was named first, by how much its size missed, and what was said."""
    if told.refusal:
        return not cause.part and not told.is_refused, None, told.refusal
    first = told.terms[0]
    wanted = cause.seconds or told.difference_s
    named = next((one for one in told.terms if part_name(one) == cause.part), first)
    miss = named.difference_s / wanted - 1
    said = (
        f"{part_name(first)} first, {1e3 * named.difference_s:.2f} ms told, "
        f"{1e3 * wanted:.2f} planted; the steps differ by {1e3 * told.difference_s:.2f}"
    )
    is_named = part_name(first) == cause.part and told.first.label.endswith("B")
    if not first.is_told:
        said += "; not told from noise"
    return is_named and first.is_told, miss, said


def asked(pairs: list[str]) -> Iterator[tuple[str, str]]:
    """Give framework and cause of what is to be planted; everything where nothing is named."""
    for one in pairs or [f"{f}/{c}" for f, c in itertools.product(FRAMEWORKS, CAUSES)]:
        framework, _, cause = one.partition("/")
        if framework not in FRAMEWORKS or cause not in CAUSES:
            raise SystemExit(f"{one}: known are {', '.join(FRAMEWORKS)} and {', '.join(CAUSES)}")
        yield framework, cause


def main() -> None:
    """Measure what is missing, and print what was told of each run, and one line a cause."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("pairs", nargs="*", metavar="FRAMEWORK/CAUSE")
    parser.add_argument("--runs", type=int, default=RUNS)
    given = parser.parse_args()
    lines = []
    for framework, name in asked(given.pairs):
        cause, answers = CAUSES[name], []
        for number in range(1, given.runs + 1):
            run = given.directory.resolve() / framework / f"{name}-{number}"
            if measure(run, framework, cause).interrupted:
                raise SystemExit(f"{run}: cut off; the same command goes on")
            answers.append(verdict(account(run), cause))
            print(f"{framework}/{name} {number}: {answers[-1][2]}", flush=True)
        right = sum(is_right for is_right, _, _ in answers)
        near = sum(miss is not None and abs(miss) <= ALLOWED for _, miss, _ in answers)
        what = "nothing explained" if not cause.part else f"{cause.part} first"
        size = f", its size within {ALLOWED:.0%} in {near}" if cause.part else ""
        lines.append(f"{framework}/{name}: {what} in {right} of {len(answers)}{size}")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
