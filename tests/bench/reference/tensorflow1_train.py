"""Train AlexNet or ResNet-50 in plain TensorFlow 1.15 on one synthetic batch, fast.

    python tensorflow1_train.py {alexnet,resnet50} [--batch 16]

It shares nothing with the harness: it is what the tensorflow adapter is measured against in that
version. One static graph in a session, as programs of its day were written; Python 3.7 grammar.
"""

import argparse
import time

import tensorflow.compat.v1 as tf


def variable(name, shape, initial, trainable=True):
    return tf.get_variable(name, shape, tf.float32, initial, trainable=trainable)


def conv(x, name, filters, size, stride=1, pad=0, bias=True):
    deviation = (2 / (size * size * filters)) ** 0.5
    with tf.variable_scope(name):
        shape = [size, size, int(x.shape[-1]), filters]
        w = variable("weight", shape, tf.random_normal_initializer(stddev=deviation))
        same = stride == 1 and 2 * pad == size - 1
        if pad and not same:
            x = tf.pad(x, [[0, 0], [pad, pad], [pad, pad], [0, 0]])
        x = tf.nn.conv2d(x, w, stride, "SAME" if same else "VALID")
        return tf.nn.bias_add(x, variable("bias", [filters], tf.zeros_initializer())) if bias else x


def norm(x, name):
    with tf.variable_scope(name):
        n = [int(x.shape[-1])]
        gamma = variable("gamma", n, tf.ones_initializer())
        beta = variable("beta", n, tf.zeros_initializer())
        kept = (
            variable("mean", n, tf.zeros_initializer(), trainable=False),
            variable("variance", n, tf.ones_initializer(), trainable=False),
        )
        y, *now, _, _, _ = tf.raw_ops.FusedBatchNormV3(
            x=x, scale=gamma, offset=beta, mean=[], variance=[], epsilon=1e-5
        )
        for number, old in enumerate(kept):
            moved = old.assign_sub(0.1 * (old - now[number]))
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, moved)
        return y


def dense(x, name, features):
    with tf.variable_scope(name):
        shape = [int(x.shape[-1]), features]
        w = variable("weight", shape, tf.random_normal_initializer(stddev=0.01))
        return tf.nn.bias_add(tf.matmul(x, w), variable("bias", [features], tf.zeros_initializer()))


def alexnet(x):
    x = tf.nn.relu(conv(x, "conv1", 64, 11, 4, 2))
    x = tf.nn.max_pool2d(x, 3, 2, "VALID")
    x = tf.nn.relu(conv(x, "conv2", 192, 5, 1, 2))
    x = tf.nn.max_pool2d(x, 3, 2, "VALID")
    x = tf.nn.relu(conv(x, "conv3", 384, 3, 1, 1))
    x = tf.nn.relu(conv(x, "conv4", 256, 3, 1, 1))
    x = tf.nn.relu(conv(x, "conv5", 256, 3, 1, 1))
    x = tf.nn.max_pool2d(x, 3, 2, "VALID")
    x = tf.nn.dropout(tf.reshape(x, [x.shape[0], -1]), rate=0.5)
    x = tf.nn.dropout(tf.nn.relu(dense(x, "fc1", 4096)), rate=0.5)
    return dense(tf.nn.relu(dense(x, "fc2", 4096)), "fc3", 1000)


def bottleneck(x, name, width, stride, projects):
    with tf.variable_scope(name):
        y = tf.nn.relu(norm(conv(x, "conv1", width, 1, bias=False), "bn1"))
        y = tf.nn.relu(norm(conv(y, "conv2", width, 3, stride, 1, bias=False), "bn2"))
        y = norm(conv(y, "conv3", 4 * width, 1, bias=False), "bn3")
        if projects:
            x = norm(conv(x, "project", 4 * width, 1, stride, bias=False), "bn")
        return tf.nn.relu(y + x)


def resnet50(x):
    x = tf.nn.relu(norm(conv(x, "stem", 64, 7, 2, 3, bias=False), "bn"))
    # After a ReLU a pad of zeros never wins a maximum.
    x = tf.nn.max_pool2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), 3, 2, "VALID")
    for stage, (count, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(count):
            stride = 2 if stage and not block else 1
            x = bottleneck(x, f"block{stage}.{block}", width, stride, block == 0)
    return dense(tf.reduce_mean(x, [1, 2]), "fc", 1000)


MODELS = {"alexnet": (alexnet, 0.01, 5e-4), "resnet50": (resnet50, 0.1, 1e-4)}


def prepare(name, batch, _precision="fp32"):
    """Make a training step; calling it trains once and returns the loss."""
    model, rate, decay = MODELS[name]
    if name == "resnet50":
        rate = rate * batch / 256
    graph = tf.Graph()
    with graph.as_default():
        images = variable("images", [batch, 224, 224, 3], tf.random_normal_initializer(), False)
        pick = tf.random_uniform_initializer(0, 1000)
        labels = tf.get_variable("labels", [batch], tf.int32, pick, trainable=False)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=model(images))
        )
        optimizer = tf.train.MomentumOptimizer(rate, 0.9)
        # Gated gradients would wait for those of constants too.
        gradients = optimizer.compute_gradients(loss, gate_gradients=optimizer.GATE_NONE)
        pairs = [(g + decay * v if len(v.shape) > 1 else g, v) for g, v in gradients]
        moved = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        train = tf.group(optimizer.apply_gradients(pairs), *moved)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        run = session.make_callable([loss, train])

    def step():
        return run()[0]

    step.graph, step.outputs = graph, [loss, train]
    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    step = prepare(options.model, options.batch)
    for _ in range(3):
        step()
    start = time.perf_counter()
    for _ in range(options.steps):
        loss = step()
    seconds = time.perf_counter() - start
    print(f"{options.steps * options.batch / seconds:.2f} images/s, loss {loss:.3f}")


if __name__ == "__main__":
    main()
