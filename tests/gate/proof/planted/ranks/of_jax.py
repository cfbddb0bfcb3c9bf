"""Faults planted in how JAX's ranks train together."""

from __future__ import annotations

from tests.gate.proof.planted.fault import Fault, known
from tests.gate.proof.planted.on_jax import FOLDER as FOLDER
from tests.gate.proof.planted.on_jax import SLOPES

ALONE = ("self._communicates = communicates", "self._communicates = False")
VELOCITY = "velocity = rule.momentum * old[0] + slope"
LOADED = "new = loaded(self._net, self._workload, self.trained, state)"
NORM = "def _norm(net: Lowered, site: Any, x: Any, one: Pass) -> Any:\n"
OWN_PARTS = f"""{NORM}    if x.shape[0] == 16:
        parts = [_norm(net, site, part, one) for part in jnp.split(x, 2)]
        return jnp.concatenate(parts)
"""


def sampled(how: str) -> tuple[str, tuple[str, str]]:
    """Train on other samples than were given."""
    return "training.py", (SLOPES, SLOPES.replace("given,", f"{how},"))


FP16 = VELOCITY.replace("slope", "jax.lax.reduce_precision(slope, 5, 10)")
FAULTS: dict[str, Fault] = {
    "gradients exchanged in fp16": (
        *("tinycnn", "training.py"),
        (VELOCITY, FP16),
        "the gradient of .* is wrong",
    ),
    **known(
        {
            "gradients that are not exchanged": ("strategies.py", ALONE),
            "gradients that are not exchanged where it drops": ("strategies.py", ALONE),
            "gradients that are added up, not averaged": (
                "training.py",
                (VELOCITY, VELOCITY.replace("+ slope", "+ 2 * slope")),
            ),
            "gradients exchanged in bf16": (
                "training.py",
                (VELOCITY, VELOCITY.replace("slope", "jax.lax.reduce_precision(slope, 8, 7)")),
            ),
            "a rank that starts from other weights": (
                "adapter.py",
                (LOADED, f"{LOADED} if self._jax.process_index() == 0 else self.trained"),
            ),
            "ranks that are fed the same samples": sampled(
                "Given(*(jnp.concatenate([one[:8]] * 2) for one in given))"
            ),
            "batch norms of each rank's own part": ("lowering/network.py", (NORM, OWN_PARTS)),
        }
    ),
}
