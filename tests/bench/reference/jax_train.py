"""Train a network of pictures in plain JAX on one synthetic batch, as fast as it can.

    python jax_train.py {alexnet,resnet50,tinycnn} [--batch 16] [--precision bf16]

It shares nothing with the harness: it is what the jax adapter is measured against.
"""

import argparse
import functools
import time

import jax
import jax.numpy as jnp
from jax import lax

ALEXNET = (
    (64, 11, 4, 2, True),
    (192, 5, 1, 2, True),
    (384, 3, 1, 1, False),
    (256, 3, 1, 1, False),
    (256, 3, 1, 1, True),
)
STAGES = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))
KINDS = {"fp32": jnp.float32, "bf16": jnp.bfloat16}


def conv(x, w, stride=1, pad=0):
    w = w.astype(x.dtype)
    if w.shape[:2] == (1, 1):
        # On a CPU XLA multiplies matrices much faster than it convolves, backward above all.
        x = x[:, ::stride, ::stride]
        return (x.reshape(-1, x.shape[3]) @ w[0, 0]).reshape(*x.shape[:3], -1)
    return lax.conv_general_dilated(
        x,
        w,
        (stride, stride),
        [(pad, pad), (pad, pad)],
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def max_pool(x, pad=0, size=3):
    pads = ((0, 0), (pad, pad), (pad, pad), (0, 0))
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, 2, 2, 1), pads)


def dense(x, p):
    return x @ p["w"].astype(x.dtype) + p["b"].astype(x.dtype)


def dropout(key, x):
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x * 2, 0)


def kaiming(key, kernel, inputs, outputs):
    scale = (2 / (kernel * kernel * outputs)) ** 0.5
    return jax.random.normal(key, (kernel, kernel, inputs, outputs)) * scale


def make_dense(key, inputs, outputs):
    return {"w": jax.random.normal(key, (inputs, outputs)) * 0.01, "b": jnp.zeros(outputs)}


def init_alexnet(key):
    keys = jax.random.split(key, 8)
    convs, inputs = [], 3
    for one, (outputs, kernel, *_) in zip(keys, ALEXNET, strict=False):
        convs.append({"w": kaiming(one, kernel, inputs, outputs), "b": jnp.zeros(outputs)})
        inputs = outputs
    sizes = ((9216, 4096), (4096, 4096), (4096, 1000))
    return {"convs": convs, "fcs": [make_dense(keys[5 + i], *sizes[i]) for i in range(3)]}, {}


def alexnet(params, stats, x, key):
    for p, (_, _, stride, pad, pooled) in zip(params["convs"], ALEXNET, strict=True):
        x = jax.nn.relu(conv(x, p["w"], stride, pad) + p["b"].astype(x.dtype))
        x = max_pool(x) if pooled else x
    first, second = jax.random.split(key)
    x = dropout(first, x.reshape(x.shape[0], -1))
    x = dropout(second, jax.nn.relu(dense(x, params["fcs"][0])))
    x = jax.nn.relu(dense(x, params["fcs"][1]))
    return dense(x, params["fcs"][2]), stats


def make_norm(channels):
    params = {"gamma": jnp.ones(channels), "beta": jnp.zeros(channels)}
    return params, {"mean": jnp.zeros(channels), "var": jnp.ones(channels)}


def batch_norm(x, p, s):
    wide = x.astype(jnp.float32)
    mean = wide.mean((0, 1, 2))
    var = jnp.square(wide - mean).mean((0, 1, 2))
    count = x.size // x.shape[-1]
    new = {
        "mean": 0.9 * s["mean"] + 0.1 * mean,
        "var": 0.9 * s["var"] + 0.1 * var * count / (count - 1),
    }
    y = (wide - mean) * (lax.rsqrt(var + 1e-5) * p["gamma"]) + p["beta"]
    return y.astype(x.dtype), new


def blocks():
    inputs = 64
    for count, width, stride in STAGES:
        for number in range(count):
            yield inputs, width, stride if number == 0 else 1
            inputs = 4 * width


def init_resnet50(key):
    norm, stat = make_norm(64)
    params, stats = {"stem": kaiming(key, 7, 3, 64), "stem_bn": norm, "blocks": []}, {"blocks": []}
    stats["stem_bn"] = stat
    for inputs, width, stride in blocks():
        shapes = {"1": (1, inputs, width), "2": (3, width, width), "3": (1, width, 4 * width)}
        if inputs != 4 * width or stride != 1:
            shapes["p"] = (1, inputs, 4 * width)
        block, kept = {}, {}
        for name, shape in shapes.items():
            key, one = jax.random.split(key)
            block["conv" + name] = kaiming(one, *shape)
            block["bn" + name], kept["bn" + name] = make_norm(shape[2])
        params["blocks"].append(block)
        stats["blocks"].append(kept)
    params["fc"] = make_dense(key, 2048, 1000)
    return params, stats


def resnet50(params, stats, x, _key):
    new = {"blocks": []}
    x, new["stem_bn"] = batch_norm(
        conv(x, params["stem"], 2, 3), params["stem_bn"], stats["stem_bn"]
    )
    x = max_pool(jax.nn.relu(x), 1)
    for p, s, (_, _, stride) in zip(params["blocks"], stats["blocks"], blocks(), strict=True):
        kept = {}
        y, kept["bn1"] = batch_norm(conv(x, p["conv1"]), p["bn1"], s["bn1"])
        y, kept["bn2"] = batch_norm(conv(jax.nn.relu(y), p["conv2"], stride, 1), p["bn2"], s["bn2"])
        y, kept["bn3"] = batch_norm(conv(jax.nn.relu(y), p["conv3"]), p["bn3"], s["bn3"])
        if "convp" in p:
            x, kept["bnp"] = batch_norm(conv(x, p["convp"], stride), p["bnp"], s["bnp"])
        x = jax.nn.relu(x + y)
        new["blocks"].append(kept)
    return dense(x.mean((1, 2)), params["fc"]), new


def init_tinycnn(key):
    keys, params, stats = jax.random.split(key, 5), {}, {}
    for number, (inputs, outputs) in enumerate(((3, 16), (16, 16), (16, 16), (16, 32)), start=1):
        weights = kaiming(keys[number - 1], 3, inputs, outputs)
        params[f"conv{number}"] = {"w": weights, "b": jnp.zeros(outputs)}
        if number < 4:
            params[f"bn{number}"], stats[f"bn{number}"] = make_norm(outputs)
    return {**params, "fc": make_dense(keys[4], 32, 10)}, stats


def tinycnn(params, stats, x, _key):
    def shifted(number, x, stride=1, pad=((1, 1), (1, 1))):
        p = params[f"conv{number}"]
        kinds = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(
            x, p["w"].astype(x.dtype), (stride, stride), pad, dimension_numbers=kinds
        )
        return y + p["b"].astype(x.dtype)

    new = {}

    def normed(number, x):
        name = f"bn{number}"
        y, new[name] = batch_norm(shifted(number, x), params[name], stats[name])
        return y

    x = max_pool(jax.nn.relu(normed(1, x)), size=2)
    x = jax.nn.relu(x + normed(3, jax.nn.relu(normed(2, x))))
    x = jax.nn.relu(shifted(4, x, 2, ((0, 1), (0, 1))))
    return dense(x.mean((1, 2)), params["fc"]), new


MODELS = {
    "alexnet": (init_alexnet, alexnet, 0.01, 5e-4),
    "resnet50": (init_resnet50, resnet50, 0.1, 1e-4),
    "tinycnn": (init_tinycnn, tinycnn, 0.05, 1e-4),
}
TINY = {"tinycnn": (32, 10)}


def prepare(name, batch, precision="fp32", whole=None, split=None):
    """Make a training step; calling it trains once and returns the loss array.

    ``whole`` and ``split`` say where several devices hold the state and the batch of all.
    """
    init, forward, rate, decay = MODELS[name]
    size, classes = TINY.get(name, (224, 1000))
    rate = rate * batch / 256 if name == "resnet50" else rate
    jax.config.update("jax_default_matmul_precision", "float32" if precision == "fp32" else None)

    def loss_of(params, stats, images, labels, key):
        logits, stats = forward(params, stats, images.astype(KINDS[precision]), key)
        logits = jax.nn.log_softmax(logits.astype(jnp.float32))
        return -jnp.take_along_axis(logits, labels[:, None], 1).mean(), stats

    @functools.partial(jax.jit, donate_argnums=0, out_shardings=whole)
    def train(state, images, labels):
        params, stats, velocity, key = state
        key, draw = jax.random.split(key)
        slope = jax.value_and_grad(loss_of, has_aux=True)
        (loss, stats), grads = slope(params, stats, images, labels, draw)
        grads = jax.tree.map(lambda g, p: g + decay * p if p.ndim > 1 else g, grads, params)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, grads)
        params = jax.tree.map(lambda p, v: p - rate * v, params, velocity)
        return (params, stats, velocity, key), loss

    @functools.partial(jax.jit, out_shardings=whole)
    def begin():
        params, stats = init(jax.random.key(0))
        return params, stats, jax.tree.map(jnp.zeros_like, params), jax.random.key(1)

    @functools.partial(jax.jit, out_shardings=split)
    def draw_batch():
        images = jax.random.normal(jax.random.key(2), (batch, size, size, 3))
        return images, jax.random.randint(jax.random.key(3), (batch,), 0, classes)

    state = [begin()]
    images, labels = draw_batch()

    def step():
        state[0], loss = train(state[0], images, labels)
        return loss

    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--precision", choices=sorted(KINDS), default="fp32")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    step = prepare(options.model, options.batch, options.precision)
    for _ in range(3):
        loss = step()
    jax.block_until_ready(loss)
    start = time.perf_counter()
    for _ in range(options.steps):
        loss = step()
    jax.block_until_ready(loss)
    seconds = time.perf_counter() - start
    print(f"{options.steps * options.batch / seconds:.2f} images/s, loss {float(loss):.3f}")


if __name__ == "__main__":
    main()
