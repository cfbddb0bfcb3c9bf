"""Stand in for the caffe program: its arguments, its log, its signals, another network.

    python stand_in.py [--dialect intel] [--gpus N] {train,time,--version} …

What it prints has the form of real builds' logs (``logs/``). Its steps are real work, on a small
matrix that has nothing to do with the net's layers, so its times mean nothing: it calls its version
a stand-in, which gives its trials that origin.
"""

import argparse
import math
import os
import random
import signal
import sys
import time
from contextlib import closing
from itertools import chain, repeat
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from harness.worker.adapters.caffe import blobs, prototxt  # noqa: E402
from harness.worker.input import datum  # noqa: E402

LINES = {
    "bvlc": {"begin": 290, "step": 239, "output": 258, "stop": 311, "done": 332, "rate": 112},
    "intel": {"begin": 398, "step": 312, "output": 333, "stop": 416, "done": 443, "rate": 225},
}
SIZE = 24


class Caffe:
    def __init__(self, dialect, gpus):
        self.dialect = dialect
        self.gpus = gpus
        self.lines = LINES[dialect]
        self.is_stopped = False
        self.messages, self.batch, self.scale, self.seen = None, 0, 1.0, []
        self.draw = random.Random(1)
        self.weights = [[self.draw.gauss(0, 0.1) for _ in range(SIZE)] for _ in range(SIZE)]

    def say(self, file, line, text, level="I"):
        now = time.time()
        when = time.strftime("%Y%m%d %H:%M:%S", time.localtime(now))
        prefix = f"{level}{when}.{int(now % 1 * 1e6):06d} {os.getpid()} {file}:{line}] "
        sys.stderr.write(prefix + text + "\n")
        sys.stderr.flush()

    def fail(self, file, line, text):
        self.say(file, line, text, level="F")
        sys.stderr.write("*** Check failure stack trace: ***\n    @     0x7f  (unknown)\n")
        sys.stderr.flush()
        os.abort()

    def take(self, asked):
        """Count the solvers: one, or one for each GPU that is asked for."""
        chosen = [int(number) for number in asked.split(",")] if asked else []
        if chosen and not self.gpus:
            self.fail("common.cpp", 66, "Cannot use GPU in CPU-only Caffe: check mode.")
        if any(number >= self.gpus for number in chosen):
            self.fail(
                "common.cpp", 152, "Check failed: error == cudaSuccess invalid device ordinal"
            )
        self.say(
            "caffe.cpp", 197, f"Using GPUs {', '.join(map(str, chosen))}" if chosen else "Use CPU."
        )
        return max(1, len(chosen))

    def set_up(self, path):
        net = prototxt.read(Path(path).read_text(encoding="utf-8"))
        if self.dialect == "intel":
            engine = prototxt.one(net, "engine") or "MKLDNN"
            self.say("net.cpp", 206, f'Initializing net from parameters: \n\nengine: "{engine}"')
        elif any(prototxt.one(one, "engine") for one in (net, *prototxt.every(net, "layer"))):
            self.fail("upgrade_proto.cpp", 90, 'has no field named "engine"')
        shapes = blobs.infer(net, self.open_source(net)).tops
        for layer in prototxt.every(net, "layer"):
            name = prototxt.one(layer, "name")
            self.say("net.cpp", 124, f"Setting up {name}")
            for top in prototxt.every(layer, "top"):
                shape = shapes[name, top]
                sizes = "".join(f"{size} " for size in shape)
                self.say("net.cpp", 131, f"Top shape: {sizes}({math.prod(shape)})")
        self.say("net.cpp", 257, "Network initialization done.")
        return net

    def open_source(self, net):
        """Open the database of a Data layer as Caffe does; give its first picture's shape."""
        layers = [one for one in prototxt.every(net, "layer") if ("type", "Data") in one]
        if not layers:
            return ()
        own = prototxt.one(layers[0], "data_param")
        self.scale = prototxt.one(prototxt.one(layers[0], "transform_param"), "scale")
        self.batch = prototxt.one(own, "batch_size")
        backends = {"LMDB": self.open_lmdb, "LEVELDB": self.open_leveldb}
        backend = prototxt.one(own, "backend")
        if backend not in backends:
            self.fail("db.cpp", 20, "Unknown database backend")
        source = prototxt.one(own, "source")
        # As often as the database is gone through, one net being set up after the other.
        self.messages = chain.from_iterable(map(backends[backend], repeat(source)))
        first = dict(datum.fields(next(self.messages)))
        self.messages = chain.from_iterable(map(backends[backend], repeat(source)))
        return tuple(first[field] for field in (datum.CHANNELS, datum.HEIGHT, datum.WIDTH))

    def open_lmdb(self, source):
        import lmdb

        try:
            held = lmdb.open(source, readonly=True)  # a folder, with a lock in it
        except lmdb.Error as problem:
            self.fail("db_lmdb.hpp", 15, f"Check failed: mdb_status == 0 (2 vs. 0) {problem}")
        self.say("db_lmdb.cpp", 35, f"Opened lmdb {source}")
        with held, held.begin() as transaction:
            yield from map(memoryview, transaction.cursor().iternext(keys=False))

    def open_leveldb(self, source):
        import plyvel

        try:  # with Caffe's options; it writes into the folder
            held = plyvel.DB(source, max_open_files=100, block_size=65536)
        except plyvel.Error as problem:
            self.fail("db_leveldb.cpp", 16, f"Failed to open leveldb {source}\n{problem}")
        self.say("db_leveldb.cpp", 18, f"Opened leveldb {source}")
        with closing(held):
            yield from map(memoryview, held.iterator(include_key=False))

    def read_batch(self):
        """Parse so many messages in the database's own order, from its start again at its end."""
        for _ in range(self.batch):
            found = dict(datum.fields(next(self.messages)))
            size = math.prod(found[field] for field in (datum.CHANNELS, datum.HEIGHT, datum.WIDTH))
            if len(found[datum.DATA]) != size:
                self.fail("data_transformer.cpp", 60, f"Check failed: {size} bytes of a datum")
            self.seen.append(found[datum.LABEL])

    def iterate(self):
        """Push one drawn sample through a matrix, and the matrix towards a drawn class."""
        if self.messages is not None:
            self.read_batch()
        given = [self.draw.gauss(0, 1) for _ in range(SIZE)]
        target = self.draw.randrange(SIZE)
        scores = [sum(w * x for w, x in zip(row, given, strict=True)) for row in self.weights]
        total = sum(map(math.exp, scores))
        for index, row in enumerate(self.weights):
            slope = math.exp(scores[index]) / total - (index == target)
            self.weights[index] = [w - 0.01 * slope * x for w, x in zip(row, given, strict=True)]
        return math.log(total) - scores[target]

    def time(self, options):
        self.take(options.gpu)
        net = self.set_up(options.model)
        self.say("caffe.cpp", 351, "Performing Forward")
        self.say("caffe.cpp", 356, f"Initial loss: {self.iterate():.6g}")
        self.say("caffe.cpp", 365, "*** Benchmark begins ***")
        self.say("caffe.cpp", 366, f"Testing for {options.iterations} iterations.")
        began = time.perf_counter()
        for number in range(options.iterations):
            self.iterate()
            self.say("caffe.cpp", 394, f"Iteration: {number + 1} forward-backward time: 0 ms.")
        mean_ms = (time.perf_counter() - began) * 1e3 / options.iterations
        layers = prototxt.every(net, "layer")
        self.say("caffe.cpp", 397, "Average time per layer: ")
        for layer in layers:
            each = f"{mean_ms / 2 / len(layers):.6g}"
            name = prototxt.one(layer, "name").rjust(10)
            self.say("caffe.cpp", 400, f"{name}\tforward: {each} ms.")
            self.say("caffe.cpp", 403, f"{name}\tbackward: {each} ms.")
        if self.dialect == "intel":
            self.say("caffe.cpp", 645, f"###0:{mean_ms:.3f} ms.")
        self.say("caffe.cpp", 408, f"Average Forward pass: {mean_ms / 2:.6g} ms.")
        self.say("caffe.cpp", 410, f"Average Backward pass: {mean_ms / 2:.6g} ms.")
        self.say("caffe.cpp", 415, "*** Benchmark ends ***")

    def train(self, options):
        solvers = self.take(options.gpu)
        solver = prototxt.read(Path(options.solver).read_text(encoding="utf-8"))
        net = self.set_up(prototxt.one(solver, "net"))
        display, rate = prototxt.one(solver, "display"), prototxt.one(solver, "base_lr")
        signal.signal(signal.SIGINT, self.interrupt)
        self.say("solver.cpp", self.lines["begin"] - 1, f"Solving {prototxt.one(net, 'name')}")
        self.say("solver.cpp", self.lines["begin"], "Learning Rate Policy: fixed")
        iteration = 0
        while iteration < prototxt.one(solver, "max_iter") and not self.is_stopped:
            loss = sum(self.iterate() for _ in range(solvers)) / solvers
            if iteration % display == 0:
                self.show(iteration, loss, rate, display)
            iteration += 1
        if self.is_stopped:
            self.say("solver.cpp", self.lines["stop"], "Optimization stopped early.")
        else:
            self.say("solver.cpp", self.lines["done"] - 5, f"Iteration {iteration}, loss = {loss}")
            self.say("solver.cpp", self.lines["done"], "Optimization Done.")
        self.say("caffe.cpp", 250, "Optimization Done.")
        if self.messages is not None:
            said = f"{self.scale} {' '.join(map(str, self.seen))}"
            Path(options.solver).with_name("read.txt").write_text(said, encoding="utf-8")

    def show(self, iteration, loss, rate, display):
        speed = "" if self.dialect == "intel" else f" (-1.4e-45 iter/s, 0s/{display} iters)"
        self.say(
            "solver.cpp", self.lines["step"], f"Iteration {iteration}{speed}, loss = {loss:.6g}"
        )
        text = f"    Train net output #0: loss = {loss:.6g} (* 1 = {loss:.6g} loss)"
        self.say("solver.cpp", self.lines["output"], text)
        self.say("sgd_solver.cpp", self.lines["rate"], f"Iteration {iteration}, lr = {rate:.6g}")

    def interrupt(self, *_):
        self.is_stopped = True


def main():
    parser = argparse.ArgumentParser(prefix_chars="-", allow_abbrev=False)
    parser.add_argument("--dialect", choices=sorted(LINES), default="bvlc")
    parser.add_argument("--gpus", type=int, default=0)
    parser.add_argument("--version", action="version", version="caffe version 1.0.0-stand-in")
    parser.add_argument("command", choices=("train", "time"))
    for name in ("-solver", "-model", "-gpu"):
        parser.add_argument(name)
    parser.add_argument("-iterations", type=int, default=50)
    options = parser.parse_args()
    caffe = Caffe(options.dialect, options.gpus)
    getattr(caffe, options.command)(options)


if __name__ == "__main__":
    main()
