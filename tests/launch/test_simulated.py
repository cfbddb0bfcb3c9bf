"""The model says what its formulas say, and is cut into windows as the timed loop cuts."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from harness import plugins
from harness.data.catalogue import CONTENTS
from harness.errors import UsageError
from harness.launch.cluster_model import Cluster, NoModel, SimulatedStep, step
from harness.launch.launchers import simulated
from harness.plan.cell import Cell
from harness.plan.plan import make_plan
from harness.platform.platform import Platform, load_platform
from harness.study.study import load_study
from harness.worker import loop
from harness.worker.job import Job, Span
from harness.worker.scale import Scale

QUIET = {"latency": "5 us", "jitter": "0 %", "spread": "0 %", "efficiency": "50 %"}


def platform(**settings: str) -> Platform:
    found = load_platform("simulated-cluster")
    launcher = found.launcher.model_copy(update={"settings": {**QUIET, **settings}})
    return found.model_copy(update={"launcher": launcher})


def cell(folder: Path, matrix: str) -> Cell:
    file = folder / "study.toml"
    file.write_text(f'title = "s"\n[matrix]\n{matrix}\n[measure]\ntrials = 1\n')
    (made,) = make_plan(load_study(file), platform()).cells
    return made


def told(one: Cell, **settings: str) -> SimulatedStep:
    return step(Cluster.of(platform(**settings)), one, plugins.workload(one.workload))


def job(warmup: Span, until: Span, **factors: int) -> Job:
    names = ("trial", "c", "trial-1", "w", "", "torch", "", "torch", "ddp")
    return Job(*names, Scale(**factors), {}, {}, warmup=warmup, until=until, seed=1, directory="")


def played(
    one: SimulatedStep, where: list[int], wanted: Job, **settings: str
) -> simulated.SimulatedRanks:
    return simulated.play(
        wanted,
        Cluster.of(platform(**settings)),
        one,
        where,
        start_ns=0,
        start_up_s=1.0,
        timeout_s=900.0,
        seed=7,
    )


def windows(text: str) -> list[dict[str, int]]:
    events = [json.loads(line) for line in text.splitlines()]
    return [one for one in events if one["event"] == "window"]


ALL_REDUCE = """workload = "all-reduce"
framework = "torch"
strategy = "ddp"
device = "gpu"
nodes = 4
message_bytes = 1000000"""


def test_an_all_reduce_takes_its_messages_and_its_bytes_around_a_ring(tmp_path):
    one = told(cell(tmp_path, ALL_REDUCE))
    assert one.seconds == pytest.approx(6 * (5e-6 + 250_000 / 12.5e9))
    assert one.units == {"bytes": 250_000.0}


TRAINING = """workload = "resnet50"
framework = "torch"
strategy = "ddp"
device = "gpu"
nodes = 4
batch = 32
communicate = {}"""


def test_training_computes_at_the_ceiling_and_exchanges_what_does_not_hide(tmp_path):
    alone = told(cell(tmp_path, TRAINING.format("false")))
    macs = plugins.workload("resnet50").macs
    assert alone.seconds == pytest.approx(6 * macs * 32 / (15e12 * 0.5))
    bare = told(cell(tmp_path, TRAINING.format("true")), overlap="0 %")
    hidden = told(cell(tmp_path, TRAINING.format("true")), overlap="100 %")
    assert bare.compute_s == hidden.compute_s == alone.seconds
    assert bare.exchange_s > 0 == hidden.exchange_s


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("checkpoint_every = 10", "writes no checkpoints"),
        ('memory_policy = "local"', "one kind of memory"),
    ],
)
def test_what_is_not_modelled_is_refused_and_not_left_out(tmp_path, more, why):
    with pytest.raises(NoModel, match=why):
        told(cell(tmp_path, f"{TRAINING.format('true')}\n{more}"))


READING = """workload = "read-pictures"
framework = "null"
format = "raw"
reader = "threads"
reader_threads = 2
cache = "cold"
batch = 32
nodes = {}
prefetch = {}"""
STORAGE = {"storage": "100 GB/s", "node_storage": "10 GB/s"}


def test_nodes_that_read_share_what_the_file_system_gives(tmp_path):
    size = 32 * CONTENTS["pictures"].median_bytes
    few, many = (cell(tmp_path, READING.format(nodes, 0)) for nodes in (4, 40))
    assert told(few, **STORAGE).seconds == pytest.approx(size / 10e9)
    assert told(many, **STORAGE).seconds == pytest.approx(size / (100e9 / 40))
    assert told(many, **STORAGE).units == {"samples": 32.0}
    with pytest.raises(NoModel, match=r"no launcher\.settings\.storage"):
        told(few)


def test_what_is_read_ahead_hides_behind_computing(tmp_path):
    burn = '\ncompute = "burn"\ncompute_ms = 1'
    size = 32 * CONTENTS["pictures"].median_bytes
    late, ahead = (cell(tmp_path, READING.format(40, depth) + burn) for depth in (0, 4))
    assert told(late, **STORAGE).seconds == pytest.approx(1e-3 + size / 2.5e9)
    assert told(ahead, **STORAGE).seconds == pytest.approx(size / 2.5e9)
    few = cell(tmp_path, READING.format(4, 4) + burn)
    assert told(few, **STORAGE).seconds == pytest.approx(1e-3)


NODE = """workload = "all-reduce"
framework = "torch"
strategy = "ddp"
device = "gpu"
ranks_per_node = 2
message_bytes = 1000000"""


def test_gpus_of_a_node_use_their_own_links_unless_a_cell_forbids_it(tmp_path):
    linked, apart = cell(tmp_path, NODE), cell(tmp_path, f"{NODE}\npeer = false")
    by_link = 2 * (5e-6 + 500_000 / 40e9)
    by_memory = 2 * (5e-6 + 500_000 / (10e9 / 2))
    assert told(linked, device_link="40 GB/s").seconds == pytest.approx(by_link)
    assert told(apart, device_link="40 GB/s").seconds == pytest.approx(by_memory)
    assert told(linked).seconds == pytest.approx(by_memory)


def test_a_ring_is_as_fast_as_its_slowest_link_and_takes_an_adapter_a_rank(tmp_path):
    wide = NODE.replace("message_bytes", "nodes = 2\nmessage_bytes")
    one, two = (cell(tmp_path, wide.replace("node = 2\nn", f"node = {each}\nn")) for each in (1, 2))
    assert told(one, device_link="40 GB/s").seconds == pytest.approx(2 * (5e-6 + 500_000 / 12.5e9))
    quick, slow = (told(two, device_link=link).seconds for link in ("40 GB/s", "3 GB/s"))
    assert quick == pytest.approx(6 * (5e-6 + 250_000 / 12.5e9))  # one adapter for both
    assert slow == pytest.approx(6 * (5e-6 + 250_000 / 3e9))


def test_servers_of_parameters_are_no_ring(tmp_path):
    served = TRAINING.format("true").replace('"torch"', '"tensorflow"')
    with pytest.raises(NoModel, match="hold all weights each"):
        told(cell(tmp_path, served.replace('"ddp"', '"parameter-server"')))


def test_a_setting_without_its_unit_is_refused(tmp_path):
    text = 'title = "x"\n[launcher]\nname = "simulated"\nsettings = { latency = "5" }\n'
    (tmp_path / "made.toml").write_text(text)
    with pytest.raises(UsageError, match=r":4: launcher\.settings\.latency: '5' needs a unit of t"):
        load_platform(str(tmp_path / "made.toml"))


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ('node_storage = "0 GB/s"', "would take for ever; leave it out"),
        ('efficiency = "450 %"', "is no share: from 0 % to 100 %"),
        ('efficiency = "0 %"', "of the ceiling would take for ever"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(tmp_path, setting, why):
    text = f'title = "x"\n[launcher]\nname = "simulated"\nsettings = {{ {setting} }}\n'
    (tmp_path / "made.toml").write_text(text)
    with pytest.raises(UsageError, match=why):
        load_platform(str(tmp_path / "made.toml"))


@pytest.mark.parametrize(
    ("step_s", "warmup", "until"),
    [
        (0.1, Span(steps=5), Span(seconds=2.0)),
        (0.0013, Span(seconds=0.2), Span(seconds=1.0)),
        (0.002, Span(steps=7), Span(steps=101)),
    ],
)
def test_windows_are_cut_as_the_timed_loop_cuts_them(step_s, warmup, until):
    class Steady:
        now = 0
        units: dict[str, float] = {}  # noqa: RUF012

        def step(self):
            self.now += round(step_s * 1e9)

        def sync(self):
            pass

        def values(self):
            return {}

    class Heard:
        def __init__(self):
            self.said = []

        def say(self, event, **fields):
            self.said += [(fields["phase"], fields["steps"])] if event == "window" else []

        def flush(self):
            pass

    activity, heard = Steady(), Heard()
    loop.run(activity, heard, warmup=warmup, until=until, clock=lambda: activity.now)
    one = SimulatedStep(step_s, 0.0, 0.0, together=False, units={"steps": 1.0})
    (text,) = played(one, [0], job(warmup, until)).said
    assert [(w["phase"], w["steps"]) for w in windows(text)] == heard.said


ONE = SimulatedStep(0.1, 0.02, 0.0, together=True, units={"images": 32.0})
LONG = job(Span(steps=3), Span(steps=50))


def test_ranks_that_exchange_wait_for_the_slowest_and_say_the_same():
    quiet = played(ONE, [0, 1], LONG)
    (text,) = quiet.said
    assert windows(text)[-1]["end"] - windows(text)[-1]["start"] == 120_000_000
    slow = played(ONE, [0, 1], LONG, slow_nodes="100 %", slow_by="50 %")
    assert windows(slow.said[0])[-1]["end"] - windows(slow.said[0])[-1]["start"] == 170_000_000


def test_ranks_that_do_not_exchange_go_at_their_own_speed():
    each = played(dataclasses.replace(ONE, together=False), [0, 1, 2], LONG, jitter="2 %")
    assert len(set(each.said)) == 3


def test_more_ranks_wait_longer_for_their_slowest():
    def seconds(count: int) -> float:
        return played(ONE, list(range(count)), LONG, jitter="5 %").seconds

    assert seconds(2) < seconds(20) < seconds(200)


def test_a_node_that_dies_ends_what_is_said_in_the_middle():
    dead = played(ONE, list(range(100)), LONG, node_mtbf="1 min")
    assert dead.fault is not None
    assert dead.fault.kind == "node"
    assert dead.seconds == dead.fault.after_s < 7
    assert '"finished"' not in dead.said[0]


def test_a_cut_link_lasts_until_the_timeout():
    cut = played(ONE, list(range(100)), LONG, link_mtbf="1 min")
    assert cut.fault is not None
    assert (cut.fault.kind, cut.seconds) == ("link", 900.0)


def test_nothing_is_ever_started():
    with pytest.raises(UsageError, match="nothing can be started"):
        simulated.reach("n1", ("true",), {})
