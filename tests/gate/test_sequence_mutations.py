"""Hold the gate to catching and naming the classic mistakes of networks of sequences."""

from __future__ import annotations

import re

import pytest

from tests.gate import network as images
from tests.gate import texts
from tests.gate.conftest import INSIDE, Subject
from workloads import tinygpt, tinyllama

pytestmark = pytest.mark.framework

TORCH = "harness/worker/adapters/torch/"
TORCH_WORDS = TORCH + "lowering/sequences.py"
TENSORFLOW = "harness/worker/adapters/tensorflow/"
TENSORFLOW_WORDS = TENSORFLOW + "lowering/sequences.py"
KERAS = "harness/worker/adapters/keras/"
KERAS_WORDS = KERAS + "sequences.py"
JAX = "harness/worker/adapters/jax/"
JAX_WORDS = JAX + "lowering/sequences.py"
MIXED = "mix/attention: output"
UPDATED = "the optimiser: "

MISTAKES = {
    "scores over d for its root": {
        "torch": (
            TORCH_WORDS,
            ("value, is_causal", "value, scale=1 / layer.head, is_causal"),
            MIXED,
        ),
        "jax": (JAX_WORDS, ("scores / layer.head**0.5", "scores / layer.head"), MIXED),
        "tensorflow": (TENSORFLOW_WORDS, ("query * size**-0.5", "query / size"), MIXED),
        "keras": (KERAS_WORDS, ("scale=rule.head**-0.5", "scale=1 / rule.head"), MIXED),
    },
    "a mask that shows one position too many": {
        "torch": (
            TORCH_WORDS,
            (
                "is_causal=layer.causal,",
                "attn_mask=torch.ones(self.length, self.length, dtype=torch.bool).tril(1),",
            ),
            MIXED,
        ),
        "jax": (JAX_WORDS, ("numpy.tri(x.shape[1],", "numpy.tri(x.shape[1], k=1,"), MIXED),
        "tensorflow": (
            TENSORFLOW_WORDS,
            ("place[:, None] >= place[None, :]", "place[:, None] + 1 >= place[None, :]"),
            MIXED,
        ),
        "keras": (
            KERAS_WORDS,
            ("is_causal=rule.causal", "mask=numpy.tri(length, k=1, dtype=bool)[None, None]"),
            MIXED,
        ),
    },
    "a dropout where the network has none": {
        "torch": (TORCH_WORDS, ("value, is_causal", "value, dropout_p=0.1, is_causal"), MIXED),
        "jax": (
            JAX_WORDS,
            (
                "jax.nn.softmax(scores,",
                "jax.random.bernoulli(jax.random.key(0), 0.9, scores.shape)*jax.nn.softmax(scores,",
            ),
            MIXED,
        ),
        "tensorflow": (
            TENSORFLOW_WORDS,
            ("tf.nn.softmax(scores)", "tf.nn.dropout(tf.nn.softmax(scores), 0.1)"),
            MIXED,
        ),
        "keras": (
            KERAS_WORDS,
            ("ops.reshape(mixed, ", "ops.reshape(keras.random.dropout(mixed, 0.1, seed=1), "),
            MIXED,
        ),
    },
    "a GELU by erf for one by tanh": {
        "torch": (
            TORCH_WORDS,
            ('"tanh" if layer.tanh else "none"', '"none"'),
            "gelu: output",
        ),
        "jax": (JAX_WORDS, ("approximate=site.layer.tanh", "approximate=False"), "gelu: output"),
        "tensorflow": (TENSORFLOW_WORDS, ("if layer.tanh:", "if not layer.tanh:"), "gelu: output"),
        "keras": (
            KERAS_WORDS,
            ("Gelu(by_tanh=layer.tanh)", "Gelu(by_tanh=False)"),
            "gelu: output",
        ),
    },
    "pairs that turn for halves": {
        "torch": (
            TORCH_WORDS,
            ("wide.chunk(2, dim=-1)", "wide.unflatten(-1, (-1, 2)).unbind(-1)"),
            MIXED,
        ),
        "jax": (
            JAX_WORDS,
            ("jnp.split(wide, 2, axis=-1)", "(wide[..., ::2], wide[..., 1::2])"),
            MIXED,
        ),
        "tensorflow": (
            TENSORFLOW_WORDS,
            ("tf.split(wide, 2, axis=-1)", "(wide[..., ::2], wide[..., 1::2])"),
            MIXED,
        ),
        "keras": (
            KERAS_WORDS,
            ("ops.split(wide, 2, axis=-1)", "(wide[..., ::2], wide[..., 1::2])"),
            MIXED,
        ),
    },
    "key heads repeated in turn": {
        "torch": (
            TORCH_WORDS,
            ("one.repeat_interleave(group, dim=1)", "one.repeat(1, group, 1, 1)"),
            MIXED,
        ),
        "jax": (
            JAX_WORDS,
            (
                (
                    "query.reshape(*x.shape[:2], layer.kv_heads, group, layer.head)",
                    "query.reshape(*x.shape[:2], group, layer.kv_heads, layer.head).swapaxes(2, 3)",
                ),
                ("bkgts,bskh->btkgh", "bkgts,bskh->btgkh"),
            ),
            MIXED,
        ),
        "tensorflow": (
            TENSORFLOW_WORDS,
            (
                (
                    "tf.reshape(query * size**-0.5, [-1, kv_heads, group * length, size])",
                    (
                        "tf.reshape(tf.transpose(tf.reshape(query * size**-0.5, "
                        "[-1, group, kv_heads, length, size]), [0, 2, 1, 3, 4]), "
                        "[-1, kv_heads, group * length, size])"
                    ),
                ),
                (
                    "tf.reshape(tf.matmul(shares, value), [-1, layer.heads, length, size])",
                    (
                        "tf.reshape(tf.transpose(tf.reshape(tf.matmul(shares, value), "
                        "[-1, kv_heads, group, length, size]), [0, 2, 1, 3, 4]), "
                        "[-1, layer.heads, length, size])"
                    ),
                ),
            ),
            MIXED,
        ),
        "keras": (
            KERAS_WORDS,
            ("ops.repeat(one, group, axis=2)", "ops.tile(one, (1, 1, group, 1))"),
            MIXED,
        ),
    },
    "a softmax in bf16": {
        "torch": (
            TORCH_WORDS,
            (
                (
                    "query, key, value, is_causal=layer.causal, enable_gqa=group > 1",
                    "*(one.bfloat16() for one in (query, key, value)), is_causal=layer.causal",
                ),
                ("mixed.transpose(1, 2)", "mixed.to(x.dtype).transpose(1, 2)"),
            ),
            MIXED,
        ),
        "jax": (
            JAX_WORDS,
            ("jax.nn.softmax(scores,", "jax.nn.softmax(scores.astype(jnp.bfloat16),"),
            MIXED,
        ),
        "tensorflow": (
            TENSORFLOW_WORDS,
            ("tf.nn.softmax(scores)", "tf.nn.softmax(tf.cast(scores, tf.bfloat16))"),
            MIXED,
        ),
        "keras": (
            KERAS_WORDS,
            (
                "query, key, value, scale=",
                "*(ops.cast(one, 'bfloat16') for one in (query, key, value)), scale=",
            ),
            MIXED,
        ),
    },
    "an RMS norm without epsilon": {
        "torch": (
            TORCH_WORDS,
            (
                "nn.RMSNorm(site.input[-1], eps=layer.epsilon)",
                "nn.RMSNorm(site.input[-1], eps=0.0)",
            ),
            "mix/rms: output",
        ),
        "jax": (JAX_WORDS, ("square + site.layer.epsilon", "square"), "mix/rms: output"),
        "tensorflow": (TENSORFLOW_WORDS, ("square + layer.epsilon", "square"), "mix/rms: output"),
        "keras": (
            KERAS_WORDS,
            ("RMSNormalization(epsilon=layer.epsilon)", "RMSNormalization(epsilon=0.0)"),
            "mix/rms: output",
        ),
    },
    "a head that trains no table": {
        "torch": (
            TORCH_WORDS,
            ("self.tables[0].weight, self.bias", "self.tables[0].weight.detach(), self.bias"),
            "tokens: gradient of weight",
        ),
        "jax": (
            JAX_WORDS,
            (
                'one.parameters[site.layer.to + "/weight"]',
                'lax.stop_gradient(one.parameters[site.layer.to + "/weight"])',
            ),
            "tokens: gradient of weight",
        ),
        "tensorflow": (
            TENSORFLOW + "lowering/layers.py",
            (
                'now.values[spot.layer.to + "/weight"]',
                'tf.stop_gradient(now.values[spot.layer.to + "/weight"])',
            ),
            "tokens: gradient of weight",
        ),
        "keras": (
            KERAS_WORDS,
            (
                "ops.transpose(self.table.embeddings)",
                "ops.stop_gradient(ops.transpose(self.table.embeddings))",
            ),
            "tokens: gradient of weight",
        ),
    },
    "masked positions that count": {
        "torch": (
            TORCH + "losses.py",
            (
                "output.flatten(0, 1), target.flatten()",
                "output.flatten(0, 1), target.flatten().clamp(min=0)",
            ),
            "the loss",
        ),
        "jax": (
            JAX + "losses.py",
            ("is_asked = target != MASKED", "is_asked = target == target"),
            "the loss",
        ),
        "tensorflow": (
            TENSORFLOW + "lowering/network.py",
            ("tf.cast(is_asked, each.dtype)", "tf.ones_like(each)"),
            "the loss",
        ),
    },
    "a decay of biases and norms too": {
        "torch": (
            TORCH + "training.py",
            ('{"params": others},', '{"params": others, "weight_decay": weight_decay},'),
            UPDATED,
        ),
        "jax": (JAX + "training.py", ('if name.endswith("/weight"):', "if name:"), UPDATED),
        "tensorflow": (
            TENSORFLOW + "optimiser.py",
            ("if name not in self._decayed:", "if not name:"),
            UPDATED,
        ),
        "keras": (
            KERAS + "training.py",
            ("if name not in self._decayed]", "if not name]"),
            UPDATED,
        ),
    },
    "gradients clipped item by item": {
        "torch": (
            TORCH + "training.py",
            (
                "torch._foreach_mul_(gradients, torch.clamp(self._clip / norm, max=1.0))",
                "nn.utils.clip_grad_value_(self.network.parameters(), self._clip)",
            ),
            UPDATED,
        ),
        "jax": (JAX + "training.py", ("one * factor", "jnp.clip(one, -most, most)"), UPDATED),
        "tensorflow": (
            TENSORFLOW + "optimiser.py",
            ("gradient * factor for", "tf.clip_by_value(gradient, -most, most) for"),
            UPDATED,
        ),
        "keras": (KERAS + "training.py", ('"global_clipnorm"', '"clipvalue"'), UPDATED),
    },
    "gradients that are not clipped": {
        "torch": (
            TORCH + "training.py",
            (
                "        self._clip_gradients()\n        self.scaler.step(",
                "        self.scaler.step(",
            ),
            UPDATED,
        ),
        "jax": (JAX + "training.py", ("if most is None:", "if most:"), UPDATED),
        "tensorflow": (TENSORFLOW + "optimiser.py", ("if most is None:", "if most:"), UPDATED),
    },
}
NAMED = {
    "scores over d for its root": "a scale of 1/d",
    "a mask that shows one position too many": "a mask that shows one position too many",
    "a mask that is left out": "no mask",
    "a GELU by erf for one by tanh": "a GELU by erf",
    "pairs that turn for halves": "a rotary pairing of neighbours",
    "key heads repeated in turn": "key and value heads repeated in turn, not in groups",
    "a dropout where the network has none": {
        "jax": "a dropout without its scale",
        None: "a dropout of about 0.1",
    },
    "a softmax in bf16": {
        "torch": "attention and its softmax in bf16",
        "keras": "attention and its softmax in bf16",
        None: "a softmax in bf16",
    },
    "an RMS norm without epsilon": "no epsilon",
    "a head that trains no table": "a head that trains no table",
    "a decay of biases and norms too": "a decay of biases and norms too",
    "gradients clipped item by item": "clipping item by item",
    "gradients that are not clipped": "no clipping",
}
"""What the reference, reckoned again with usual slips, says of a mistake; of others, nothing.

Where frameworks have one planted in different places: by framework, None standing for others."""
FRAMEWORKS = ("torch", "jax", "tensorflow", "keras")
PURE = ("torch", "jax")
"""Those that hold weights in bf16."""
OF_PARTS = {
    "a mean of the means of micro-batches": {
        "torch": (
            TORCH + "training.py",
            (
                "counted = COUNTED[self._workload.loss](target)",
                "counted = [count * each for each in COUNTED[self._workload.loss](target[:1])]",
            ),
            "the loss is",
        ),
        "jax": (
            JAX + "training.py",
            (
                "state, own, draw, keeps, given.target",
                "state, own, draw, keeps, jnp.repeat(own.target, count, 0)",
            ),
            "the loss is",
        ),
    },
    "an update from the last micro-batch alone": {
        "torch": (
            TORCH + "training.py",
            (
                "loss = loss + self._pass(",
                "self.network.zero_grad()\n                loss = loss + self._pass(",
            ),
            "gradient of",
        ),
        "jax": (
            JAX + "training.py",
            ("jax.tree.map(jnp.add, sums, (gradients, loss))", "(gradients, sums[1] + loss)"),
            "gradient of",
        ),
        "tensorflow": (
            TENSORFLOW + "training.py",
            ("sums[name] + one if sums else one", "one"),
            "gradient of",
        ),
    },
}
"""Mistakes of a step in micro-batches."""
ACCUMULATING = ("torch", "jax", "tensorflow")
OF_BLOCKS = {
    "running statistics that move twice": (
        "torch",
        TORCH + "lowering/recomputed.py",
        ("norm.momentum = 0.0", "norm.momentum = norm.momentum"),
        "block/bn",
    ),
    "running statistics of a block that are lost": (
        "jax",
        JAX + "lowering/network.py",
        ("        one.updated.update(updated)\n", "        one.updated.update(one.statistics)\n"),
        "block/bn",
    ),
    "what enters a block overwritten before it is computed again": (
        "torch",
        TORCH + "lowering/recomputed.py",
        ("        return output\n", "        x.data.zero_()\n        return output\n"),
        "gradient of",
    ),
}
"""Mistakes of blocks that are computed twice."""
RECOMPUTING = ("torch", "jax")
PLANTED = [(mistake, name) for mistake, where in MISTAKES.items() for name in where]


@pytest.mark.planted
@pytest.mark.parametrize(("mistake", "name"), PLANTED)
def test_a_mistake_is_caught_and_named(mistake, name, semantics, planted) -> None:
    file, change, words = MISTAKES[mistake][name]
    finding = semantics(name, {file: change}, network=texts)
    planted(name, mistake, "the gate in float64", finding.differs)
    assert words in finding.differs
    assert _slip(finding.differs) == _named(mistake, name)


def _named(mistake: str, name: str | None) -> str | None:
    words = NAMED.get(mistake)
    return words.get(name, words[None]) if isinstance(words, dict) else words


def _slip(sentence: str) -> str | None:
    found = re.search(r"; it is what (.*) would give", sentence)
    return None if found is None else found[1]


@pytest.mark.planted
@pytest.mark.parametrize(
    ("mistake", "name"), [(mistake, name) for mistake in OF_PARTS for name in OF_PARTS[mistake]]
)
def test_a_mistake_of_micro_batches_is_caught_and_named(mistake, name, semantics, planted) -> None:
    file, change, words = OF_PARTS[mistake][name]
    finding = semantics(name, {file: change}, network=texts, accumulate=2)
    planted(name, mistake, "the gate in float64", finding.differs)
    assert words in finding.differs


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ACCUMULATING)
def test_accumulated_gradients_are_those_of_one_batch(name, compiled, semantics) -> None:
    finding = semantics(name, {}, network=texts, accumulate=2, compiled=compiled)
    assert finding.differs is None
    assert finding.error < 1e-11


@pytest.mark.parametrize("network", [texts, images])
@pytest.mark.parametrize("name", RECOMPUTING)
def test_blocks_that_are_computed_twice_give_the_same_gradients(name, network, semantics) -> None:
    finding = semantics(name, {}, network=network, recompute=True)
    assert finding.differs is None
    assert finding.error < 1e-11


@pytest.mark.parametrize("name", RECOMPUTING)
def test_blocks_as_timed_stay_within_their_rounding_though_computed_twice(name, timed) -> None:
    finding = timed(Subject(name, recompute=True), "fp32", texts)
    assert finding.differs is None


@pytest.mark.planted
@pytest.mark.parametrize("mistake", OF_BLOCKS)
def test_a_mistake_of_blocks_is_caught_and_named(mistake, semantics, planted) -> None:
    name, file, change, words = OF_BLOCKS[mistake]
    finding = semantics(name, {file: change}, network=images, recompute=True)
    planted(name, mistake, "the gate in float64", finding.differs)
    assert words in finding.differs


@pytest.mark.parametrize("name", ACCUMULATING)
def test_micro_batches_as_timed_stay_within_their_rounding(name, timed) -> None:
    finding = timed(Subject(name, accumulate=2), "fp32", texts)
    assert finding.differs is None


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_sequences_are_computed_as_the_definitions_say(name, semantics) -> None:
    finding = semantics(name, {}, network=texts)
    assert finding.differs is None
    assert finding.error < 1e-11


HALVES_FOR_PAIRS = {
    "torch": (TORCH_WORDS, ("wide.unflatten(-1, (-1, 2)).unbind(-1)", "wide.chunk(2, dim=-1)")),
    "jax": (JAX_WORDS, ("wide[..., ::2], wide[..., 1::2]", "jnp.split(wide, 2, axis=-1)")),
    "tensorflow": (
        TENSORFLOW_WORDS,
        (
            "tf.unstack(tf.reshape(wide, [-1, *x.shape[1:3], size // 2, 2]), axis=-1)",
            "tf.split(wide, 2, axis=-1)",
        ),
    ),
    "keras": (KERAS_WORDS, ("pairs[..., 0], pairs[..., 1]", "ops.split(wide, 2, axis=-1)")),
}
"""In a network that ships: its queries and keys turn by pairs."""


@pytest.mark.planted
@pytest.mark.parametrize("name", HALVES_FOR_PAIRS)
def test_halves_that_turn_for_pairs_are_caught_and_named(name, semantics, planted) -> None:
    file, change = HALVES_FOR_PAIRS[name]
    finding = semantics(name, {file: change}, network=tinyllama)
    planted(name, "halves that turn for pairs", "the gate in float64", finding.differs)
    assert "attention: output" in finding.differs
    assert _slip(finding.differs) == "a rotary pairing of halves"


PLAIN = {INSIDE: ("rotary=TURNING)", 'rotary=TURNING, form="plain")')}
IN_PLAIN = {
    "scores over d for its root": ("query * self.layer.head**-0.5", "query / self.layer.head"),
    "a mask that shows one position too many": ("every.triu(1)", "every.triu(2)"),
    "a mask that is left out": ("if self.hidden is not None:", "if self.hidden is None:"),
    "a softmax in bf16": ("dtype=wide)", "dtype=torch.bfloat16)"),
    "key heads repeated in turn": (
        "one.repeat_interleave(group, dim=1)",
        "one.repeat(1, group, 1, 1)",
    ),
}


def test_plain_attention_is_computed_as_the_definition_says(semantics) -> None:
    finding = semantics("torch", PLAIN, network=texts)
    assert finding.differs is None
    assert finding.error < 1e-11


@pytest.mark.parametrize("mistake", IN_PLAIN)
def test_a_mistake_in_plain_attention_is_caught_and_named(mistake, semantics) -> None:
    finding = semantics("torch", {**PLAIN, TORCH_WORDS: IN_PLAIN[mistake]}, network=texts)
    assert MIXED in finding.differs
    assert _slip(finding.differs) == _named(mistake, None)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_mistake_is_named_as_timed_too(precision, timed) -> None:
    mistake = "scores over d for its root"
    change = {**PLAIN, TORCH_WORDS: IN_PLAIN[mistake]}
    finding = timed(Subject("torch", change), precision, texts)
    assert MIXED in finding.differs
    assert _slip(finding.differs) == NAMED[mistake]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_plain_attention_as_timed_stays_within_its_rounding(precision, timed) -> None:
    finding = timed(Subject("torch", PLAIN), precision, texts)
    assert finding.differs is None


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_sequences_as_timed_stay_within_their_rounding(name, precision, timed) -> None:
    finding = timed(Subject(name), precision, texts)
    assert finding.differs is None


@pytest.mark.parametrize("network", [texts, images, tinygpt])
@pytest.mark.parametrize("name", PURE)
def test_sequences_of_narrow_weights_stay_within_their_rounding(name, network, timed) -> None:
    finding = timed(Subject(name), "bf16-pure", network)
    assert finding.differs is None


def test_a_norm_in_torch_is_examined_in_the_type_that_the_network_gives_it(timed) -> None:
    """What it would add up over 64 positions in bf16 is further off; float32 flows there."""
    finding = timed(Subject("torch"), "bf16", tinygpt)
    assert finding.differs is None
    assert finding.error < 1e-2


@pytest.mark.long
def test_tinygrad_computes_sequences_as_the_definitions_say_but_for_its_erf(semantics) -> None:
    finding = semantics("tinygrad", {}, network=texts)
    assert "glu/erf: output" in finding.differs


@pytest.mark.long
def test_tinygrad_as_timed_stays_within_its_rounding_of_sequences(timed) -> None:
    finding = timed(Subject("tinygrad"), "fp32", texts)
    assert finding.differs is None
