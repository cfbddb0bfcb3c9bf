"""Train AlexNet or ResNet-50 in plain TensorFlow on one synthetic batch, fast.

    python tensorflow_train.py {alexnet,resnet50} [--batch 16] [--precision bf16] [--compile]

It shares nothing with the harness: it is what the tensorflow adapter is measured against.
"""

import argparse
import contextlib
import time

import tensorflow as tf

# As Keras makes a batch norm's running statistics: each replica keeps its own.
OWN = {
    "trainable": False,
    "synchronization": tf.VariableSynchronization.ON_READ,
    "aggregation": tf.VariableAggregation.MEAN,
}


class Alone:
    """Train on one device; the scripts with a strategy say what they do otherwise."""

    def scope(self):
        return contextlib.nullcontext()

    def batch(self, draw):
        return draw()

    def begin(self, variables):
        """There is nobody whose weights could differ."""

    def gradient(self, tape, loss, learned):
        return tape.gradient(loss, learned)

    def run(self, step, batch):
        return step(*batch)


def add_bias(x, b):
    """Add a bias; its bf16 gradient by ``Sum``: on a CPU ``BiasAddGrad`` adds up in bf16."""
    if x.dtype != tf.bfloat16:
        return tf.nn.bias_add(x, b)
    axes = list(range(len(x.shape) - 1))

    @tf.custom_gradient
    def add(x, b):
        return tf.nn.bias_add(x, b), lambda slope: (slope, tf.reduce_sum(slope, axes))

    return add(x, b)


class Net:
    """Variables by creation order, and the layers that use them."""

    def __init__(self, compute):
        self.compute = compute
        self.weights, self.others, self.moving = [], [], []
        self.at = None

    def variable(self, kind, make):
        if self.at is None:
            kind.append(tf.Variable(make(), **(OWN if kind is self.moving else {})))
            return kind[-1]
        return next(self.at[id(kind)])

    def start(self):
        kinds = (self.weights, self.others, self.moving)
        self.at = {id(kind): iter(kind) for kind in kinds}

    def conv(self, x, filters, size, stride=1, pad=0, bias=True):
        channels = x.shape[-1]
        std = (2 / (size * size * filters)) ** 0.5
        w = self.variable(
            self.weights, lambda: tf.random.normal([size, size, channels, filters], stddev=std)
        )
        same = stride == 1 and 2 * pad == size - 1
        if pad and not same:
            x = tf.pad(x, [[0, 0], [pad, pad], [pad, pad], [0, 0]])
        x = tf.nn.conv2d(x, tf.cast(w, self.compute), stride, "SAME" if same else "VALID")
        if bias:
            b = self.variable(self.others, lambda: tf.zeros([filters]))
            x = add_bias(x, tf.cast(b, self.compute))
        return x

    def norm(self, x):
        n = x.shape[-1]
        gamma = self.variable(self.others, lambda: tf.ones([n]))
        beta = self.variable(self.others, lambda: tf.zeros([n]))
        mean = self.variable(self.moving, lambda: tf.zeros([n]))
        variance = self.variable(self.moving, lambda: tf.ones([n]))
        y, new_mean, new_variance, *_ = tf.raw_ops.FusedBatchNormV3(
            x=x,
            scale=gamma,
            offset=beta,
            mean=mean,
            variance=variance,
            epsilon=1e-5,
            exponential_avg_factor=0.1,
        )
        mean.assign(new_mean)
        variance.assign(new_variance)
        return y

    def dense(self, x, features):
        n = x.shape[-1]
        w = self.variable(self.weights, lambda: tf.random.normal([n, features], stddev=0.01))
        b = self.variable(self.others, lambda: tf.zeros([features]))
        return add_bias(tf.matmul(x, tf.cast(w, self.compute)), tf.cast(b, self.compute))


def alexnet(net, x):
    x = tf.nn.relu(net.conv(x, 64, 11, 4, 2))
    x = tf.nn.max_pool2d(x, 3, 2, "VALID")
    x = tf.nn.relu(net.conv(x, 192, 5, 1, 2))
    x = tf.nn.max_pool2d(x, 3, 2, "VALID")
    x = tf.nn.relu(net.conv(x, 384, 3, 1, 1))
    x = tf.nn.relu(net.conv(x, 256, 3, 1, 1))
    x = tf.nn.relu(net.conv(x, 256, 3, 1, 1))
    x = tf.nn.max_pool2d(x, 3, 2, "VALID")
    x = tf.nn.dropout(tf.reshape(x, [x.shape[0], -1]), 0.5)
    x = tf.nn.dropout(tf.nn.relu(net.dense(x, 4096)), 0.5)
    return net.dense(tf.nn.relu(net.dense(x, 4096)), 1000)


def bottleneck(net, x, width, stride, projects):
    y = tf.nn.relu(net.norm(net.conv(x, width, 1, bias=False)))
    y = tf.nn.relu(net.norm(net.conv(y, width, 3, stride, 1, bias=False)))
    y = net.norm(net.conv(y, 4 * width, 1, bias=False))
    if projects:
        x = net.norm(net.conv(x, 4 * width, 1, stride, bias=False))
    return tf.nn.relu(y + x)


def resnet50(net, x):
    x = tf.nn.relu(net.norm(net.conv(x, 64, 7, 2, 3, bias=False)))
    # After a ReLU a pad of zeros never wins a maximum.
    x = tf.nn.max_pool2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), 3, 2, "VALID")
    for count, width, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for block in range(count):
            x = bottleneck(net, x, width, stride if block == 0 else 1, block == 0)
    return net.dense(tf.reduce_mean(x, [1, 2]), 1000)


MODELS = {"alexnet": (alexnet, 0.01, 5e-4), "resnet50": (resnet50, 0.1, 1e-4)}


def prepare(name, batch, precision="fp32", compiled=False, strategy=None):
    """Make a training step; calling it trains once and returns the loss tensor."""
    strategy = strategy or Alone()
    model, rate, decay = MODELS[name]
    if name == "resnet50":
        rate = rate * batch / 256
    net = Net(tf.bfloat16 if precision == "bf16" else tf.float32)

    def draw():
        images = tf.cast(tf.random.normal([batch, 224, 224, 3]), net.compute)
        return images, tf.random.uniform([batch], maxval=1000, dtype=tf.int32)

    given = strategy.batch(draw)
    with strategy.scope():
        model(net, draw()[0][:1])
        slots = [tf.Variable(tf.zeros_like(v)) for v in net.weights + net.others]

    strategy.begin(net.weights + net.others)

    def train(images, labels):
        learned = net.weights + net.others
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(learned)
            net.start()
            logits = tf.cast(model(net, images), tf.float32)
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            )
        gradients = strategy.gradient(tape, loss, learned)
        for number, (v, slot, g) in enumerate(zip(learned, slots, gradients, strict=True)):
            if number < len(net.weights):
                g = g + decay * v
            tf.raw_ops.ResourceApplyMomentum(
                var=v.handle, accum=slot.handle, lr=rate, grad=g, momentum=0.9
            )
        return loss

    @tf.function(jit_compile=compiled, autograph=False)
    def step():
        return strategy.run(train, given)

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
