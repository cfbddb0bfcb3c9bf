"""Join ranks to the parameter servers of TensorFlow's papers, kept in step.

Every rank is a worker of ``tf.train.Server`` and, in the same process, serves a share of what is
learned. Ranks meet through queues as in ``tf.train.SyncReplicasOptimizer``: each says that it is
there, the first answers all at once, and every rank has a queue for its answers, so that none takes
another's. TensorFlow 2's own ParameterServerStrategy is asynchronous only, so that several ranks
never equal one; it is not offered.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import Any, List, Mapping, Optional

from harness.worker.adapters.tensorflow.strategies.strategies import Strategy
from harness.worker.place import Place

JOB = "worker"
ALONE = ["localhost:0"]
FAREWELL_MS = 5000
REDIALS = 300
REDIAL_S = 0.1


class ParameterServers(Strategy):
    """A worker, and a server to all workers."""

    def __init__(self, place: Place, is_gpu: bool) -> None:
        import tensorflow.compat.v2 as tf

        v1 = tf.compat.v1
        ranks = json.loads(os.environ["TF_CONFIG"])["cluster"][JOB] if place.size > 1 else ALONE
        pools = tf.config.threading
        config = v1.ConfigProto(
            intra_op_parallelism_threads=pools.get_intra_op_parallelism_threads(),
            inter_op_parallelism_threads=pools.get_inter_op_parallelism_threads(),
        )
        if is_gpu:
            config.gpu_options.allow_growth = True
            config.gpu_options.visible_device_list = str(place.local_rank)
        self._tf = tf
        self.place = place
        self._server = v1.train.Server(
            v1.train.ClusterSpec({JOB: ranks}), job_name=JOB, task_index=place.rank, config=config
        )
        self.here = "/job:{}/task:{}".format(JOB, place.rank)
        self.servers = ["/job:{}/task:{}/cpu:0".format(JOB, n) for n in range(place.size)]
        """Where what is learned lies: in every rank's memory."""
        self.graph = tf.Graph()
        """The same in every rank but for what only the first one does: TensorFlow finds a variable
        of another rank by its name."""
        self.session = v1.Session(self._server.target, graph=self.graph)
        with self.graph.as_default():
            with tf.device(self.here):
                self._said = v1.placeholder(tf.float64, [])
            self._answer = self._largest()
            self._leave = self._farewell()
            there_and_back = self._round_trip()
        self._meet(there_and_back)

    def queues(self, name: str) -> List[Any]:
        """Make a queue of numbers in every rank."""
        made = []
        for number, server in enumerate(self.servers):
            with self._tf.device(server):
                made.append(self._queue(name, number))
        return made

    def agree(self, value: float) -> float:
        """Give the largest value any rank offers."""
        return float(self.session.run(self._answer, {self._said: value}))

    def facts(self) -> Mapping[str, Any]:
        """Say where gradients met."""
        return {
            "collectives": "parameter servers over grpc",
            "parameter_servers": self.place.size,
            "synchronous": True,
            "sync_batch_norm": False,
        }

    def close(self) -> None:
        """Leave; the first rank last, because the others may still wait for its word."""
        tf = self._tf
        patient = tf.compat.v1.RunOptions(timeout_in_ms=FAREWELL_MS)
        with suppress(tf.errors.OpError):  # all is done: whoever has left already is no fault
            self.session.run(self._leave, options=patient)
        self.session.close()

    def _round_trip(self) -> List[Any]:
        """Send a number to every rank and take it back, through queues: nothing optimises those."""
        tf, back = self._tf, []
        for number, server in enumerate(self.servers):
            with tf.device(server):
                queue = self._queue("trip{}to".format(self.place.rank), number, room=REDIALS + 1)
            with tf.device(self.here):
                sent = queue.enqueue(self._said)
                with tf.control_dependencies([sent]):
                    back.append(tf.identity(queue.dequeue()))
        return back

    def _meet(self, there_and_back: List[Any]) -> None:
        """Try until every rank answers: who called before the other listened has to redial."""
        for _ in range(REDIALS):
            with suppress(self._tf.errors.UnavailableError):
                self.session.run(there_and_back, {self._said: 0.0})
                return
            time.sleep(REDIAL_S)
        self.session.run(there_and_back, {self._said: 0.0})

    def _largest(self) -> Any:
        tf, rank, size = self._tf, self.place.rank, self.place.size
        with tf.device(self.servers[0]):
            offers = self._queue("offers", 0)
        with tf.device(self.here):
            offered = offers.enqueue(self._said)
        answers = self.queues("answer")
        told = []
        if rank == 0:
            with tf.device(self.servers[0]):
                largest = tf.reduce_max(offers.dequeue_many(size))
            told = [answer.enqueue(largest) for answer in answers]
        with tf.control_dependencies([offered]):
            answer = answers[rank].dequeue()
        with tf.control_dependencies(told):
            return tf.identity(answer)

    def _farewell(self) -> Any:
        with self._tf.device(self.servers[0]):
            left = self._queue("left", 0)
            if self.place.rank > 0:
                return left.enqueue(self._tf.constant(0.0, self._tf.float64))
            return left.dequeue_many(self.place.size - 1)

    def _queue(self, name: str, number: int, room: Optional[int] = None) -> Any:
        """Make a queue that every rank finds by its name."""
        tf = self._tf
        shared = "{}{}".format(name, number)
        return tf.compat.v1.FIFOQueue(
            room or 2 * self.place.size, [tf.float64], [[]], shared_name=shared
        )
