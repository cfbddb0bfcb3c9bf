"""Train a network of pictures in plain Keras on TensorFlow on one synthetic batch, fast.

    python keras_train.py {alexnet,resnet50,tinycnn} [--batch 16] [--precision bf16] [--compile]

It shares nothing with the harness: it is what the keras adapter is measured against. The step is
the custom one of Keras' guides, which costs less than ``train_on_batch``.
"""

import argparse
import os
import time

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import tensorflow as tf
from keras import layers


def conv(x, filters, size, stride=1, pad=0, bias=True, same=False):
    same = same or (stride == 1 and 2 * pad == size - 1)
    if pad and not same:
        x = layers.ZeroPadding2D(pad)(x)
    kaiming = keras.initializers.VarianceScaling(2.0, "fan_out", "untruncated_normal")
    return layers.Conv2D(
        filters,
        size,
        strides=stride,
        padding="same" if same else "valid",
        use_bias=bias,
        kernel_initializer=kaiming,
    )(x)


def norm(x):
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


def dense(x, features):
    normal = keras.initializers.RandomNormal(stddev=0.01)
    return layers.Dense(features, kernel_initializer=normal)(x)


def alexnet(x):
    for filters, size, stride, pad, pools in (
        (64, 11, 4, 2, True),
        (192, 5, 1, 2, True),
        (384, 3, 1, 1, False),
        (256, 3, 1, 1, False),
        (256, 3, 1, 1, True),
    ):
        x = layers.ReLU()(conv(x, filters, size, stride, pad))
        if pools:
            x = layers.MaxPooling2D(3, 2)(x)
    x = layers.Dropout(0.5)(layers.Flatten()(x))
    x = layers.Dropout(0.5)(layers.ReLU()(dense(x, 4096)))
    return dense(layers.ReLU()(dense(x, 4096)), 1000)


def bottleneck(x, width, stride, projects):
    y = layers.ReLU()(norm(conv(x, width, 1, bias=False)))
    y = layers.ReLU()(norm(conv(y, width, 3, stride, 1, bias=False)))
    y = norm(conv(y, 4 * width, 1, bias=False))
    if projects:
        x = norm(conv(x, 4 * width, 1, stride, bias=False))
    return layers.ReLU()(layers.Add()([y, x]))


def resnet50(x):
    x = layers.ReLU()(norm(conv(x, 64, 7, 2, 3, bias=False)))
    # After a ReLU a pad of zeros never wins a maximum.
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for count, width, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for block in range(count):
            x = bottleneck(x, width, stride if block == 0 else 1, block == 0)
    return dense(layers.GlobalAveragePooling2D()(x), 1000)


def tinycnn(x):
    x = layers.MaxPooling2D(2, 2)(layers.ReLU()(norm(conv(x, 16, 3, pad=1))))
    y = layers.ReLU()(norm(conv(x, 16, 3, pad=1)))
    x = layers.ReLU()(layers.Add()([norm(conv(y, 16, 3, pad=1)), x]))
    x = layers.ReLU()(conv(x, 32, 3, 2, same=True))
    return dense(layers.GlobalAveragePooling2D()(x), 10)


MODELS = {
    "alexnet": (alexnet, 0.01, 5e-4),
    "resnet50": (resnet50, 0.1, 1e-4),
    "tinycnn": (tinycnn, 0.05, 1e-4),
}
TINY = {"tinycnn": (32, 10)}


def prepare(name, batch, precision="fp32", compiled=False):
    """Make a training step; calling it trains once and returns the loss tensor."""
    make, rate, decay = MODELS[name]
    if name == "resnet50":
        rate = rate * batch / 256
    keras.mixed_precision.set_global_policy("mixed_bfloat16" if precision == "bf16" else "float32")
    size, classes = TINY.get(name, (224, 1000))
    inputs = keras.Input((size, size, 3))
    model = keras.Model(inputs, make(inputs))
    optimizer = keras.optimizers.SGD(rate, momentum=0.9)
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    images = tf.random.normal([batch, size, size, 3])
    images = tf.cast(images, keras.mixed_precision.global_policy().compute_dtype)
    labels = tf.random.uniform([batch], maxval=classes, dtype=tf.int32)

    @tf.function(jit_compile=compiled, autograph=False)
    def step():
        variables = model.trainable_variables
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        gradients = tape.gradient(loss, [v.value for v in variables])
        gradients = [
            g + decay * v.value if v.name == "kernel" else g
            for g, v in zip(gradients, variables, strict=True)
        ]
        optimizer.apply(gradients, variables)
        return loss

    return step.get_concrete_function()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    step = prepare(options.model, options.batch, options.precision, options.compile)
    for _ in range(3):
        step()
    start = time.perf_counter()
    for _ in range(options.steps):
        loss = step()
    seconds = time.perf_counter() - start
    print(f"{options.steps * options.batch / seconds:.2f} images/s, loss {float(loss):.3f}")


if __name__ == "__main__":
    main()
