"""Train GPT-2 in plain Keras on TensorFlow on one synthetic batch, fast.

    python keras_gpt_train.py {tinygpt,gpt2-124m} [--batch 4] [--sequence 128] [--precision bf16]
        [--compile]

It shares nothing with the harness: it is what the keras adapter is measured against. The step is
the custom one of Keras' guides, which costs less than ``fit`` and ``train_on_batch``.
"""

import argparse
import os
import time

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import tensorflow as tf
from keras import layers, ops

# layers, width, heads, vocabulary, context
MODELS = {"tinygpt": (2, 64, 4, 512, 64), "gpt2-124m": (12, 768, 12, 50257, 1024)}


def normal(deviation=0.02):
    return keras.initializers.RandomNormal(stddev=deviation)


class Positions(layers.Layer):
    def __init__(self, context):
        super().__init__()
        self.context = context

    def build(self, shape):
        self.table = self.add_weight(shape=(self.context, shape[-1]), initializer=normal())

    def call(self, x):
        return x + self.table[: x.shape[1]]


class CausalAttention(layers.Layer):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def call(self, x):
        length, width = x.shape[1], x.shape[2] // 3
        q, k, v = (
            ops.reshape(part, (-1, length, self.heads, width // self.heads))
            for part in ops.split(x, 3, axis=-1)
        )
        y = ops.dot_product_attention(q, k, v, is_causal=True)
        return ops.reshape(y, (-1, length, width))


class Head(layers.Layer):
    def __init__(self, embedding):
        super().__init__()
        self.embedding = embedding

    def call(self, x):
        return ops.matmul(x, ops.transpose(self.embedding.embeddings))


def norm(x):
    return layers.LayerNormalization(epsilon=1e-5)(x)


def dense(x, features, deviation=0.02):
    return layers.Dense(features, kernel_initializer=normal(deviation))(x)


def gpt(tokens, depth, width, heads, vocabulary, context):
    adding = 0.02 / (2 * depth) ** 0.5
    embedding = layers.Embedding(vocabulary, width, embeddings_initializer=normal())
    x = Positions(context)(embedding(tokens))
    for _ in range(depth):
        y = CausalAttention(heads)(dense(norm(x), 3 * width))
        x = layers.Add()([x, dense(y, width, adding)])
        y = dense(norm(x), 4 * width)
        y = layers.Activation(lambda z: keras.activations.gelu(z, approximate=True))(y)
        x = layers.Add()([x, dense(y, width, adding)])
    return Head(embedding)(norm(x))


def prepare(name, batch, precision="fp32", compiled=False, sequence=None):
    """Make a training step; calling it trains once and returns the loss tensor."""
    vocabulary, context = MODELS[name][-2:]
    length = sequence or context
    keras.mixed_precision.set_global_policy("mixed_bfloat16" if precision == "bf16" else "float32")
    inputs = keras.Input((length,), dtype="int32")
    model = keras.Model(inputs, gpt(inputs, *MODELS[name]))
    optimizer = keras.optimizers.AdamW(
        6e-4, beta_1=0.9, beta_2=0.95, epsilon=1e-8, weight_decay=0.1, global_clipnorm=1.0
    )
    vectors = [v for v in model.trainable_variables if len(v.shape) < 2]
    optimizer.exclude_from_weight_decay(var_list=vectors)
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    seldom = tf.math.log(tf.range(1.0, vocabulary + 1))[None]  # as in language: Zipf's law
    text = tf.random.categorical(-seldom, batch * (length + 1), dtype=tf.int32)
    text = tf.reshape(text, [batch, length + 1])
    tokens, targets = text[:, :-1], text[:, 1:]

    @tf.function(jit_compile=compiled, autograph=False)
    def step():
        variables = model.trainable_variables
        with tf.GradientTape() as tape:
            loss = loss_of(targets, model(tokens, training=True))
        gradients = tape.gradient(loss, [v.value for v in variables])
        # A table that is read twice comes back as rows; the optimiser needs it whole.
        optimizer.apply([tf.convert_to_tensor(g) for g in gradients], variables)
        return loss

    return step.get_concrete_function()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    sequence = options.sequence or MODELS[options.model][-1]
    step = prepare(options.model, options.batch, options.precision, options.compile, sequence)
    for _ in range(3):
        step()
    start = time.perf_counter()
    for _ in range(options.steps):
        loss = step()
    rate = options.steps * options.batch * sequence / (time.perf_counter() - start)
    print(f"{rate:.0f} tokens/s, loss {float(loss):.3f}")


if __name__ == "__main__":
    main()
