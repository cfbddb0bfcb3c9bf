"""What is planted in each framework, and as what it is to be told."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.adapters.test_planted_causes import SLEEPS, UPDATES, WAITS, WIDE, Edit

FRAMEWORKS = ("torch", "jax", "tensorflow")
NOTHING = "nothing"


@dataclass(frozen=True)
class Cause:
    """One thing that is slow: where it is planted in each framework, and how it is to be told."""

    part: str
    """As an account calls it."""
    edits: dict[str, tuple[Edit, ...]]
    seconds: float | None = None
    """What each step takes longer; None: as much as it does."""
    with_it: str = ""
    """Another part that belongs to it."""
    precision: str = "fp32"
    refused_as: str = ""
    """What is said of a cell that is not what it is called: then nothing else is explained."""
    said_first: str = ""
    """What is said of a cell that did not do what was asked, before any part of its step."""
    threads: int = 1
    strategies: dict[str, str] = field(default_factory=dict)
    """In which two ranks train, by framework; none where one trains alone."""


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
"""The layer into which work and copies are planted: `pool2`, a mean.

What is planted is large beside the calls that ask for it, so that it is what it is called: two
hundred copies of a small tensor are two hundred calls of the host first.
"""
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
        "    for _ in range(30):\n"
        "        big = tf.tanh(big)\n"
        "    more = 1e-30 * tf.reduce_sum(big)\n"
        "    return tf.reduce_mean(x, list(range(first, first + rank))) + more"
    ),
}
COPIES = {
    "torch": (
        "        big = x.detach().flatten()[:1000]\n"
        "        big = torch.outer(big, big).reshape(1, 100, 100, 100)\n"
        "        for _ in range(10):\n"
        "            big = big.contiguous(memory_format=torch.channels_last).contiguous()\n"
        "        return x.mean(dim=tuple(range(2, x.dim()))) + 1e-30 * big.sum()"
    ),
    "jax": (
        "    GlobalAverage: lambda net, site, x, one: jnp.mean(x, net.positions(x))\n"
        "    + 1e-30 * _copied(lax.stop_gradient(x).reshape(-1)[:1000]),"
    ),
    "tensorflow": (
        "    big = tf.reshape(tf.stop_gradient(x), [-1])[:1000]\n"
        "    big = tf.reshape(big[:, None] * big[None, :], [100, 100, 100])\n"
        "    for _ in range(48):\n"
        "        big = tf.transpose(big, [1, 2, 0])\n"
        "    more = 1e-30 * tf.reduce_sum(big)\n"
        "    return tf.reduce_mean(x, list(range(first, first + rank))) + more"
    ),
}
JAX_WORK = (
    "def _work(x):\n"
    "    return jnp.sum(lax.fori_loop(0, 4, lambda _, big: jnp.tanh(big), jnp.outer(x, x)))\n\n\n"
)
JAX_COPIED = (
    "def _copied(x):\n"
    "    # Anywhere but in a loop XLA turns what the layout is called, and no tensor.\n"
    "    return jnp.sum(lax.fori_loop(0, 8, lambda _, big: big.T, jnp.outer(x, x)))\n\n\n"
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
SLOPES: dict[str, Edit] = {
    "jax": (
        *UPDATES["jax"][:2],
        (
            "    many = jnp.arange(100000.0) + slope.ravel()[0]\n"
            "    slope = slope + 1e-30 * jnp.sum(jnp.sin(many))\n"
            "    velocity = rule.momentum * old[0] + slope"
        ),
    ),
    "tensorflow": (
        *UPDATES["tensorflow"][:2],
        (
            "        many = tf.cast(tf.range(200000), gradient.dtype)\n"
            "        many += tf.reshape(gradient, [-1])[:1]\n"
            "        gradient = gradient + 1e-30 * tf.reduce_sum(tf.sin(many))\n"
            "        if name in self._decayed and self._rule.weight_decay:\n"
        ),
    ),
}
"""Slow in a few operations: thousands of small ones would be slower still while they are traced."""
ONE_THREAD: dict[str, Edit] = {
    "torch": (
        "torch/settings.py",
        "    torch.set_num_threads(threads(factors))",
        "    torch.set_num_threads(1)",
    ),
    "jax": (
        "jax/settings.py",
        "        os.environ[name] = str(threads(factors))",
        '        os.environ[name] = "1"',
    ),
    "tensorflow": (
        "tensorflow/settings.py",
        "    share = threads(factors)\n",
        "    share = 1\n",
    ),
}
MESSAGES: dict[str, Edit] = {
    "torch": (
        "torch/strategies/ddp.py",
        (
            "        return DistributedDataParallel(\n"
            "            forward, device_ids=devices, gradient_as_bucket_view=True, "
            "**self._bucket\n"
            "        )"
        ),
        (
            "        made = DistributedDataParallel(\n"
            "            forward, device_ids=devices, gradient_as_bucket_view=True, "
            "**self._bucket\n"
            "        )\n"
            "        more = torch.zeros(3000000)\n"
            "        made.register_forward_pre_hook(lambda *_: distributed.all_reduce(more))\n"
            "        return made"
        ),
    ),
    "jax": (
        "jax/strategies.py",
        "        whole = (self._whole, self._whole)\n",
        (
            "        plain, numpy = step, self._jax.numpy\n\n"
            "        def step(state: Any, batch: Any) -> Any:\n"
            "            made, loss = plain(state, batch)\n"
            "            rows = self._jax.tree.leaves(batch)[0]\n"
            "            own = rows.reshape(self._size, -1)[:, :1].astype(numpy.float32)\n"
            "            more = numpy.maximum(own * loss, numpy.arange(1500000.0)).sum(0)\n"
            "            return made, loss + 1e-30 * numpy.abs(more).sum()\n\n"
            "        whole = (self._whole, self._whole)\n"
        ),
    ),
}
"""Messages beside the gradients, which change nothing."""
OF_HOROVOD: Edit = (
    "torch/strategies/hvd.py",
    (
        "        return self._horovod.DistributedOptimizer(\n"
        "            optimiser, named_parameters=network.named_parameters()\n"
        "        )"
    ),
    (
        "        made = self._horovod.DistributedOptimizer(\n"
        "            optimiser, named_parameters=network.named_parameters()\n"
        "        )\n"
        "        more, plain = torch.zeros(3000000), made.synchronize\n\n"
        "        def synchronize() -> None:\n"
        "            self._horovod.allreduce_(more, name='more')\n"
        "            plain()\n\n"
        "        made.synchronize = synchronize\n"
        "        return made"
    ),
)
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
    # XLA copies what a loop carries from one round to the next, as it lies.
    "copies": Cause("layout copy", _in_pool("copies", COPIES), with_it="plain copy"),
    "optimiser": Cause(
        "update",
        {
            "torch": (SHADOW,),
            **{name: (edit,) for name, edit in SLOPES.items()},
        },
    ),
    "input": Cause("input", {name: (edit,) for name, edit in WAITS.items()}, seconds=0.02),
    "sleep": Cause("host gaps", {name: (SLEEPS[name],) for name in FRAMEWORKS}, seconds=0.05),
    "label": Cause(
        "",
        {name: (edit,) for name, edit in WIDE.items()},
        precision="bf16",
        refused_as="asked for bf16, ran float32",
    ),
    "threads": Cause(
        "",
        {name: (edit,) for name, edit in ONE_THREAD.items()},
        said_first="asked for 2 threads, ran 1",
        threads=2,
    ),
    "exchange": Cause(
        "exchange",
        {name: (edit,) for name, edit in MESSAGES.items()},
        strategies={"torch": "ddp", "jax": "data-parallel"},
    ),
    "horovod": Cause("exchange", {"torch": (OF_HOROVOD,)}, strategies={"torch": "horovod"}),
    NOTHING: Cause("", dict.fromkeys(FRAMEWORKS, ())),
}
