"""Read places from the environments that launchers leave."""

from __future__ import annotations

import pytest

from harness.worker.place import Place, find

OURS = {
    "BAKEOFF_RANK": "5",
    "BAKEOFF_SIZE": "8",
    "BAKEOFF_LOCAL_RANK": "1",
    "BAKEOFF_LOCAL_SIZE": "4",
}
TORCHRUN = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
HOROVOD = {
    "HOROVOD_RANK": "5",
    "HOROVOD_SIZE": "8",
    "HOROVOD_LOCAL_RANK": "1",
    "HOROVOD_LOCAL_SIZE": "4",
}
OPENMPI = {
    "OMPI_COMM_WORLD_RANK": "5",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
}
HYDRA = {"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "4"}
SLURM = {
    "SLURM_PROCID": "5",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_LOCALID": "1",
    "SLURM_STEP_TASKS_PER_NODE": "4(x2)",
    "SLURM_NODEID": "1",
    "SLURM_NTASKS": "8",
}


@pytest.mark.parametrize(
    ("launcher", "environment"),
    [
        ("bakeoff", OURS),
        ("torchrun", TORCHRUN),
        ("horovod", HOROVOD),
        ("openmpi", OPENMPI),
        ("hydra", HYDRA),
        ("slurm", SLURM),
    ],
)
def test_each_launcher_is_understood(launcher: str, environment: dict[str, str]) -> None:
    assert find(environment, host="n2") == Place(5, 8, 1, 4, "n2", launcher)


def test_alone_without_a_launcher() -> None:
    assert find({}, host="n1") == Place(0, 1, 0, 1, "n1", "none")


@pytest.mark.parametrize(
    ("inner", "outer", "launcher"),
    [
        (OURS, TORCHRUN, "bakeoff"),
        (TORCHRUN, OPENMPI, "torchrun"),
        (TORCHRUN, SLURM, "torchrun"),
        (OPENMPI, SLURM, "openmpi"),
        (HYDRA, SLURM, "hydra"),
    ],
)
def test_what_started_the_process_last_is_believed(
    inner: dict[str, str], outer: dict[str, str], launcher: str
) -> None:
    alone = dict.fromkeys(outer, "0")
    assert find({**alone, **inner}, host="n2") == Place(5, 8, 1, 4, "n2", launcher)


def test_a_batch_script_of_many_tasks_runs_alone() -> None:
    batch = {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_LOCALID": "0"}
    assert find(batch, host="n1").size == 1


def test_pmi_under_srun_takes_the_local_rank_from_slurm() -> None:
    srun = {**SLURM, "PMI_RANK": "5", "PMI_SIZE": "8"}
    assert find(srun, host="n2") == Place(5, 8, 1, 4, "n2", "hydra")


@pytest.mark.parametrize(
    ("counts", "node", "local_size"),
    [("3", "0", 3), ("4(x2),2", "1", 4), ("4(x2),2", "2", 2), ("1,5(x3)", "3", 5)],
)
def test_slurm_counts_ranks_node_by_node(counts: str, node: str, local_size: int) -> None:
    environment = {
        **SLURM,
        "SLURM_STEP_NUM_TASKS": "16",
        "SLURM_LOCALID": "0",
        "SLURM_STEP_TASKS_PER_NODE": counts,
        "SLURM_NODEID": node,
    }
    assert find(environment).local_size == local_size


def test_the_host_may_be_named_by_us() -> None:
    assert find({"BAKEOFF_HOST": "cn-07"}).host == "cn-07"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"BAKEOFF_RANK": "8"}, "bakeoff contradicts itself"),
        ({"BAKEOFF_RANK": "-1"}, "bakeoff contradicts itself"),
        ({"BAKEOFF_LOCAL_RANK": "4"}, "bakeoff contradicts itself"),
        ({"BAKEOFF_LOCAL_SIZE": "9"}, "bakeoff contradicts itself"),
        ({"BAKEOFF_SIZE": "many"}, "BAKEOFF_SIZE: 'many' is not a whole number"),
    ],
)
def test_nonsense_is_refused_by_name(change: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        find({**OURS, **change})


def test_several_ranks_need_a_local_rank() -> None:
    with pytest.raises(ValueError, match="has no BAKEOFF_LOCAL_RANK"):
        find({"BAKEOFF_RANK": "1", "BAKEOFF_SIZE": "2"})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"SLURM_STEP_TASKS_PER_NODE": "4;4"}, "is not a list of counts"),
        ({"SLURM_NODEID": "2"}, "SLURM_NODEID 2 is not in"),
    ],
)
def test_slurms_counts_have_to_make_sense(change: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        find({**SLURM, **change})
