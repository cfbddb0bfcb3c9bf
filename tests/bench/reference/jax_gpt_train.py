"""Train GPT-2 in plain JAX, no library of layers, on one synthetic batch, as fast as it can.

    python jax_gpt_train.py {tinygpt,gpt2-124m} [--batch 4] [--sequence 128] [--precision bf16]

It shares nothing with the harness: it is what the jax adapter is measured against.
"""

import argparse
import functools
import time

import jax
import jax.numpy as jnp
from jax import lax

# layers, width, heads, vocabulary, context
MODELS = {"tinygpt": (2, 64, 4, 512, 64), "gpt2-124m": (12, 768, 12, 50257, 1024)}
KINDS = {"fp32": jnp.float32, "bf16": jnp.bfloat16}
RATE, BETA1, BETA2, EPSILON, DECAY, CLIP = 6e-4, 0.9, 0.95, 1e-8, 0.1, 1.0


def init(key, layers, width, vocabulary, context):
    keys = iter(jax.random.split(key, 2 + 4 * layers))
    adding = 0.02 / (2 * layers) ** 0.5

    def dense(inputs, outputs, deviation=0.02):
        w = jax.random.normal(next(keys), (inputs, outputs)) * deviation
        return {"w": w, "b": jnp.zeros(outputs)}

    def norm():
        return {"scale": jnp.ones(width), "shift": jnp.zeros(width)}

    return {
        "wte": jax.random.normal(next(keys), (vocabulary, width)) * 0.02,
        "wpe": jax.random.normal(next(keys), (context, width)) * 0.02,
        "blocks": [
            {
                "ln1": norm(),
                "qkv": dense(width, 3 * width),
                "out": dense(width, width, adding),
                "ln2": norm(),
                "up": dense(width, 4 * width),
                "down": dense(4 * width, width, adding),
            }
            for _ in range(layers)
        ],
        "ln_f": norm(),
    }


def layer_norm(x, p):
    wide = x.astype(jnp.float32)
    mean = wide.mean(-1, keepdims=True)
    var = jnp.square(wide - mean).mean(-1, keepdims=True)
    y = (wide - mean) * lax.rsqrt(var + 1e-5) * p["scale"] + p["shift"]
    return y.astype(x.dtype)


def dense(x, p):
    return x @ p["w"].astype(x.dtype) + p["b"].astype(x.dtype)


def attention(x, p, heads):
    batch, length, width = x.shape
    q, k, v = (
        part.reshape(batch, length, heads, width // heads)
        for part in jnp.split(dense(x, p["qkv"]), 3, axis=-1)
    )
    y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    return dense(y.reshape(x.shape), p["out"])


def gpt(params, tokens, heads, kind):
    x = (params["wte"][tokens] + params["wpe"][: tokens.shape[1]]).astype(kind)
    for p in params["blocks"]:
        x = x + attention(layer_norm(x, p["ln1"]), p, heads)
        y = jax.nn.gelu(dense(layer_norm(x, p["ln2"]), p["up"]), approximate=True)
        x = x + dense(y, p["down"])
    return layer_norm(x, params["ln_f"]) @ params["wte"].astype(kind).T


def adamw(params, grads, first, second, count):
    norm = jnp.sqrt(sum(jnp.square(g).sum() for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: g * jnp.minimum(1, CLIP / norm), grads)
    first = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, first, grads)
    second = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * jnp.square(g), second, grads)
    scale1, scale2 = 1 / (1 - BETA1**count), 1 / (1 - BETA2**count)

    def move(p, m, v):
        moved = m * scale1 / (jnp.sqrt(v * scale2) + EPSILON)
        return p - RATE * (moved + DECAY * p if p.ndim > 1 else moved)

    return jax.tree.map(move, params, first, second), first, second


def prepare(name, batch, precision="fp32", sequence=None):
    """Make a training step; calling it trains once and returns the loss array."""
    layers, width, heads, vocabulary, context = MODELS[name]
    length = sequence or context
    jax.config.update("jax_default_matmul_precision", "float32" if precision == "fp32" else None)

    def loss_of(params, tokens, targets):
        logits = gpt(params, tokens, heads, KINDS[precision]).astype(jnp.float32)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1)
        return -chosen.mean()

    @functools.partial(jax.jit, donate_argnums=0)
    def train(state, tokens, targets):
        params, first, second, count = state
        loss, grads = jax.value_and_grad(loss_of)(params, tokens, targets)
        count = count + 1
        return (*adamw(params, grads, first, second, count), count), loss

    @jax.jit
    def begin():
        params = init(jax.random.key(0), layers, width, vocabulary, context)
        first, second = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
        return params, first, second, jnp.float32(0)

    state = [begin()]
    often = 1 / jnp.arange(1, vocabulary + 1)  # as in language: Zipf's law
    text = jax.random.choice(jax.random.key(1), vocabulary, (batch, length + 1), p=often)
    tokens, targets = text[:, :-1], text[:, 1:]

    def step():
        state[0], loss = train(state[0], tokens, targets)
        return loss

    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int)
    parser.add_argument("--precision", choices=sorted(KINDS), default="fp32")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    sequence = options.sequence or MODELS[options.model][-1]
    step = prepare(options.model, options.batch, options.precision, sequence)
    for _ in range(3):
        loss = step()
    jax.block_until_ready(loss)
    start = time.perf_counter()
    for _ in range(options.steps):
        loss = step()
    jax.block_until_ready(loss)
    rate = options.steps * options.batch * sequence / (time.perf_counter() - start)
    print(f"{rate:.0f} tokens/s, loss {float(loss):.3f}")


if __name__ == "__main__":
    main()
